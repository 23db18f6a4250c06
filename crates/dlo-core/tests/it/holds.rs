//! Holds, breaker, probe and ramp.

use core::time::Duration;

use dlo_core::{
    Class, DeliveryPolicy, Health, Hold, HoldCause, Timestamp,
    health::{Admission, ManualHold},
    observe::{Observation, begin_probe, emitter_found, emitter_unknown, observe},
    reason,
    text::ActText,
};

use crate::support::{MINUTE, NOW, entry_id};

const SECOND: Duration = Duration::from_secs(1);
const MANY: u64 = 1_000;

fn policy() -> DeliveryPolicy {
    DeliveryPolicy::default()
}

fn transient(entry: u64) -> Observation {
    Observation::Transient { entry: entry_id(entry), reason: reason::CONNECT_FAILED }
}

fn resource(entry: u64) -> Observation {
    Observation::Resource { entry: entry_id(entry), reason: reason::HTTP_NOT_FOUND }
}

fn configuration(entry: u64) -> Observation {
    Observation::Configuration { entry: entry_id(entry), reason: reason::HTTP_UNAUTHORIZED }
}

fn see(health: &Health, observations: &[Observation], waiting: u64, now: Timestamp) -> Health {
    observe(health, &policy(), observations, waiting, now).unwrap_or_else(|| health.clone())
}

fn cause(health: &Health) -> Option<HoldCause> {
    health.hold.as_ref().map(|hold| hold.cause)
}

fn held_by_breaker() -> Health {
    see(&Health::default(), &[1, 2, 3, 4, 5].map(transient), MANY, NOW)
}

#[test]
fn healthy_traffic_changes_nothing() {
    let healthy = Health::default();
    for observations in [
        vec![Observation::Success; 100],
        vec![Observation::Answered],
        vec![Observation::Nothing, Observation::Success],
        Vec::new(),
    ] {
        assert_eq!(observe(&healthy, &policy(), &observations, MANY, NOW), None, "{observations:?}");
    }
}

#[test]
fn the_breaker_opens_at_five_failures_of_three_entries() {
    assert_eq!(cause(&see(&Health::default(), &[1, 2, 3, 3].map(transient), MANY, NOW)), None);
    let opened = see(&Health::default(), &[1, 2, 3, 3, 3].map(transient), MANY, NOW);
    let hold = opened.hold.clone().unwrap();
    assert_eq!((hold.cause, hold.class, hold.reason), (HoldCause::Breaker, Class::Transient, reason::CONNECT_FAILED));
    assert_eq!((hold.since, hold.next_probe, hold.failed_probes), (NOW, NOW.after(SECOND * 30), 0));
    assert_eq!(opened.admission(NOW), Admission::Held(NOW.after(SECOND * 30)));
    assert_eq!(cause(&see(&Health::default(), &[1, 2, 2, 2, 2, 2].map(transient), MANY, NOW)), None);
}

#[test]
fn fewer_entries_are_enough_when_fewer_are_waiting() {
    let one_entry = [1; 5].map(transient);
    assert_eq!(cause(&see(&Health::default(), &one_entry, 1, NOW)), Some(HoldCause::Breaker));
    assert_eq!(cause(&see(&Health::default(), &one_entry, 0, NOW)), Some(HoldCause::Breaker));
    assert_eq!(cause(&see(&Health::default(), &one_entry, 2, NOW)), None);
    assert_eq!(cause(&see(&Health::default(), &[1, 2, 1, 2, 1].map(transient), 2, NOW)), Some(HoldCause::Breaker));
}

#[test]
fn failures_count_over_batches_and_any_answer_ends_the_run() {
    let four = see(&Health::default(), &[1, 2, 3, 4].map(transient), MANY, NOW);
    assert_eq!(cause(&see(&four, &[transient(5)], MANY, NOW)), Some(HoldCause::Breaker));
    for answer in [Observation::Success, Observation::Answered, resource(9)] {
        let answered = see(&four, &[answer, transient(5)], MANY, NOW);
        assert_eq!((answered.consecutive, answered.streak.len(), cause(&answered)), (1, 1, None));
    }
    assert_eq!(observe(&four, &policy(), &[Observation::Nothing], MANY, NOW), None);
}

