//! Holds, breaker, probes, ramp, pace, missing emitters, versions, scopes.

use core::time::Duration;

use dlo_core::{EntryState, HoldCause, Outcome, Timestamp, destination::Pace, policy::Jitter, reason};
use dlo_engine::{Ended, Until};
use dlo_ports::store::HoldAct;

use crate::support::{Flights, HOUR, Log, MINUTE, Office, SECOND, delivered, http, refused_connection};
use crate::world::START;

/// An office whose destination `one` is down until that time after the start.
fn outage(span: Duration, change: impl FnOnce(&mut dlo_core::DestinationSpec)) -> (Office, Log, Flights) {
    let mut office = Office::new();
    office.options.idle_poll = 10 * SECOND;
    let flights = Flights::default();
    let (world, counted) = (office.world.clone(), flights.clone());
    let log = office.scripted("flaky", move |_| {
        let up = world.since_start() >= span;
        let (sleep, flight) = (world.sleep(Duration::from_millis(20)), up.then(|| counted.start()));
        async move {
            sleep.await;
            drop(flight);
            if up { delivered() } else { refused_connection() }
        }
    });
    office.destination("one", "flaky", change);
    (office, log, flights)
}

/// A one-hour outage with defaults ends with no dead letter, whatever the number of entries, and a ramped recovery.
fn outage_of_an_hour(count: usize) {
    let (office, log, flights) = outage(HOUR, |_| {});
    let entries = office.enqueue("one", count);
    office.run_for(HOUR + 10 * MINUTE).unwrap();
    office.run_until(Until::Empty).unwrap();
    assert_eq!(office.dead_letters(), [], "{count} entries");
    assert_eq!(office.stats("one").delivered_total, count as u64, "{count} entries");
    let up = Timestamp::from_micros(START).after(HOUR);
    let during = log.seen().iter().filter(|seen| seen.at < up).count();
    // Pages in flight when the breaker opened, and one probe every 5 minutes or so.
    assert!(during <= 16 + 5 + 20, "{count} entries: {during} emissions while the destination was down");
    assert!(flights.most() <= 16);
    let after: Vec<_> = log.seen().into_iter().filter(|seen| seen.at >= up).collect();
    if count > 1 {
        assert!(after[1].at > after[0].at, "the first emission after the outage is alone");
    }
    for entry in entries.iter().step_by(97) {
        assert!(office.entry(*entry).ended[0].counters.failed < 5);
    }
    office.check();
}

#[test]
fn d08_an_outage_of_an_hour_ends_without_dead_letters_1() {
    outage_of_an_hour(1);
}

#[test]
fn d08_an_outage_of_an_hour_ends_without_dead_letters_10() {
    outage_of_an_hour(10);
}

#[test]
fn d08_an_outage_of_an_hour_ends_without_dead_letters_100() {
    outage_of_an_hour(100);
}

#[test]
fn d08_an_outage_of_an_hour_ends_without_dead_letters_10000() {
    outage_of_an_hour(10_000);
}

/// After the probe, emissions in flight grow from one by doubling.
#[test]
fn recovery_is_ramped() {
    let (office, log, _) = outage(2 * MINUTE, |spec| spec.policy.jitter = Jitter::None);
    office.enqueue("one", 400);
    office.run_for(HOUR).unwrap();
    let up = Timestamp::from_micros(START).after(2 * MINUTE);
    let mut waves: Vec<(Timestamp, usize)> = Vec::new();
    for seen in log.seen().into_iter().filter(|seen| seen.at >= up) {
        match waves.last_mut() {
            Some((at, count)) if *at == seen.at => *count += 1,
            _ => waves.push((seen.at, 1)),
        }
    }
    let sizes: Vec<usize> = waves.into_iter().map(|(_, count)| count).collect();
    let ramp: Vec<usize> = sizes.iter().copied().take_while(|size| *size < 16).collect();
    assert!(ramp.len() >= 4 && ramp.is_sorted() && ramp[..2] == [1, 1], "{sizes:?}");
}

