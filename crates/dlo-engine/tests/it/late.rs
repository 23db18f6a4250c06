//! Lateness: leases that are over, full disks, clocks that jump, lost answers; and entries that were never sent.

use core::time::Duration;

use dlo_core::{Duplicates, EntryState, HoldCause, policy::DrainMode};
use dlo_engine::Until;
use dlo_ports::{StoreErrorKind, store::OfficeStore};

use crate::faulty::Fault;
use crate::support::{HOUR, MINUTE, Office, SECOND, delivered};

/// Everything was emitted once and is saved as delivered; nothing is in doubt.
fn delivered_once(office: &Office, log: &crate::support::Log, count: usize) {
    assert!(log.by_entry().values().all(|times| *times == 1), "emitted twice");
    assert_eq!(log.len(), count);
    assert_eq!(office.dead_letters(), [], "doubted although its outcome was known, or although it was never sent");
    assert_eq!(office.stats("one").delivered_total, count as u64);
    office.check();
}

/// The disk is full for twice the lease while entries are in flight and in hand.
#[test]
fn d06_a_disk_that_is_full_for_longer_than_the_lease_doubts_and_doubles_nothing() {
    for mode in [DrainMode::Claim, DrainMode::Plain] {
        for duplicates in [Duplicates::Tolerated, Duplicates::Harmful] {
            let mut office = Office::new();
            office.options.mode = mode;
            office.options.lease = MINUTE;
            let (log, _) = office.slow("own", 3 * SECOND, delivered());
            office.destination("one", "own", |spec| {
                spec.duplicates = duplicates;
                spec.policy.concurrency = 4;
                spec.policy.emission_deadline = 5 * SECOND;
            });
            office.enqueue("one", 40);
            office.store.full_until(office.world.time().after(SECOND + 2 * MINUTE));
            // The first page is claimed and started just before.
            office.store.faults("start_worker", [Fault::Pass]);
            office.store.faults("claim", [Fault::Pass]);
            office.store.faults("mark_sent", [Fault::Pass]);
            office.run_until(Until::Empty).unwrap();
            delivered_once(&office, &log, 40);
        }
    }
}

/// A machine that slept past its lease and its claims: what it has in hand is neither taken by its own sweep nor emitted
/// on a claim that is over.
#[test]
fn i10_a_sleep_past_the_lease_doubts_and_doubles_nothing() {
    for duplicates in [Duplicates::Tolerated, Duplicates::Harmful] {
        let office = Office::new();
        let (log, _) = office.slow("own", 20 * SECOND, delivered());
        office.destination("one", "own", |spec| {
            spec.duplicates = duplicates;
            spec.policy.concurrency = 1;
        });
        office.enqueue("one", 5);
        // The sweep comes before the renewal.
        office.store.latency("heartbeat", 2 * SECOND);
        let engine = office.engine();
        let world = office.world.clone();
        office.world.run(async {
            let sleep = async {
                world.sleep(SECOND).await;
                world.jump(HOUR);
            };
            let run = engine.run_until(Until::Empty, core::future::pending());
            futures_util::future::join(run, sleep).await.0.unwrap();
        });
        assert!(office.store.count("release").1 >= 4, "what was in hand went back");
        let renewed = log.seen()[0].at.after(HOUR + 2 * SECOND);
        assert!(log.seen()[1..].iter().all(|seen| seen.at >= renewed), "emitted before the lease was renewed");
        delivered_once(&office, &log, 5);
    }
}

/// A claim whose answer was lost holds entries that no lane knows: they are given back when it is over.
#[test]
fn i01_a_claim_whose_answer_was_lost_strands_nothing() {
    let office = Office::new();
    let log = office.answering("own", delivered());
    office.destination("one", "own", |spec| spec.duplicates = Duplicates::Harmful);
    let entries = office.enqueue("one", 20);
    office.store.faults("claim", [Fault::SaveAndFail(StoreErrorKind::Unavailable)]);
    office.run_for(HOUR).unwrap();
    for entry in entries {
        let counters = office.entry(entry).ended[0].counters;
        assert_eq!((counters.interrupted, counters.failed, counters.crashed), (1, 0, 0));
    }
    delivered_once(&office, &log, 20);
}

