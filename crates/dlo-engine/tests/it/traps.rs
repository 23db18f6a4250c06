//! The traps of the reference implementation that live in the engine: each test asserts the opposite behaviour.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{Class, Duplicates, EntryState, Failure, Outcome, policy::Jitter, reason};
use dlo_engine::{Ended, Until};
use dlo_ports::{BoxFuture, Emission, Emitted, Emitter, StoreErrorKind};

use crate::faulty::Fault;
use crate::support::{HOUR, MINUTE, Office, SECOND, delivered, http, refused_connection};

/// `MaxRetryAttempts` above 5 is effective: claims are counted and decide nothing.
#[test]
fn d01_eight_allowed_attempts_are_eight_emissions() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    let log = office.answering("down", http(503));
    office.destination("one", "down", |spec| {
        spec.policy.max_retry_attempts = 8;
        spec.policy.schedule = vec![MINUTE];
    });
    let entry = office.enqueue("one", 1)[0];
    office.run_for(3 * HOUR).unwrap();
    assert_eq!(log.len(), 8);
    let [dead] = office.dead_letters().try_into().unwrap();
    assert_eq!((dead.key.entry, dead.code), (entry, reason::MAX_RETRY_ATTEMPTS_EXCEEDED));
    // The original error is kept beside the limit (trap D12).
    assert_eq!((dead.class, dead.reason), (Class::Transient, reason::HTTP_UNAVAILABLE));
    assert_eq!(dead.counters.failed, 8);
    office.check();
}

/// Deferrals never use the allowance, however many there are.
#[test]
fn d02_deferrals_end_by_age_alone() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    let log = office.answering("later", Outcome::Deferred { until: None });
    office.destination("one", "later", |spec| spec.policy.max_age = 3 * HOUR);
    let entry = office.enqueue("one", 1)[0];
    office.run_for(2 * HOUR).unwrap();
    assert!(log.len() > 100, "only {} deferrals", log.len());
    let view = office.entry(entry);
    assert_eq!(view.summary.state, EntryState::Waiting);
    let counters = view.live.unwrap().progress.counters;
    assert_eq!((counters.failed, counters.crashed), (0, 0));
    assert_eq!(counters.deferred as usize, log.len());
    office.run_for(2 * HOUR).unwrap();
    assert_eq!(office.dead_letters()[0].code, reason::MAX_AGE_EXCEEDED);
    office.check();
}

/// Shutdowns release without charging, and what was never started is given back at once.
#[test]
fn d03_shutdown_charges_nothing() {
    let office = Office::new();
    let hung = office.hanging("hangs");
    office.destination("one", "hangs", |spec| spec.policy.emission_deadline = MINUTE);
    let entries = office.enqueue("one", 100);
    for round in 1..=6 {
        let began = office.world.time();
        assert_eq!(office.run_for(SECOND).unwrap(), Ended::Stopped);
        assert_eq!(office.world.time().since(began), SECOND + office.options.shutdown_grace);
        assert_eq!(hung.len(), 16 * round);
        assert_eq!(office.stats("one").depth.ready, 100);
    }
    for entry in &entries {
        let counters = office.entry(*entry).live.unwrap().progress.counters;
        assert_eq!((counters.failed, counters.crashed), (0, 0));
        assert_eq!(counters.interrupted, counters.claims, "every claim was given back as interrupted");
    }
    let log = office.answering("hangs", delivered());
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.by_entry().len(), 100);
    office.check();
}

/// Every failure waits by the schedule, also one that names no time.
#[test]
fn d04_a_failure_without_a_time_waits_by_the_schedule() {
    let office = Office::new();
    let failure = Failure::custom(Class::Transient, reason::EMISSION_RETRYABLE, dlo_core::Phase::Answered, "not now");
    let log = office.answering("fails", Outcome::RetryableFailure(failure));
    office.destination("one", "fails", |spec| spec.policy.jitter = Jitter::None);
    office.enqueue("one", 1);
    office.run_for(10 * MINUTE).unwrap();
    let times: Vec<Duration> = log.seen().windows(2).map(|two| two[1].at.since(two[0].at)).collect();
    assert_eq!(times.len(), 2, "three tries in ten minutes: at 0, 1 and 6");
    assert!(times[0] >= MINUTE && times[0] < MINUTE + SECOND, "{times:?}");
    assert!(times[1] >= 5 * MINUTE && times[1] < 5 * MINUTE + SECOND, "{times:?}");
}