/// While held, nothing is emitted but one probe at a time; its success ends the hold.
#[test]
fn a_credential_failure_holds_and_a_probe_resumes() {
    let office = Office::new();
    let log = office.answering("own", http(401));
    office.destination("one", "own", |_| {});
    office.enqueue("one", 200);
    office.run_for(20 * SECOND).unwrap();
    let hold = office.health("one").hold.unwrap();
    assert_eq!((hold.cause, hold.reason), (HoldCause::Configuration, reason::HTTP_UNAUTHORIZED));
    assert!(log.len() <= 16, "{} emissions with a refused credential", log.len());
    assert_eq!(office.stats("one").failed_attempts_total, 0, "a hold charges nothing");
    let before = log.len();
    office.run_for(25 * SECOND).unwrap();
    assert_eq!(log.len(), before + 1, "one probe in that time");
    assert!(office.health("one").is_held());
    let log = office.answering("own", delivered());
    office.run_for(6 * MINUTE).unwrap();
    assert_eq!((log.len(), office.health("one").is_held()), (200, false));
    assert_eq!(office.dead_letters(), []);
    office.check();
}

#[test]
fn a_hold_by_a_person_stops_claiming_and_a_requested_probe_is_one_try() {
    let office = Office::new();
    let log = office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    office.enqueue("one", 50);
    office.act("one", HoldAct::Hold { reason: "maintenance".into() });
    assert_eq!(office.run_until(Until::Empty).unwrap(), Ended::Done, "held entries do not count as work left");
    assert_eq!(log.len(), 0);
    office.act("one", HoldAct::Probe);
    office.run_for(SECOND).unwrap();
    assert_eq!(log.len(), 1);
    office.act("one", HoldAct::Release);
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 50);
}

/// A hold that opens while a page is in hand gives the page back uncharged.
#[test]
fn a_hold_gives_back_what_was_not_started() {
    let office = Office::new();
    let (log, _) = office.slow("own", 2 * SECOND, delivered());
    office.destination("one", "own", |spec| spec.policy.concurrency = 1);
    let entries = office.enqueue("one", 10);
    let engine = office.engine();
    let (world, shutdown) = (office.world.clone(), office.world.sleep(MINUTE));
    let audit = office.audit("destination.hold", "one");
    office.world.run(async {
        let hold = async {
            world.sleep(SECOND).await;
            use dlo_ports::store::OfficeStore;
            let act = HoldAct::Hold { reason: "stop".into() };
            let names = vec!["one".parse().unwrap()];
            office.model.act_on_destinations(crate::support::tenant(), names, act, audit).await.unwrap();
        };
        futures_util::future::join(engine.run(shutdown), hold).await.0.unwrap();
    });
    assert!(log.len() <= 2, "{} emissions after the hold", log.len() - 1);
    assert!(office.live().iter().all(|row| row.held && row.state == EntryState::Ready));
    assert!(entries.iter().all(|entry| office.entry(*entry).last_failure.is_none()));
}

/// No emitter of that kind in the process: held, nothing is lost, and a process that has it resumes.
#[test]
fn a_missing_emitter_holds_and_discards_nothing() {
    let office = Office::new();
    office.destination("one", "own", |_| {});
    office.destination("good", "noop", |_| {});
    office.enqueue("one", 20);
    office.enqueue("good", 20);
    office.run_for(SECOND).unwrap();
    assert_eq!(office.health("one").hold.unwrap().cause, HoldCause::EmitterUnknown);
    assert_eq!(office.stats("good").delivered_total, 20);
    let log = office.answering("own", delivered());
    office.run_for(6 * MINUTE).unwrap();
    assert_eq!(log.len(), 20);
    assert!(!office.health("one").is_held());
    assert_eq!(office.stats("one").failed_attempts_total, 0);
}

/// A destination that changes while it is drained is drained under its new version.
#[test]
fn a_new_version_takes_effect_at_the_next_page() {
    let office = Office::new();
    let (old, _) = office.slow("old", SECOND, http(400));
    let new = office.answering("new", delivered());
    let small = |spec: &mut dlo_core::DestinationSpec| {
        spec.policy.page = 4;
        spec.policy.concurrency = 4;
    };
    office.destination("one", "old", small);
    office.enqueue("one", 40);
    let engine = office.engine();
    let world = office.world.clone();
    office.world.run(async {
        let change = async {
            world.sleep(Duration::from_millis(1_500)).await;
            use dlo_ports::store::OfficeStore;
            let mut spec = crate::support::spec("one", "new");
            small(&mut spec);
            office.model.apply_destinations(vec![spec], office.audit("destination.apply", "one")).await.unwrap();
        };
        let run = engine.run_until(Until::Empty, core::future::pending());
        futures_util::future::join(run, change).await.0.unwrap();
    });
    assert_eq!(old.len() + new.len(), 40);
    assert!(old.len() <= 12, "{} emissions by the old version", old.len());
    office.check();
}