#[test]
fn one_bad_entry_among_healthy_ones_stops_costing_writes() {
    let health = see(&Health::default(), &[1; 5].map(transient), MANY, NOW);
    assert_eq!(cause(&health), None);
    assert_eq!(observe(&health, &policy(), &[transient(1)], MANY, NOW), None);
}

#[test]
fn late_failures_do_not_move_the_probe() {
    let held = held_by_breaker();
    let later = NOW.after(SECOND * 10);
    assert_eq!(observe(&held, &policy(), &[6, 7, 8].map(transient), MANY, later), None);
}

#[test]
fn waits_double_from_the_first_to_the_longest() {
    let (mut health, mut now) = (held_by_breaker(), NOW);
    let mut waits = Vec::new();
    for probe in 0..6 {
        let Admission::Held(due) = health.admission(now) else { panic!("must be held") };
        waits.push(due.since(now).as_secs());
        assert_eq!(begin_probe(&health, &policy(), due.before(Duration::from_micros(1))), None);
        now = due;
        assert_eq!(health.admission(now), Admission::Probe);
        health = begin_probe(&health, &policy(), now).unwrap();
        assert!(matches!(health.admission(now), Admission::Held(_)), "one probe at a time");
        health = see(&health, &[transient(probe)], MANY, now);
    }
    assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
}

#[test]
fn a_probe_whose_worker_died_has_failed() {
    let held = held_by_breaker();
    let probing = begin_probe(&held, &policy(), NOW.after(SECOND * 30)).unwrap();
    assert_eq!(probing.hold.as_ref().unwrap().failed_probes, 1);
    assert_eq!(probing.admission(NOW.after(SECOND * 90)), Admission::Probe, "the next one comes without anyone's word");
}

#[test]
fn a_probe_is_alone_for_as_long_as_its_emission_may_take() {
    let mut slow = policy();
    slow.breaker.probe_min = SECOND;
    let held = observe(&Health::default(), &slow, &[1, 2, 3, 4, 5].map(transient), MANY, NOW).unwrap();
    let at = NOW.after(SECOND);
    let probing = begin_probe(&held, &slow, at).unwrap();
    assert_eq!(probing.admission(at), Admission::Held(at.after(slow.emission_deadline)));
    let failed = observe(&probing, &slow, &[transient(1)], MANY, at.after(SECOND)).unwrap();
    assert_eq!(failed.admission(at.after(SECOND)), Admission::Held(at.after(SECOND * 3)), "its wait, from its end");
}

#[test]
fn a_success_closes_and_the_ramp_begins_with_one() {
    let mut health = see(&held_by_breaker(), &[Observation::Success], MANY, NOW);
    assert_eq!((health.hold.clone(), health.consecutive, health.streak.len()), (None, 0, 0));
    let mut ramp = vec![health.ramp];
    for _ in 0..4 {
        assert_eq!(health.admission(NOW), Admission::Open(health.ramp));
        health = see(&health, &[Observation::Success, Observation::Success], MANY, NOW);
        ramp.push(health.ramp);
    }
    assert_eq!(ramp, [Some(1), Some(2), Some(4), Some(8), None]);
    assert_eq!(health.admission(NOW), Admission::Open(None));
}

#[test]
fn a_failure_halves_the_ramp_and_a_mixed_batch_does_not_raise_it() {
    let ramping = Health { ramp: Some(8), ..Health::default() };
    assert_eq!(see(&ramping, &[Observation::Success, transient(1)], MANY, NOW).ramp, Some(4));
    assert_eq!(see(&ramping, &[Observation::Success, Observation::Answered], MANY, NOW).ramp, Some(8));
    let lowest = Health { ramp: Some(1), ..Health::default() };
    assert_eq!(see(&lowest, &[transient(1)], MANY, NOW).ramp, Some(1));
}

