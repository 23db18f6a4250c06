//! Retention and age: what is pruned, what is kept, what is overdue.

use core::time::Duration;

use dlo_core::{EntryState, NewEntry, TransitionResult, decide::Event, limits::MAX_PAGE, policy::Alternative, reason};

use super::bench::{ALL, Bench, DAY, HOUR, MAIN, MINUTE, SECOND, delivered, name, version_ref};
use crate::{
    StoreErrorKind,
    store::{EnqueueAnswer, EntryAct, EntryFilter, PruneRequest, Pruned},
};

impl Bench {
    fn prune(&self, history: Duration, enqueue_keys: Duration, limit: usize) -> Pruned {
        self.run(|store| store.prune(PruneRequest { history, enqueue_keys, limit }))
    }

    fn overdue(&self, max_age: Duration) -> Vec<dlo_core::EntryId> {
        let overdue = self.run(|store| store.overdue(self.tenant.clone(), name(MAIN), max_age, 100));
        let mut found: Vec<_> = overdue.iter().map(|entry| entry.key.entry).collect();
        found.sort();
        found
    }
}

pub(super) fn old_history_goes_and_newer_stays(b: &mut Bench) {
    b.main(|_| ());
    let old = b.claimed_at(MAIN);
    b.outcome(&old, delivered());
    let cancelled = b.entry_at(MAIN);
    b.act(cancelled, EntryAct::Cancel);
    let live = b.entry_at(MAIN);
    b.clock.advance(DAY);
    let newer = b.claim_one(MAIN);
    assert_eq!(newer.key.entry, live);
    b.outcome(&newer, delivered());
    assert_eq!(b.prune(DAY, DAY * 30, 100), Pruned::default(), "not longer ago than that");
    b.clock.advance(SECOND);
    assert_eq!(b.prune(DAY, DAY * 30, 100), Pruned { history: 2, ..Pruned::default() });
    let left: Vec<_> =
        b.run(|store| store.entries(EntryFilter::default(), ALL)).rows.iter().map(|row| row.key.entry).collect();
    assert_eq!(left, [live]);
    assert_eq!(b.run(|store| store.entry(b.tenant.clone(), old.key.entry)), None);
    assert_eq!(b.outcome(&old, delivered()), TransitionResult::Missing, "what is gone is missing");
    let row = b.run(|store| store.stats()).destinations.remove(0);
    assert_eq!((row.delivered_total, row.cancelled_total, row.enqueued_total), (2, 1, 3), "totals stay");
}

pub(super) fn enqueue_keys_go_by_their_own_window(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    b.save(item.clone());
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, delivered());
    b.clock.advance(DAY + SECOND);
    assert_eq!(b.prune(HOUR, DAY * 2, 100).history, 1);
    let existing = EnqueueAnswer::Existing { envelope: item.envelope.id };
    assert_eq!(b.enqueue(item.clone()), existing, "the key outlives the history");
    assert_eq!(b.prune(HOUR, DAY, 100), Pruned { enqueue_keys: 1, ..Pruned::default() });
    b.save(item);
}

pub(super) fn lineages_with_a_dead_letter_are_kept(b: &mut Bench) {
    b.main(|_| ());
    let open = b.dead_letter_at(MAIN);
    let released = b.dead_letter_at(MAIN);
    b.redriven(released.id);
    let again = b.claim_one(MAIN);
    b.outcome(&again, delivered());
    b.clock.advance(DAY * 365);
    assert_eq!(b.prune(HOUR, DAY * 400, 100), Pruned::default(), "nothing in quarantine ends by time (I-14)");
    assert_eq!(b.entry(released.key.entry).ended.len(), 2);
    assert_eq!(b.entry(released.key.entry).attempts.len(), 2);
    b.redriven(open.id);
    assert_eq!(b.claim_one(MAIN).envelope, open.envelope, "what it carries is kept too");
}

pub(super) fn pruning_is_bounded(b: &mut Bench) {
    b.main(|_| ());
    let created = b.entries_at(MAIN, 3);
    // What was created last ends first, so that the order of ending is not the order of creation.
    for claimed in b.claim(MAIN, 3).into_iter().rev() {
        b.outcome(&claimed.entry, delivered());
        b.clock.advance(SECOND);
    }
    b.clock.advance(DAY);
    assert_eq!(b.prune(HOUR, HOUR, 2), Pruned { history: 2, enqueue_keys: 2, more: true });
    assert_eq!(b.state(created[0]), EntryState::Delivered, "what ended first goes first");
    assert_eq!(b.prune(HOUR, HOUR, 2), Pruned { history: 1, enqueue_keys: 1, more: false });
    for limit in [0, 1_001] {
        let request = PruneRequest { history: HOUR, enqueue_keys: HOUR, limit };
        assert_eq!(b.fail(|store| store.prune(request)), StoreErrorKind::Invalid);
    }
}

pub(super) fn overdue_entries_are_found(b: &mut Bench) {
    b.main(|main| {
        main.policy.max_retry_attempts = 1;
        main.policy.dead_letter_on_max_retry_attempts = false;
        main.policy.alternative = Some(Alternative::ManualReview);
    });
    b.reviewed_at(MAIN);
    b.claimed_at(MAIN);
    let old = b.entry_at(MAIN);
    let urgent = NewEntry { deliver_by: Some(b.now().after(MINUTE)), ..b.item(MAIN) };
    let urgent = b.save(urgent);
    assert!(b.overdue(HOUR).is_empty());
    b.clock.advance(MINUTE);
    assert_eq!(b.overdue(HOUR), [urgent], "deliver_by is reached");
    b.clock.advance(MINUTE * 59);
    let mut expected = vec![old, urgent];
    expected.sort();
    assert_eq!(b.overdue(HOUR), expected, "claimed entries and manual review are left");
    assert_eq!(b.run(|store| store.overdue(b.tenant.clone(), name(MAIN), HOUR, 1)).len(), 1);
    let many = MAX_PAGE + 1;
    assert_eq!(b.fail(|store| store.overdue(b.tenant.clone(), name(MAIN), HOUR, many)), StoreErrorKind::Invalid);
}

pub(super) fn an_overdue_entry_ends_under_its_version(b: &mut Bench) {
    b.main(|main| main.policy.max_age = HOUR);
    let id = b.entry_at(MAIN);
    let loses = b.entry_at(MAIN);
    b.clock.advance(HOUR);
    let mut overdue = b.run(|store| store.overdue(b.tenant.clone(), name(MAIN), HOUR, 10));
    overdue.sort_by_key(|entry| entry.seq);
    b.act(loses, EntryAct::Cancel);
    for (entry, expected) in overdue.iter().zip([TransitionResult::Applied, TransitionResult::Terminal]) {
        let transition = b.decide(entry, &Event::Overdue);
        assert_eq!(
            b.settle_under(entry, version_ref(entry).fence, transition),
            expected,
            "maintenance is fenced (I-05)"
        );
    }
    assert_eq!(b.dead_letter_of(id).code, reason::MAX_AGE_EXCEEDED);
    assert_eq!((b.state(id), b.state(loses)), (EntryState::DeadLettered, EntryState::Cancelled));
}

pub(super) fn not_before_delays_the_age(b: &mut Bench) {
    b.main(|_| ());
    let item = NewEntry { not_before: Some(b.now().after(DAY)), ..b.item(MAIN) };
    let id = b.save(item);
    b.clock.advance(DAY + SECOND * 3_599);
    assert!(b.overdue(HOUR).is_empty());
    b.clock.advance(SECOND);
    assert_eq!(b.overdue(HOUR), [id]);
}