/// Pace only delays: one emission a second, nothing charged, no busy polling.
#[test]
fn pace_only_delays() {
    let office = Office::new();
    let log = office.answering("own", delivered());
    office.destination("one", "own", |spec| spec.pace = Some(Pace { per_minute: 60, burst: 2 }));
    office.enqueue("one", 12);
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 12);
    let took = log.seen()[11].at.since(log.seen()[0].at);
    assert!(took >= 10 * SECOND && took < 11 * SECOND, "{took:?}");
    assert!(office.store.count("claim").0 <= 2 * 12, "{} claims for 12 entries", office.store.count("claim").0);
}

/// An engine that is narrowed leaves the rest alone (S-08).
#[test]
fn s08_a_scope_narrows_the_engine() {
    let mut office = Office::new();
    office.destination("one", "noop", |_| {});
    office.destination("two", "noop", |_| {});
    office.enqueue("one", 5);
    office.enqueue("two", 5);
    office.options.destinations = vec!["two".parse().unwrap()];
    office.run_until(Until::Empty).unwrap();
    assert_eq!((office.stats("one").delivered_total, office.stats("two").delivered_total), (0, 5));
}

/// Held entries end by age, with the sweep.
#[test]
fn a_held_entry_ends_by_age() {
    let office = Office::new();
    office.destination("one", "noop", |spec| spec.policy.max_age = HOUR);
    office.enqueue("one", 3);
    office.act("one", HoldAct::Hold { reason: "maintenance".into() });
    office.wait(HOUR);
    office.run_for(MINUTE).unwrap();
    assert_eq!(office.dead_letters().len(), 3);
    assert!(office.dead_letters().iter().all(|dead| dead.code == reason::MAX_AGE_EXCEEDED));
    office.check();
}

/// Past its deadline an entry is not emitted, also when it was claimed in time.
#[test]
fn an_expired_entry_is_not_emitted() {
    let office = Office::new();
    let (log, _) = office.slow("own", 5 * SECOND, delivered());
    office.destination("one", "own", |spec| spec.policy.concurrency = 1);
    let until = office.world.time().after(7 * SECOND);
    office.enqueue_with("one", 5, |item| item.deliver_by = Some(until));
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(office.dead_letters().len(), 3);
    office.check();
}

/// Idle means: nothing to do now, whatever waits for later.
#[test]
fn until_idle_ends_while_entries_wait() {
    let office = Office::new();
    office.answering("own", Outcome::Pending);
    office.destination("one", "own", |_| {});
    office.enqueue("one", 5);
    assert_eq!(office.run_until(Until::Idle).unwrap(), Ended::Done);
    assert!(office.world.since_start() < SECOND);
    assert_eq!(office.stats("one").depth.waiting, 5);
}

/// A person holds and asks for one try while a page is in hand: the page goes back, and one entry is tried.
#[test]
fn a_probe_lets_one_entry_into_a_hold_and_not_the_page_in_hand() {
    let office = Office::new();
    let (log, _) = office.slow("own", 2 * SECOND, delivered());
    office.destination("one", "own", |spec| spec.policy.concurrency = 1);
    office.enqueue("one", 10);
    // Long enough that several of the page could start before the probe is claimed.
    office.store.latency("claim", 5 * SECOND);
    let (engine, world, model) = (office.engine(), office.world.clone(), office.model.clone());
    let audits = [office.audit("destination.hold", "one"), office.audit("destination.probe", "one")];
    office.world.run(async {
        let person = async {
            use dlo_ports::store::OfficeStore;
            world.sleep(6 * SECOND).await;
            for (act, audit) in [HoldAct::Hold { reason: "look".into() }, HoldAct::Probe].into_iter().zip(audits) {
                let names = vec!["one".parse().unwrap()];
                model.act_on_destinations(crate::support::tenant(), names, act, audit).await.unwrap();
            }
        };
        futures_util::future::join(engine.run(world.sleep(MINUTE)), person).await.0.unwrap();
    });
    assert_eq!(log.len(), 3, "two that started before the lane heard of it, and the probe");
    assert!(office.live().iter().all(|row| row.held && row.state == EntryState::Ready));
}