#[test]
fn a_refusal_is_an_answer_to_a_breaker_and_to_nothing_else() {
    assert_eq!(cause(&see(&held_by_breaker(), &[Observation::Answered], MANY, NOW)), None);
    let held = see(&Health::default(), &[configuration(1)], MANY, NOW);
    assert_eq!(observe(&held, &policy(), &[Observation::Answered], MANY, NOW), None);
}

#[test]
fn configuration_evidence_holds_at_once_and_outweighs_the_breaker() {
    let held = see(&Health::default(), &[configuration(1)], MANY, NOW);
    let hold = held.hold.clone().unwrap();
    assert_eq!((hold.cause, hold.class), (HoldCause::Configuration, Class::Configuration));
    assert_eq!(hold.reason, reason::HTTP_UNAUTHORIZED);
    let turned = see(&held_by_breaker(), &[configuration(1)], MANY, NOW.after(SECOND));
    assert_eq!((cause(&turned), turned.hold.unwrap().since), (Some(HoldCause::Configuration), NOW));
    let closed = see(&held, &[Observation::Success], MANY, NOW.after(MINUTE));
    assert_eq!((closed.hold, closed.last_success), (None, Some(NOW.after(MINUTE))));
}

#[test]
fn resource_failures_hold_at_five_distinct_entries() {
    let four = see(&Health::default(), &[1, 2, 3, 4, 4, 4].map(resource), MANY, NOW);
    assert_eq!(cause(&four), None);
    let held = see(&four, &[resource(5)], MANY, NOW);
    assert_eq!(cause(&held), Some(HoldCause::Configuration));
    let after_success = see(&four, &[Observation::Success, resource(5)], MANY, NOW);
    assert_eq!((cause(&after_success), after_success.resource_streak.len()), (None, 1));
    assert_eq!(after_success.last_success, Some(NOW), "it contradicts what the four have met");
    let answered = see(&four, &[Observation::Answered], MANY, NOW);
    assert_eq!(answered.resource_streak.len(), 4, "a refusal of another kind contradicts nothing");
}

#[test]
fn holds_by_a_person_are_never_changed() {
    let manual = ManualHold { since: NOW, actor: "local:alice".to_owned(), reason: ActText::new("maintenance") };
    let held = Health { manual: Some(manual.clone()), ..Health::default() };
    for observation in [Observation::Success, configuration(1), transient(1), resource(1), Observation::Answered] {
        assert_eq!(see(&held, &[observation], 1, NOW).manual, Some(manual.clone()));
    }
    assert_eq!(begin_probe(&held, &policy(), NOW), None);
    let asked = Health { probe_requested: true, ..held.clone() };
    let probing = begin_probe(&asked, &policy(), NOW).unwrap();
    assert_eq!(probing, held, "one try, and only one");
    assert_eq!(observe(&probing, &policy(), &[Observation::Success], MANY, NOW), None);
}

#[test]
fn a_requested_probe_does_not_wait_for_its_time() {
    let asked = Health { probe_requested: true, ..held_by_breaker() };
    let probing = begin_probe(&asked, &policy(), NOW).unwrap();
    assert!(!probing.probe_requested);
    assert_eq!(probing.admission(NOW), Admission::Held(NOW.after(MINUTE)));
}

