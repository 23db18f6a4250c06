//! Selection: S-09's order and the fairness between lanes (trap D13).

use dlo_core::{
    Entry, EntryId, Lane, NewEntry, Status, Timestamp, TransitionResult,
    decide::{Event, Next},
};

use super::bench::{Bench, HOUR, MAIN, MINUTE, SECOND, claim_fence, claim_ref, delivered, ids, transient};

impl Bench {
    /// Settles a claimed entry so that it waits in the retry lane until that time.
    fn wait_until(&mut self, entry: &Entry, due: Timestamp) {
        let mut transition = self.decide(entry, &Event::Emitted(transient()));
        transition.next = Next::Wait { lane: Lane::Retry, due, status: Status::RetryableFailure };
        self.settle_under(entry, claim_fence(entry), transition);
    }

    /// New entries that wait in the retry lane, due at these times.
    fn retries_due(&mut self, due: &[Timestamp]) -> Vec<EntryId> {
        let entries = self.entries_at(MAIN, due.len());
        if entries.is_empty() {
            return entries;
        }
        for (claimed, due) in self.claim(MAIN, due.len()).into_iter().zip(due) {
            self.wait_until(&claimed.entry, *due);
        }
        entries
    }
}

pub(super) fn lanes_are_read_by_due_and_sequence(b: &mut Bench) {
    b.main(|_| ());
    let start = b.now();
    let at = |seconds: u64| start.after(SECOND * u32::try_from(seconds).unwrap());
    let retries = b.retries_due(&[at(30), at(10), at(30), at(20)]);
    let item = |b: &mut Bench, not_before| NewEntry { not_before: Some(not_before), ..b.item(MAIN) };
    let pending: Vec<_> = [at(40), at(15), at(15)]
        .into_iter()
        .map(|not_before| {
            let item = item(b, not_before);
            b.save(item)
        })
        .collect();
    b.clock.set(at(60));
    let expected = [retries[1], retries[3], retries[0], retries[2], pending[1], pending[2], pending[0]];
    assert_eq!(ids(&b.claim(MAIN, 100)), expected, "retries first, each lane by (due, sequence)");
}

pub(super) fn half_of_a_page_is_for_retries(b: &mut Bench) {
    b.main(|_| ());
    for (retries, pending, limit, expected) in [
        (10, 10, 10, (5, 5)),
        (10, 10, 7, (3, 4)),
        (2, 10, 10, (2, 8)),
        (10, 2, 10, (8, 2)),
        (10, 0, 4, (4, 0)),
        (0, 10, 4, (0, 4)),
        (1, 1, 10, (1, 1)),
    ] {
        let due = b.now();
        b.retries_due(&vec![due; retries]);
        b.entries_at(MAIN, pending);
        let page = b.claim(MAIN, limit);
        let of = |lane| page.iter().filter(|claimed| claimed.entry.lane == lane).count();
        assert_eq!((of(Lane::Retry), of(Lane::Pending)), expected, "{retries} retries, {pending} pending, {limit}");
        // Out of the way of the next case.
        for claimed in page.into_iter().chain(b.claim(MAIN, 1_000)) {
            b.outcome(&claimed.entry, delivered());
        }
    }
}

pub(super) fn one_alone_goes_to_the_earlier_head(b: &mut Bench) {
    b.main(|_| ());
    let start = b.now();
    let retry = b.retries_due(&[start.after(MINUTE)]);
    b.clock.advance(MINUTE);
    let pending = b.entry_at(MAIN);
    b.clock.advance(SECOND);
    assert_eq!(ids(&b.claim(MAIN, 1)), retry, "both were due at once: the lower sequence");
    assert_eq!(ids(&b.claim(MAIN, 1)), [pending]);
    let pending = b.entry_at(MAIN);
    let late = b.entry_at(MAIN);
    let claimed = b.claim(MAIN, 2).remove(1);
    assert_eq!(claimed.entry.key.entry, late);
    b.wait_until(&claimed.entry, start.after(MINUTE * 5));
    let first = b.run(|store| store.release(vec![claim_ref(&b.live(pending))]));
    assert_eq!(first, [TransitionResult::Applied]);
    b.clock.advance(MINUTE * 10);
    assert_eq!(ids(&b.claim(MAIN, 1)), [pending], "it was due before the retry");
    assert_eq!(ids(&b.claim(MAIN, 1)), [late]);
}

pub(super) fn a_due_retry_is_tried_within_two_pages(b: &mut Bench) {
    b.main(|_| ());
    let due = b.now().after(MINUTE);
    let retry = b.retries_due(&[due]);
    b.clock.advance(HOUR);
    let page = 4;
    let mut tried = Vec::new();
    for _ in 0..2 {
        // As much comes in as goes out, and what came first was due first.
        b.entries_at(MAIN, page);
        tried.extend(ids(&b.claim(MAIN, page)));
    }
    assert!(tried.contains(&retry[0]), "inflow as large as the page starves no retry (trap D13)");
}

pub(super) fn due_means_reached(b: &mut Bench) {
    b.main(|_| ());
    let due = b.now().after(MINUTE);
    let retry = b.retries_due(&[due]);
    b.clock.set(Timestamp::from_micros(due.as_micros() - 1));
    assert!(b.claim(MAIN, 10).is_empty());
    b.clock.set(due);
    assert_eq!(ids(&b.claim(MAIN, 10)), retry);
}
