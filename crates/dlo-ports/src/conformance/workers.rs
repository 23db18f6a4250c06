//! Workers: leases, crashes, lost claims, suspects, and engines that come after one another.

use core::time::Duration;

use dlo_core::{
    Duplicates, Entry, EntryState, Lane, TransitionResult, decide::Event, limits::MAX_PAGE, policy::DrainMode, reason,
};

use super::bench::{
    Bench, HOUR, MAIN, MINUTE, SECOND, claim_fence, claim_ref, delivered, ids, maintenance_fence, transient,
    version_ref,
};
use crate::{
    StoreErrorKind,
    store::{ClaimKind, WorkerStart},
};
use TransitionResult::{Applied, ConcurrencyLost, StaleClaim};

impl Bench {
    pub(super) fn lost(&self) -> Vec<Entry> {
        self.run(|store| store.lost_claims(None, 100))
    }

    /// Settles every lost claim as maintenance does: under the row version that it read.
    pub(super) fn sweep_lost(&mut self) -> Vec<TransitionResult> {
        let lost = self.lost();
        lost.iter()
            .map(|entry| {
                let transition = self.decide(entry, &Event::ClaimLost);
                self.settle_under(entry, maintenance_fence(entry), transition)
            })
            .collect()
    }
}

pub(super) fn a_lapsed_lease_loses_claims_and_a_heartbeat_gets_them_back(b: &mut Bench) {
    b.main(|_| ());
    let worker = b.new_worker(MINUTE);
    let entry = b.claimed_at(MAIN);
    b.clock.advance(SECOND * 59);
    assert!(b.lost().is_empty());
    assert_eq!(b.run(|store| store.heartbeat(worker, MINUTE)), b.now(), "the answer is the database's time (I-06)");
    b.clock.advance(SECOND);
    assert!(b.lost().is_empty(), "renewed");
    b.clock.advance(MINUTE);
    assert_eq!(b.lost()[0], entry, "with its claim");
    b.run(|store| store.heartbeat(worker, MINUTE));
    assert!(b.lost().is_empty(), "nobody ended it meanwhile");
}

pub(super) fn a_stopped_worker_loses_claims_at_once(b: &mut Bench) {
    b.main(|_| ());
    let worker = b.worker();
    let entry = b.claimed_at(MAIN);
    b.run(|store| store.stop_worker(worker));
    assert_eq!(b.lost()[0].key, entry.key);
    b.run(|store| store.stop_worker(worker));
    let never = dlo_core::Incarnation::from_bytes([9; 16]);
    b.run(|store| store.stop_worker(never));
}

pub(super) fn a_reached_deadline_loses_the_claim(b: &mut Bench) {
    b.main(|_| ());
    for (hold_for, lost) in [(MINUTE, true), (MINUTE + SECOND, false), (Duration::MAX, false)] {
        b.entry_at(MAIN);
        let mut request = b.request(MAIN, ClaimKind::Normal, 1);
        request.hold_for = hold_for;
        let page = b.run(|store| store.claim(request));
        b.clock.advance(MINUTE);
        assert_eq!(!b.lost().is_empty(), lost, "{hold_for:?}");
        b.outcome(&page.claimed[0].entry, delivered());
    }
}

pub(super) fn a_living_worker_is_left_its_own_claims(b: &mut Bench) {
    b.main(|_| ());
    let worker = b.new_worker(MINUTE);
    let entry = b.claimed_at(MAIN);
    b.clock.advance(HOUR * 2);
    assert_eq!(ids_of(&b.lost()), [entry.key.entry], "lease and deadline are over");
    assert!(b.run(|store| store.lost_claims(Some(worker), 100)).is_empty(), "whoever asks knows what it has in hand");
    let other = dlo_core::Incarnation::from_bytes([9; 16]);
    assert_eq!(ids_of(&b.run(|store| store.lost_claims(Some(other), 100))), [entry.key.entry]);
}

pub(super) fn a_lease_in_plain_mode_has_no_end(b: &mut Bench) {
    b.main(|_| ());
    let worker = b.new_plain_worker(MINUTE);
    b.entry_at(MAIN);
    let mut request = b.request(MAIN, ClaimKind::Normal, 1);
    request.hold_for = Duration::MAX;
    let claimed = b.run(|store| store.claim(request)).claimed.remove(0).entry;
    b.clock.advance(HOUR);
    assert!(b.lost().is_empty(), "nobody takes it from a plain-mode worker that is late");
    b.run(|store| store.stop_worker(worker));
    assert_eq!(ids_of(&b.lost()), [claimed.key.entry]);
}

