//! Crashes: what a lost worker left behind, suspects, send marks, shutdowns of harmful destinations.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{Class, Duplicates, EntryState, policy::DrainMode, reason};
use dlo_engine::Until;

use crate::support::{HOUR, MINUTE, Office, SECOND, delivered};

/// An entry that was in flight at a destination where duplicates do harm is never emitted again (I-10).
#[test]
fn i10_a_harmful_entry_is_never_emitted_twice_after_a_crash() {
    let office = Office::new();
    let hung = office.hanging("pays");
    office.destination("one", "pays", |spec| spec.duplicates = Duplicates::Harmful);
    let entries = office.enqueue("one", 40);
    office.run_and_kill_after(SECOND);
    assert_eq!(hung.len(), 16);
    let log = office.answering("pays", delivered());
    office.run_until(Until::Empty).unwrap();
    let sent = hung.by_entry();
    for entry in &entries {
        let state = office.entry(*entry).summary.state;
        let expected = if sent.contains_key(entry) { EntryState::DeadLettered } else { EntryState::Delivered };
        assert_eq!(state, expected);
    }
    assert!(log.seen().iter().all(|seen| !sent.contains_key(&seen.entry)), "an unanswered entry was emitted again");
    for dead in office.dead_letters() {
        assert_eq!((dead.class, dead.code, dead.unanswered), (Class::Ambiguous, reason::OUTCOME_AMBIGUOUS, true));
    }
    office.check();
}

/// The send mark is durable before the emitter sees the entry.
#[test]
fn i10_the_send_mark_comes_before_the_first_byte() {
    let office = Office::new();
    let log = office.answering("pays", delivered());
    office.destination("one", "pays", |spec| spec.duplicates = Duplicates::Harmful);
    office.enqueue("one", 20);
    office.store.latency("mark_sent", 10 * SECOND);
    office.run_and_kill_after(5 * SECOND);
    assert_eq!(office.store.count("mark_sent"), (1, 16), "marks go in batches of at most the concurrency");
    assert_eq!(log.len(), 0, "emitted before the mark was durable");
}

/// A shutdown whose grace is over settles cut emissions as interrupted: harmful ones are dead-lettered, the others are
/// ready again and remember it; nothing is charged, and the destination is not to blame.
#[test]
fn i10_a_cut_emission_is_ambiguous_where_duplicates_do_harm() {
    let office = Office::new();
    office.hanging("hangs");
    office.destination("pays", "hangs", |spec| spec.duplicates = Duplicates::Harmful);
    office.destination("logs", "hangs", |_| {});
    let harmful = office.enqueue("pays", 20);
    let harmless = office.enqueue("logs", 20);
    office.run_for(SECOND).unwrap();
    assert_eq!(office.dead_letters().len(), 16);
    let live: Vec<_> = office.live();
    assert_eq!(live.len(), 24);
    assert!(live.iter().all(|row| row.state != EntryState::Claimed), "nothing stays claimed");
    for dead in office.dead_letters() {
        assert_eq!((dead.code, dead.reason), (reason::OUTCOME_AMBIGUOUS, reason::EMISSION_INTERRUPTED));
    }
    let cut: Vec<_> = harmless.iter().map(|entry| office.entry(*entry)).filter(|e| !e.attempts.is_empty()).collect();
    assert_eq!(cut.len(), 16);
    for view in cut {
        let progress = view.live.unwrap().progress;
        assert!(progress.unanswered && progress.counters.failed == 0);
        assert_eq!(view.last_failure.unwrap().reason, reason::EMISSION_INTERRUPTED);
    }
    for name in ["pays", "logs"] {
        let health = office.health(name);
        assert!(!health.is_held() && health.consecutive == 0, "a shutdown opened a breaker: {health:?}");
    }
    assert_eq!(harmful.iter().filter(|entry| office.entry(**entry).last_failure.is_none()).count(), 4);
    office.check();
}