/// An entry that failed is not tried again within the same pass.
#[test]
fn d05_a_full_page_of_failures_burns_one_attempt_each() {
    let office = Office::new();
    let log = office.answering("fails", http(503));
    office.destination("one", "fails", |spec| {
        spec.policy.page = 10;
        // Out of the way: this is about the pass, not about the breaker.
        spec.policy.breaker.failures = 1_000;
    });
    office.enqueue("one", 100);
    office.run_for(20 * SECOND).unwrap();
    assert_eq!(log.len(), 100);
    assert!(log.by_entry().values().all(|count| *count == 1));
    assert_eq!(office.dead_letters(), []);
}

/// An outcome that could not be saved is saved later; it is never a failed emission, and never emitted again.
#[test]
fn d06_a_failed_save_is_repeated_as_a_save() {
    for kind in [StoreErrorKind::Busy, StoreErrorKind::Unavailable, StoreErrorKind::DiskFull] {
        for saved in [false, true] {
            let office = Office::new();
            let log = office.answering("own", delivered());
            office.destination("one", "own", |_| {});
            let entries = office.enqueue("one", 3);
            let fault = if saved { Fault::SaveAndFail(kind) } else { Fault::Fail(kind) };
            office.store.faults("settle", [fault; 5]);
            office.run_for(20 * SECOND).unwrap();
            assert_eq!(log.len(), 3, "{kind:?}: emitted again");
            for entry in entries {
                let view = office.entry(entry);
                assert_eq!(view.summary.state, EntryState::Delivered, "{kind:?}");
                assert_eq!((view.attempts.len(), view.last_failure), (0, None), "{kind:?}");
            }
            office.check();
        }
    }
}

/// The disk may be full for longer than claims and leases last: what was delivered is still saved as that.
#[test]
fn d06_an_outcome_outlives_the_deadline_of_its_claim() {
    for duplicates in [Duplicates::Tolerated, Duplicates::Harmful] {
        let office = Office::new();
        let log = office.answering("own", delivered());
        office.destination("one", "own", |spec| spec.duplicates = duplicates);
        let entries = office.enqueue("one", 3);
        office.store.faults("settle", [Fault::Fail(StoreErrorKind::DiskFull); 300]);
        office.store.faults("heartbeat", [Fault::Fail(StoreErrorKind::DiskFull); 300]);
        office.run_for(HOUR).unwrap();
        assert_eq!(log.len(), 3, "{duplicates:?}: emitted again");
        for entry in entries {
            let view = office.entry(entry);
            assert_eq!(view.summary.state, EntryState::Delivered, "{duplicates:?}");
            assert_eq!((view.attempts.len(), view.last_failure), (0, None), "{duplicates:?}");
        }
        office.check();
    }
}

/// While the store fails, nothing is claimed; what is in hand is kept.
#[test]
fn d06_claiming_stops_while_the_store_fails() {
    let office = Office::new();
    let (log, _) = office.slow("own", SECOND, delivered());
    office.destination("one", "own", |_| {});
    office.destination("two", "own", |_| {});
    office.enqueue("one", 500);
    office.enqueue("two", 500);
    office.store.faults("settle", [Fault::Fail(StoreErrorKind::DiskFull); 40]);
    office.run_for(25 * SECOND).unwrap();
    let emitted = log.len();
    assert!(emitted <= 2 * 116, "{emitted} entries were emitted although nothing could be saved");
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.by_entry().len(), 1_000);
    assert!(office.store.count("claim").0 < 5_000, "claims without an end: {:?}", office.store.count("claim"));
    office.check();
}

/// A store that breaks at the very end is told too: whoever started the run should know, although all was delivered.
#[test]
fn d06_a_store_that_breaks_at_the_end_is_told() {
    let office = Office::new();
    office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    office.enqueue("one", 10);
    office.store.faults("stop_worker", [Fault::Fail(StoreErrorKind::Io)]);
    assert_eq!(office.run_until(Until::Empty).unwrap_err().code(), "store.io");
    office.run_until(Until::Empty).unwrap();
    office.check();
}