/// The clock was an hour ahead when the hold was saved, and is right again.
#[test]
fn a_hold_from_a_clock_that_was_ahead_is_due_for_one_probe() {
    let right = NOW.before(MINUTE * 60);
    let health = held_by_breaker();
    assert_eq!(health.admission(right), Admission::Probe);
    let probing = begin_probe(&health, &policy(), right).unwrap();
    assert_eq!(probing.admission(right), Admission::Held(right.after(MINUTE)), "one probe at a time");
    let hold = probing.hold.as_ref().unwrap();
    assert_eq!((hold.since, hold.failed_probes), (right, 1));
    assert_eq!(probing.admission(right.after(MINUTE)), Admission::Probe);

    let unknown = emitter_unknown(&Health::default(), &policy(), NOW).unwrap();
    let again = emitter_unknown(&unknown, &policy(), right).unwrap();
    assert_eq!(again.hold.as_ref().unwrap().since, right);
    assert_eq!(emitter_unknown(&again, &policy(), right), None, "nothing to write while it is not due");
}

/// The hold began in time; the clock jumped ahead, a probe was taken and failed, and the clock came back.
#[test]
fn a_probe_on_a_clock_that_was_ahead_delays_no_later_probe() {
    let ahead = NOW.after(MINUTE * 60 * 24 * 9);
    let probing = begin_probe(&held_by_breaker(), &policy(), ahead).unwrap();
    let failed = see(&probing, &[transient(1)], MANY, ahead);
    let right = NOW.after(MINUTE);
    for health in [probing, failed] {
        assert_eq!(health.admission(right), Admission::Probe);
        let again = begin_probe(&health, &policy(), right).unwrap();
        assert!(
            matches!(again.admission(right), Admission::Held(until) if until <= right.after(MINUTE * 5)),
            "one at a time"
        );
    }
}

#[test]
fn a_clock_that_was_ahead_ends_no_hold_by_a_restore() {
    let mut held = held_by_breaker();
    let hold = held.hold.as_mut().unwrap();
    (hold.cause, hold.next_probe) = (HoldCause::Restore, Timestamp::MAX);
    assert_eq!(held.admission(NOW.before(MINUTE)), Admission::Held(Timestamp::MAX));
}

#[test]
fn a_hold_by_a_restore_ends_by_a_person_only() {
    let hold = Hold {
        cause: HoldCause::Restore,
        class: Class::Ambiguous,
        reason: reason::OUTCOME_AMBIGUOUS,
        since: NOW,
        next_probe: Timestamp::MAX,
        next_probe_set: NOW,
        failed_probes: 0,
    };
    let held = Health { hold: Some(hold), probe_requested: true, ..Health::default() };
    let probing = begin_probe(&held, &policy(), NOW).unwrap();
    for observation in [Observation::Success, Observation::Answered, transient(1), configuration(1)] {
        let after = see(&probing, &[observation], MANY, NOW);
        assert_eq!((cause(&after), after.admission(NOW)), (Some(HoldCause::Restore), Admission::Held(Timestamp::MAX)));
    }
    assert_eq!(emitter_unknown(&held, &policy(), NOW), None);
}

#[test]
fn a_destination_without_an_emitter_is_held_until_one_is_found() {
    let held = emitter_unknown(&Health::default(), &policy(), NOW).unwrap();
    assert_eq!(cause(&held), Some(HoldCause::EmitterUnknown));
    assert_eq!(emitter_unknown(&held, &policy(), NOW), None, "nothing to write while it is not due");
    let again = emitter_unknown(&held, &policy(), NOW.after(SECOND * 30)).unwrap();
    assert_eq!(again.admission(NOW.after(SECOND * 30)), Admission::Held(NOW.after(SECOND * 90)));
    assert_eq!(again.hold.as_ref().unwrap().since, NOW);
    let found = emitter_found(&again).unwrap();
    assert_eq!(found.admission(NOW), Admission::Open(None));
    assert_eq!(emitter_found(&found), None);
    assert_eq!(emitter_found(&held_by_breaker()), None);
}

#[test]
fn a_hold_in_the_middle_of_a_batch_starts_no_ramp_of_the_batch() {
    // The first success closes; what follows in the same batch neither doubles nor halves the new ramp.
    let closed = see(&held_by_breaker(), &[Observation::Success, Observation::Success], MANY, NOW);
    assert_eq!(closed.ramp, Some(1));
}