/// A hold that opens while send marks are on their way stops what they were for; nothing is charged for it.
#[test]
fn a_hold_stops_entries_that_are_marked_already() {
    let office = Office::new();
    let (log, _) = office.slow("pays", Duration::from_millis(500), http(401));
    office.destination("one", "pays", |spec| {
        spec.duplicates = dlo_core::Duplicates::Harmful;
        spec.policy.concurrency = 8;
        spec.policy.page = 8;
    });
    office.store.latency("mark_sent", SECOND);
    let entries = office.enqueue("one", 4);
    let engine = office.engine();
    let (world, model) = (office.world.clone(), office.model.clone());
    let late: Vec<_> = (0..4).map(|_| office.item("one", |_| {})).collect();
    office.world.run(async {
        let run = engine.run(world.sleep(20 * SECOND));
        let later = async {
            use dlo_ports::store::EnqueueStore;
            world.sleep(Duration::from_millis(100)).await;
            model.enqueue(late).await.unwrap();
        };
        futures_util::future::join(run, later).await.0.unwrap();
    });
    assert_eq!(log.len(), 4, "emitted into a hold");
    assert!(entries.iter().all(|entry| log.by_entry().contains_key(entry)));
    assert_eq!(office.stats("one").failed_attempts_total, 0);
    assert!(office.live().iter().all(|row| row.state == EntryState::Ready), "at once, not after a delay");
    for row in office.live().iter().filter(|row| !log.by_entry().contains_key(&row.key.entry)) {
        assert_eq!(office.entry(row.key.entry).attempts.len(), 0, "an attempt without a try");
    }
    office.check();
}

/// What was learnt is not lost when somebody else changed the destination's health at the same time.
#[test]
fn evidence_survives_a_lost_race_for_health() {
    let office = Office::new();
    let log = office.answering("own", http(401));
    office.destination("one", "own", |_| {});
    office.enqueue("one", 1);
    office.store.latency("settle", SECOND);
    let engine = office.engine();
    let (world, model) = (office.world.clone(), office.model.clone());
    let audits = [office.audit("destination.hold", "one"), office.audit("destination.release", "one")];
    office.world.run(async {
        let person = async {
            use dlo_ports::store::OfficeStore;
            world.sleep(SECOND / 2).await;
            for (act, audit) in [HoldAct::Hold { reason: "look".into() }, HoldAct::Release].into_iter().zip(audits) {
                let names = vec!["one".parse().unwrap()];
                model.act_on_destinations(crate::support::tenant(), names, act, audit).await.unwrap();
            }
        };
        futures_util::future::join(engine.run(world.sleep(10 * SECOND)), person).await.0.unwrap();
    });
    assert_eq!(office.health("one").hold.map(|hold| hold.cause), Some(HoldCause::Configuration));
    assert_eq!(log.len(), 1, "tried again to learn what was known");
}

/// An emitter is told to end before the engine cuts it, so that it can still say whether it had sent.
#[test]
fn an_emitter_is_told_to_end_before_its_deadline() {
    let office = Office::new();
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, world) = (times.clone(), office.world.clone());
    office.scripted("own", move |emission| {
        seen.lock().unwrap().push((emission.timeout, emission.deadline.since(world.time())));
        core::future::ready(delivered())
    });
    office.destination("long", "own", |_| {});
    office.destination("short", "own", |spec| spec.policy.emission_deadline = SECOND);
    office.enqueue("long", 1);
    office.enqueue("short", 1);
    office.run_until(Until::Empty).unwrap();
    let expected = [29 * SECOND, Duration::from_millis(950)];
    let seen = times.lock().unwrap();
    assert!(expected.iter().all(|timeout| seen.contains(&(*timeout, *timeout))), "{seen:?}");
}