/// An error that does not pass ends the run, with its code, and loses nothing.
#[test]
fn d06_a_broken_store_ends_the_run_and_loses_nothing() {
    for kind in [StoreErrorKind::Io, StoreErrorKind::Corrupt, StoreErrorKind::Schema, StoreErrorKind::Fenced] {
        let office = Office::new();
        office.answering("own", delivered());
        office.destination("one", "own", |_| {});
        let entries = office.enqueue("one", 10);
        office.store.faults("settle", [Fault::Fail(kind)]);
        let error = office.run_for(MINUTE).unwrap_err();
        assert_eq!(error.code(), kind.code());
        assert!(office.world.since_start() < MINUTE, "it ended by itself");
        office.run_until(Until::Empty).unwrap();
        for entry in entries {
            let view = office.entry(entry);
            assert_eq!(view.summary.state, EntryState::Delivered);
            let failed = view.ended.iter().map(|ended| ended.counters.failed).sum::<u32>();
            assert_eq!(failed, 0, "{kind:?}: a failed save was charged");
        }
    }
}

/// Each page gets its own lease: a slow emitter never works on claims that are born old.
#[test]
fn d07_each_page_has_a_fresh_lease() {
    let mut office = Office::new();
    office.options.lease = 40 * SECOND;
    let (log, _) = office.slow("slow", 10 * SECOND, delivered());
    office.destination("one", "slow", |spec| {
        spec.policy.concurrency = 2;
        spec.policy.emission_deadline = 15 * SECOND;
    });
    office.enqueue("one", 60);
    // 300 s of work under a lease of 40 s.
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 60, "an entry was claimed again while it was worked on");
    assert_eq!(office.stats("one").delivered_total, 60);
}

/// With a backlog of new entries, a due retry is tried within two pages.
#[test]
fn d13_a_due_retry_is_not_starved_by_new_entries() {
    let office = Office::new();
    let log = office.answering("own", http(503));
    office.destination("one", "own", |spec| spec.policy.page = 10);
    let old = office.enqueue("one", 1)[0];
    office.run_for(SECOND).unwrap();
    office.wait(3 * MINUTE);
    assert_eq!(log.len(), 1);
    office.enqueue("one", 1_000);
    let log = office.answering("own", delivered());
    office.run_until(Until::Empty).unwrap();
    let position = log.seen().iter().position(|seen| seen.entry == old).unwrap();
    assert!(position < 20, "tried as number {position}");
}

/// A deterministic failure is dead-lettered at once.
#[test]
fn d14_a_deterministic_failure_is_not_retried() {
    let office = Office::new();
    let log = office.answering("own", http(400));
    office.destination("one", "own", |_| {});
    office.enqueue("one", 1);
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 1);
    let [dead] = office.dead_letters().try_into().unwrap();
    assert_eq!((dead.class, dead.code), (Class::Deterministic, reason::HTTP_BAD_REQUEST));
}

/// A hanging emitter delays nobody else, and is ended by its deadline.
#[test]
fn d15_a_hanging_destination_delays_no_other() {
    let office = Office::new();
    let hung = office.hanging("hangs");
    office.destination("hung", "hangs", |_| {});
    office.answering("own", delivered());
    let entry = office.enqueue("hung", 1)[0];
    for n in 0..9 {
        let name = format!("good-{n}");
        office.destination(&name, "own", |_| {});
        office.enqueue(&name, 300);
    }
    office.run_for(SECOND).unwrap();
    for n in 0..9 {
        assert_eq!(office.stats(&format!("good-{n}")).delivered_total, 300);
    }
    assert_eq!(hung.len(), 1);
    office.run_for(35 * SECOND).unwrap();
    let failure = office.entry(entry).last_failure.unwrap();
    assert_eq!((failure.class, failure.reason), (Class::Ambiguous, reason::EMISSION_DEADLINE));
}

/// Due times and leases follow the database's clock, however wrong the worker's own clock is.
#[test]
fn d17_the_database_clock_decides() {
    for skew in [-2 * 3_600_000_000_i64, 2 * 3_600_000_000] {
        let office = Office::new();
        office.world.skew(skew);
        let log = office.answering("own", http(503));
        office.destination("one", "own", |spec| spec.policy.jitter = Jitter::None);
        let entry = office.enqueue("one", 1)[0];
        office.run_for(SECOND).unwrap();
        let due = office.entry(entry).summary.due.unwrap();
        let expected = log.seen()[0].at.after(MINUTE);
        assert!(due >= expected && due < expected.after(SECOND), "skew {skew}: due {due}, expected {expected}");
        office.run_for(MINUTE + SECOND).unwrap();
        assert_eq!(log.len(), 2, "skew {skew}");
        // What a lost worker left behind is due at once, by the database's clock too.
        office.wait(10 * MINUTE);
        office.hanging("own");
        office.run_and_kill_after(SECOND);
        let log = office.answering("own", delivered());
        office.run_for(SECOND).unwrap();
        assert_eq!(log.len(), 1, "skew {skew}");
        office.check();
    }
}