/// After a crash, what was in flight is tried one at a time while other work goes on.
#[test]
fn suspects_are_tried_one_at_a_time_while_other_work_goes_on() {
    let office = Office::new();
    office.hanging("own");
    office.destination("one", "own", |_| {});
    office.destination("two", "own", |_| {});
    office.destination("three", "own", |_| {});
    let suspects = ["one", "two", "three"].map(|name| office.enqueue(name, 10)).concat();
    office.run_and_kill_after(SECOND);
    let others = office.enqueue("one", 500);
    let (slow, flights) = office.slow("own", SECOND, delivered());
    office.run_until(Until::Empty).unwrap();
    for entry in suspects.iter().chain(&others) {
        assert_eq!(office.entry(*entry).summary.state, EntryState::Delivered);
    }
    assert!(flights.most() >= 16, "other work goes on: {}", flights.most());
    let mut times: Vec<_> =
        slow.seen().into_iter().filter(|seen| suspects.contains(&seen.entry)).map(|seen| seen.at).collect();
    times.sort();
    assert_eq!(times.len(), 30);
    assert!(times.windows(2).all(|two| two[1].since(two[0]) >= SECOND), "two suspects were in flight at once");
    // The first crash says nothing about any of them.
    assert!(suspects.iter().all(|entry| office.entry(*entry).ended[0].counters.crashed == 0));
    office.check();
}

/// Only crashes as the sole suspect count, and three of them end the entry that kills its worker.
#[test]
fn an_entry_that_kills_its_worker_ends_as_worker_lost() {
    let office = Office::new();
    let poison = Arc::new(std::sync::Mutex::new(None));
    let (wanted, world) = (Arc::clone(&poison), Arc::clone(&office.world));
    office.scripted("own", move |emission| {
        let killer = *wanted.lock().unwrap() == Some(emission.entry);
        let sleep = world.sleep(if killer { HOUR } else { Duration::from_millis(10) });
        async move {
            sleep.await;
            delivered()
        }
    });
    office.destination("one", "own", |spec| spec.policy.emission_deadline = HOUR);
    let entries = office.enqueue("one", 10);
    *poison.lock().unwrap() = Some(entries[4]);
    for _ in 0..4 {
        // The process dies while the entry is in flight; the others have long been delivered or are not to blame.
        office.run_and_kill_after(20 * SECOND);
    }
    office.run_for(MINUTE).unwrap();
    let [dead] = office.dead_letters().try_into().unwrap();
    assert_eq!((dead.key.entry, dead.code, dead.counters.crashed), (entries[4], reason::WORKER_LOST, 3));
    assert_eq!(office.stats("one").delivered_total, 9);
    office.check();
}

/// Plain mode delivers, and a restart recovers what its lease without end still holds.
#[test]
fn plain_mode_works_like_claim_mode() {
    let mut office = Office::new();
    office.options.mode = DrainMode::Plain;
    office.hanging("pays");
    office.destination("one", "pays", |spec| spec.duplicates = Duplicates::Harmful);
    office.destination("two", "noop", |_| {});
    office.enqueue("one", 20);
    office.enqueue("two", 300);
    office.run_and_kill_after(SECOND);
    assert_eq!(office.stats("two").delivered_total, 300);
    let log = office.answering("pays", delivered());
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 4, "16 were in flight and unanswered");
    assert_eq!(office.dead_letters().len(), 16);
    office.check();
}

/// A second engine takes the lock; the first one is told, changes nothing more and ends.
#[test]
fn i04_a_fenced_engine_ends_with_an_error() {
    let office = Office::new();
    let hung = office.hanging("own");
    office.destination("one", "own", |_| {});
    let entry = office.enqueue("one", 1)[0];
    let (first, second) = (office.engine(), office.engine());
    let world = Arc::clone(&office.world);
    let (old, new) = office.world.run(async {
        let late = async {
            world.sleep(SECOND).await;
            second.run(world.sleep(10 * SECOND)).await
        };
        futures_util::future::join(first.run(core::future::pending()), late).await
    });
    assert_eq!(old.unwrap_err().code(), "store.fenced");
    new.unwrap();
    assert_eq!(hung.len(), 2, "the second engine recovered the claim and tried it as a suspect");
    assert_eq!(office.entry(entry).summary.state, EntryState::Ready);
    office.check();
}