pub(super) fn what_maintenance_saved_is_not_a_plain_workers_own(b: &mut Bench) {
    b.main(|_| ());
    let (waits, ends) = (b.claimed_at(MAIN), b.claimed_at(MAIN));
    let worker = b.worker();
    b.run(|store| store.stop_worker(worker));
    b.new_worker(HOUR);
    for (entry, event) in [(&waits, Event::ClaimLost), (&ends, Event::Emitted(delivered()))] {
        let transition = b.decide(entry, &event);
        for _ in 0..2 {
            assert_eq!(b.settle_under(entry, maintenance_fence(entry), transition.clone()), Applied, "repeatable");
        }
    }
    for (entry, expected) in [(&waits, ConcurrencyLost), (&ends, TransitionResult::Terminal)] {
        let transition = b.decide(entry, &Event::Emitted(delivered()));
        assert_eq!(b.settle_under(entry, version_ref(entry).fence, transition), expected, "nothing of it was saved");
    }
    assert_eq!(b.live(waits.key.entry).lane, Lane::Suspect);
}

fn ids_of(entries: &[Entry]) -> Vec<dlo_core::EntryId> {
    entries.iter().map(|entry| entry.key.entry).collect()
}

pub(super) fn lost_claims_come_by_sequence(b: &mut Bench) {
    b.main(|_| ());
    let entries = b.entries_at(MAIN, 3);
    let worker = b.worker();
    let claimed = b.claim(MAIN, 3);
    // The first is settled and claimed anew, so that claim order is not sequence order.
    b.outcome(&claimed[0].entry, transient());
    b.clock.advance(HOUR);
    b.claim_one(MAIN);
    b.run(|store| store.stop_worker(worker));
    let order: Vec<_> = b.lost().iter().map(|entry| entry.key.entry).collect();
    assert_eq!(order, entries);
    assert_eq!(b.run(|store| store.lost_claims(None, 2)).len(), 2);
    for limit in [0, MAX_PAGE + 1] {
        assert_eq!(b.fail(|store| store.lost_claims(None, limit)), StoreErrorKind::Invalid);
    }
}

pub(super) fn a_crash_makes_suspects_uncharged(b: &mut Bench) {
    b.main(|_| ());
    let entries = b.entries_at(MAIN, 2);
    let worker = b.worker();
    b.claim(MAIN, 2);
    b.run(|store| store.stop_worker(worker));
    b.new_worker(HOUR);
    assert_eq!(b.sweep_lost(), [Applied, Applied]);
    for id in entries {
        let row = b.live(id);
        assert_eq!((row.lane, row.claim), (Lane::Suspect, None));
        assert_eq!((row.progress.counters.failed, row.progress.counters.crashed), (0, 0), "uncharged (traps D1, D3)");
    }
    assert!(b.lost().is_empty());
}

pub(super) fn crashes_alone_end_in_worker_lost(b: &mut Bench) {
    b.main(|main| main.policy.max_crashed_attempts = 2);
    let id = b.entry_at(MAIN);
    let mut kind = ClaimKind::Normal;
    for crashed in 0..3 {
        let worker = b.new_worker(HOUR);
        assert_eq!(ids(&b.page(MAIN, kind, 1).claimed), [id]);
        b.run(|store| store.stop_worker(worker));
        b.new_worker(HOUR);
        assert_eq!(b.sweep_lost(), [Applied]);
        let counters = b.entry(id).live.map(|row| row.progress.counters);
        if crashed < 2 {
            assert_eq!(counters.map(|counters| counters.crashed), Some(crashed), "only crashes as the only suspect");
        }
        b.clock.advance(HOUR);
        kind = ClaimKind::Suspect;
    }
    let record = b.dead_letter_of(id);
    assert_eq!((record.code, record.counters.crashed, record.counters.failed), (reason::WORKER_LOST, 2, 0));
}