struct Forgetful;

impl Emitter for Forgetful {
    fn batch_limit(&self) -> usize {
        10
    }

    fn emit(&self, batch: Vec<Emission>) -> BoxFuture<'_, Vec<Emitted>> {
        // The first emission gets no answer; the others get theirs in reverse order.
        let answers = batch.iter().skip(1).rev();
        let answers = answers.map(|emission| Emitted { entry: emission.entry, outcome: delivered() }).collect();
        Box::pin(core::future::ready(answers))
    }
}

/// A missing answer concerns its own entry alone.
#[test]
fn d22_a_missing_answer_is_a_failure_of_its_own_entry() {
    let office = Office::new();
    office.world.emitter("forgetful", Arc::new(Forgetful));
    office.destination("one", "forgetful", |_| {});
    let entries = office.enqueue("one", 10);
    office.run_for(SECOND).unwrap();
    assert_eq!(office.stats("one").delivered_total, 9);
    let failure = office.entry(entries[0]).last_failure.unwrap();
    assert_eq!((failure.class, failure.reason), (Class::Unknown, reason::EMISSION_NO_ANSWER));
}

/// A panic is caught, counts as unknown, and ends nothing else; so does an error without evidence.
#[test]
fn d22_a_panic_or_a_blank_error_ends_nothing_else() {
    let office = Office::new();
    office.scripted("panics", |_| async { panic!("on purpose") });
    office.destination("panicking", "panics", |_| {});
    office.answering("blank", Outcome::Failed(Failure::new(dlo_core::Observed::Nothing, "")));
    office.destination("blank", "blank", |_| {});
    office.destination("good", "noop", |_| {});
    let panicking = office.enqueue("panicking", 3);
    let blank = office.enqueue("blank", 3);
    office.enqueue("good", 3);
    office.run_for(SECOND).unwrap();
    assert_eq!(office.stats("good").delivered_total, 3);
    let failure = office.entry(panicking[2]).last_failure.unwrap();
    assert_eq!((failure.class, failure.reason), (Class::Unknown, reason::EMISSION_PANIC));
    assert_eq!(office.entry(blank[2]).last_failure.unwrap().class, Class::Unknown);
    assert_eq!(office.live().len(), 6);
}

/// A page that might outlast the lease is claimed smaller.
#[test]
fn d23_a_page_never_outlasts_its_lease() {
    let mut office = Office::new();
    office.options.lease = MINUTE;
    let (log, _) = office.slow("slow", 29 * SECOND, delivered());
    office.destination("one", "slow", |spec| spec.policy.concurrency = 3);
    office.enqueue("one", 30);
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 30);
    let calls = office.store.calls.lock().unwrap();
    let limits = calls.iter().filter(|(verb, _)| *verb == "claim").map(|(_, limit)| *limit);
    // Two rounds of three fit into a lease of 60 s with a deadline of 30 s.
    assert_eq!(limits.max(), Some(6));
}

#[test]
fn d19_a_release_is_counted_on_the_row() {
    let office = Office::new();
    office.hanging("hangs");
    office.destination("one", "hangs", |_| {});
    let entry = office.enqueue("one", 1)[0];
    office.run_for(SECOND).unwrap();
    let live = office.entry(entry).live.unwrap();
    assert_eq!((live.progress.counters.interrupted, live.progress.counters.claims), (1, 1));
}

#[test]
fn a_refused_connection_is_retried_and_then_delivered() {
    let office = Office::new();
    let log = office.scripted("flaky", |emission| {
        core::future::ready(if emission.attempt < 3 { refused_connection() } else { delivered() })
    });
    office.destination("one", "flaky", |_| {});
    let entry = office.enqueue("one", 1)[0];
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.seen().iter().map(|seen| seen.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    let keys: std::collections::BTreeSet<String> = log.seen().into_iter().map(|seen| seen.key).collect();
    assert_eq!(keys.len(), 1, "the operation key is the same on every try (I-11)");
    assert_eq!(office.entry(entry).attempts.len(), 3);
}