/// Send marks whose answer was lost may be there: what is given up then is settled as not sent, and never doubted.
#[test]
fn i10_a_mark_whose_answer_was_lost_is_not_a_send() {
    let office = Office::new();
    let log = office.answering("own", delivered());
    office.destination("one", "own", |spec| spec.duplicates = Duplicates::Harmful);
    let entries = office.enqueue("one", 3);
    office.store.faults("mark_sent", [Fault::SaveAndFail(StoreErrorKind::Unavailable)]);
    office.run_for(Duration::from_millis(20)).unwrap();
    for entry in &entries {
        let view = office.entry(*entry);
        assert_eq!((view.summary.state, view.attempts.len()), (EntryState::Ready, 0));
        assert_eq!(view.live.unwrap().progress.counters.interrupted, 1);
    }
    assert_eq!(log.len(), 0);
    office.run_until(Until::Empty).unwrap();
    delivered_once(&office, &log, 3);
}

/// While marks are on their way, `one` becomes what `change` says; answers what the first emitter saw.
fn changed_while_marking(office: &Office, change: impl FnOnce(&mut dlo_core::DestinationSpec)) -> crate::support::Log {
    let log = office.answering("own", delivered());
    office.destination("one", "own", |spec| spec.duplicates = Duplicates::Harmful);
    office.enqueue("one", 3);
    office.store.latency("mark_sent", 10 * SECOND);
    let mut spec = crate::support::spec("one", "own");
    spec.duplicates = Duplicates::Harmful;
    change(&mut spec);
    let late = vec![office.item("one", |_| {})];
    let (engine, world, model) = (office.engine(), office.world.clone(), office.model.clone());
    office.world.run(async {
        let later = async {
            use dlo_ports::store::EnqueueStore;
            world.sleep(5 * SECOND).await;
            model.apply_destinations(vec![spec], office.audit("destination.apply", "one")).await.unwrap();
            model.enqueue(late).await.unwrap();
        };
        futures_util::future::join(engine.run(world.sleep(20 * SECOND)), later).await.0.unwrap();
    });
    log
}

/// What is marked already is emitted also when the destination is not harmful any more.
#[test]
fn marked_entries_outlive_the_declaration_that_marked_them() {
    let office = Office::new();
    let log = changed_while_marking(&office, |spec| spec.duplicates = Duplicates::Tolerated);
    delivered_once(&office, &log, 4);
}

/// What is marked already is given back as not sent when this process has no emitter for the new version.
#[test]
fn marked_entries_without_an_emitter_are_given_back_as_not_sent() {
    let office = Office::new();
    let log = changed_while_marking(&office, |spec| "other".clone_into(&mut spec.emitter));
    assert_eq!(log.len(), 0);
    assert_eq!(office.health("one").hold.map(|hold| hold.cause), Some(HoldCause::EmitterUnknown));
    let live = office.live();
    assert_eq!(live.len(), 4);
    assert!(live.iter().all(|row| row.state == EntryState::Ready), "{live:?}");
    assert!(live.iter().all(|row| office.entry(row.key.entry).attempts.is_empty()), "an attempt without a try");
    office.store.latency("mark_sent", Duration::ZERO);
    let log = office.answering("other", delivered());
    office.run_for(6 * MINUTE).unwrap();
    delivered_once(&office, &log, 4);
}

/// A lane that may not claim just now still wants to afterwards.
#[test]
fn a_refused_claim_stays_wanted() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    office.store.mute.store(true, core::sync::atomic::Ordering::Relaxed);
    office.answering("own", delivered());
    for name in ["one", "two"] {
        office.destination(name, "own", |_| {});
        office.enqueue(name, 1);
    }
    office.store.latency("claim", SECOND);
    office.store.faults("claim", [Fault::Fail(StoreErrorKind::Busy); 2]);
    office.run_for(10 * SECOND).unwrap();
    assert_eq!((office.stats("one").delivered_total, office.stats("two").delivered_total), (1, 1));
}

/// The lock file has no room when the engine starts, for longer than renewals are apart: there is no lease to renew yet.
#[test]
fn i01_a_start_that_takes_longer_than_the_lease_is_no_lost_lease() {
    let mut office = Office::new();
    office.options.lease = MINUTE;
    let log = office.answering("own", delivered());
    office.destination("one", "own", |spec| spec.policy.emission_deadline = 5 * SECOND);
    office.enqueue("one", 5);
    office.store.faults("start_worker", [Fault::Fail(StoreErrorKind::DiskFull); 40]);
    office.run_until(Until::Empty).unwrap();
    delivered_once(&office, &log, 5);
}