pub(super) fn a_marked_lost_claim_is_never_repeated_on_harmful(b: &mut Bench) {
    b.main(|main| main.duplicates = Duplicates::Harmful);
    b.clock.advance(SECOND);
    let worker = b.new_worker(HOUR);
    let entries = b.entries_at(MAIN, 2);
    let claimed = b.claim(MAIN, 2);
    b.run(|store| store.mark_sent(vec![claim_ref(&claimed[0].entry)]));
    b.run(|store| store.stop_worker(worker));
    b.new_worker(HOUR);
    assert_eq!(b.sweep_lost(), [Applied, Applied]);
    let record = b.dead_letter_of(entries[0]);
    assert_eq!((record.code, record.unanswered), (reason::OUTCOME_AMBIGUOUS, true), "I-10");
    assert_eq!(b.live(entries[1]).lane, Lane::Suspect, "no byte of the other left");
}

pub(super) fn a_late_worker_is_told_stale_claim(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    b.clock.advance(HOUR * 2);
    assert_eq!(b.sweep_lost(), [Applied]);
    assert_eq!(b.outcome(&entry, delivered()), StaleClaim);
    assert_eq!(b.run(|store| store.mark_sent(vec![claim_ref(&entry)])), [StaleClaim]);
    assert_eq!(b.state(entry.key.entry), EntryState::Ready);
}

pub(super) fn a_quicker_worker_makes_maintenance_lose(b: &mut Bench) {
    b.main(|_| ());
    let waits = b.claimed_at(MAIN);
    let ends = b.claimed_at(MAIN);
    b.clock.advance(HOUR * 2);
    let lost = b.lost();
    b.outcome(&waits, transient());
    b.outcome(&ends, delivered());
    for (read, expected) in lost.iter().zip([ConcurrencyLost, TransitionResult::Terminal]) {
        let transition = b.decide(read, &Event::ClaimLost);
        assert_eq!(b.settle_under(read, maintenance_fence(read), transition), expected);
    }
    assert_eq!(b.live(waits.key.entry).lane, Lane::Retry);
}

pub(super) fn an_ended_incarnation_stays_ended(b: &mut Bench) {
    let incarnation = b.worker();
    let start = WorkerStart {
        worker: dlo_core::WorkerId::new("worker-1").unwrap(),
        incarnation,
        mode: DrainMode::Claim,
        lease: HOUR,
        pid: 7,
    };
    assert_eq!(b.run(|store| store.start_worker(start.clone())), b.now(), "the same start again is the same worker");
    b.run(|store| store.stop_worker(incarnation));
    assert_eq!(b.fail(|store| store.heartbeat(incarnation, HOUR)), StoreErrorKind::Fenced);
    assert_eq!(b.fail(|store| store.start_worker(start)), StoreErrorKind::Fenced);
    let never = dlo_core::Incarnation::from_bytes([9; 16]);
    assert_eq!(b.fail(|store| store.heartbeat(never, HOUR)), StoreErrorKind::Fenced);
}

pub(super) fn a_new_engine_ends_earlier_ones(b: &mut Bench) {
    b.main(|_| ());
    let earlier = b.new_worker(Duration::MAX);
    let entry = b.claimed_at(MAIN);
    b.new_worker(Duration::MAX);
    if b.harness().single_engine() {
        assert_eq!(b.lost()[0].key, entry.key, "at once, whatever its lease");
        assert_eq!(b.fail(|store| store.heartbeat(earlier, HOUR)), StoreErrorKind::Fenced);
    } else {
        assert!(b.lost().is_empty(), "workers work beside each other");
        b.run(|store| store.heartbeat(earlier, HOUR));
    }
    let fence = claim_fence(&entry);
    let transition = b.decide(&entry, &Event::Emitted(delivered()));
    assert_eq!(b.settle_under(&entry, fence, transition), Applied, "what nobody ended may settle");
}

pub(super) fn plain_mode_refuses_beside_a_live_claim(b: &mut Bench) {
    b.main(|_| ());
    let other = b.worker();
    let entry = b.claimed_at(MAIN);
    if b.harness().single_engine() {
        b.start(DrainMode::Plain, Duration::MAX).unwrap();
        assert_eq!(b.sweep_lost(), [Applied], "the other can't be alive any more");
        return;
    }
    assert_eq!(b.start(DrainMode::Plain, Duration::MAX), Err(StoreErrorKind::Fenced));
    b.run(|store| store.stop_worker(other));
    let plain = b.start(DrainMode::Plain, Duration::MAX).unwrap();
    assert_eq!(b.lost()[0].key, entry.key);
    assert_eq!(b.start(DrainMode::Claim, HOUR), Err(StoreErrorKind::Fenced), "a plain-mode worker works alone");
    b.run(|store| store.stop_worker(plain));
    b.new_worker(HOUR);
}
