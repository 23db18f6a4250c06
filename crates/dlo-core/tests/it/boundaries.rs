//! Boundaries: the last moment that is still in time, and the first that is not.

use core::time::Duration;

use dlo_core::{
    Class, DeadLetterId, Destination, Duplicates, Entry, Outcome, Timestamp,
    dead_letter::{Unreadable, by_operator, unreadable},
    decide::{Event, Next, may_emit},
    policy::DeliveryPolicy,
    reason,
    text::ActText,
};

use crate::support::{
    DEDUPLICATED, MINUTE, NOW, WINDOW, claimed, claimed_after, decide_at, decide_with, delivered, destination, emitted,
    exact, http, saved, timed_out,
};

const MICRO: Duration = Duration::from_micros(1);

fn unanswered() -> Entry {
    let mut entry = claimed_after(1);
    entry.progress.unanswered = true;
    entry
}

fn refusal(entry: &Entry, duplicates: Duplicates, now: Timestamp) -> Option<dlo_core::Reason> {
    may_emit(entry, &destination(duplicates, exact()), now).err()
}

#[test]
fn an_unanswered_send_to_a_harmful_destination_is_never_repeated() {
    assert_eq!(refusal(&unanswered(), Duplicates::Harmful, NOW), Some(reason::OUTCOME_AMBIGUOUS));
    assert_eq!(refusal(&claimed(), Duplicates::Harmful, NOW), None);
}

#[test]
fn an_unanswered_send_is_repeated_inside_its_window_only() {
    let entry = unanswered();
    // A send that begins later could arrive after the window.
    let end = entry.first_claimed.unwrap().after(WINDOW).before(exact().emission_deadline);
    assert_eq!(refusal(&entry, DEDUPLICATED, end.before(MICRO)), None);
    assert_eq!(refusal(&entry, DEDUPLICATED, end), Some(reason::OUTCOME_AMBIGUOUS));
    assert_eq!(refusal(&claimed(), DEDUPLICATED, end), None, "an answered one needs no window");
    assert_eq!(refusal(&entry, Duplicates::Tolerated, end), None);
}

#[test]
fn the_window_does_not_begin_again_with_a_redrive() {
    let next = unanswered().next_generation(1, 2, NOW.after(WINDOW), NOW.after(WINDOW));
    assert_eq!(refusal(&next, DEDUPLICATED, NOW.after(WINDOW)), Some(reason::OUTCOME_AMBIGUOUS));
}

#[test]
fn nothing_is_emitted_past_its_end() {
    let mut entry = claimed();
    let end = NOW.after(exact().max_age);
    assert_eq!(refusal(&entry, Duplicates::Tolerated, end.before(MICRO)), None);
    assert_eq!(refusal(&entry, Duplicates::Tolerated, end), Some(reason::MAX_AGE_EXCEEDED));
    entry.not_before = Some(NOW.after(MINUTE));
    assert_eq!(refusal(&entry, Duplicates::Tolerated, end), None, "age counts from `not_before` if that is later");
    entry.deliver_by = Some(NOW.after(MINUTE * 2));
    assert_eq!(refusal(&entry, Duplicates::Tolerated, NOW.after(MINUTE * 2)), Some(reason::MAX_AGE_EXCEEDED));
}

#[test]
fn an_allowance_of_one_ends_with_the_first_failure() {
    let place = destination(Duplicates::Tolerated, DeliveryPolicy { max_retry_attempts: 1, ..exact() });
    let failed = decide_at(&claimed(), &place, &Event::Emitted(http(503)), NOW);
    assert!(matches!(failed.next, Next::DeadLetter(_)));
    let pending = decide_at(&claimed(), &place, &Event::Emitted(Outcome::Pending), NOW);
    assert!(matches!(pending.next, Next::Wait { .. }));
}

#[test]
fn a_large_allowance_is_reached_by_failures_alone() {
    // Trap D1: claims are counted and decide nothing.
    let place = destination(Duplicates::Tolerated, DeliveryPolicy { max_retry_attempts: 8, ..exact() });
    let mut entry = claimed();
    entry.progress.counters.claims = 1_000;
    entry.progress.counters.deferred = 1_000;
    entry.progress.counters.interrupted = 1_000;
    for attempt in 1..=8 {
        let transition = decide_at(&entry, &place, &Event::Emitted(http(503)), NOW);
        assert_eq!(matches!(transition.next, Next::DeadLetter(_)), attempt == 8, "attempt {attempt}");
        entry.progress = transition.progress;
    }
}

#[test]
fn the_allowance_of_a_generation_begins_at_its_baseline() {
    let second = {
        let mut next = claimed_after(5).next_generation(1, 2, NOW, NOW);
        crate::support::claim(&mut next, NOW);
        next
    };
    let transition = emitted(&second, Duplicates::Tolerated, http(503));
    assert!(matches!(transition.next, Next::Wait { due, .. } if due == NOW.after(MINUTE)), "risk R5");
    assert_eq!(transition.progress.counters.failed, 6, "counters are never reset (I-07)");
    assert_eq!(transition.attempt.unwrap().number, 6);
    let success = emitted(&second, Duplicates::Tolerated, delivered());
    assert!(success.attempt.is_some(), "a redrive that succeeds is in the lineage's record");
}

#[test]
fn only_an_acceptance_settles_an_unanswered_send() {
    for (outcome, settles) in [
        (delivered(), true),
        (Outcome::Pending, true),
        (Outcome::Deferred { until: None }, false),
        (http(503), false),
        (http(401), false),
        (http(409), false),
    ] {
        let name = format!("{outcome:?}");
        let transition = emitted(&unanswered(), DEDUPLICATED, outcome);
        assert_eq!(transition.progress.unanswered, !settles, "{name}");
    }
}

#[test]
fn a_worker_lost_where_no_marks_are_kept_may_have_sent() {
    for (duplicates, expected) in [(DEDUPLICATED, true), (Duplicates::Tolerated, true), (Duplicates::Harmful, false)] {
        let transition = decide_at(&claimed(), &destination(duplicates, exact()), &Event::ClaimLost, NOW);
        assert_eq!(transition.progress.unanswered, expected, "{duplicates}");
    }
    // A worker that comes back after the window must not send again (risk R4).
    let late = decide_at(&claimed(), &destination(DEDUPLICATED, exact()), &Event::ClaimLost, NOW.after(WINDOW));
    assert!(matches!(late.next, Next::DeadLetter(draft) if draft.code == reason::OUTCOME_AMBIGUOUS));
}

#[test]
fn a_claim_from_before_a_destination_was_declared_harmful_may_have_sent() {
    let mut place = destination(Duplicates::Harmful, exact());
    place.applied = claimed().claim.unwrap().claimed;
    let transition = decide_at(&claimed(), &place, &Event::ClaimLost, NOW.after(MINUTE));
    assert!(transition.progress.unanswered, "no mark was kept while the claim ran");
    assert!(matches!(transition.next, Next::DeadLetter(draft) if draft.code == reason::OUTCOME_AMBIGUOUS));
}

#[test]
fn the_same_inputs_give_the_same_transition_and_other_randomness_another() {
    let place: Destination = destination(Duplicates::Tolerated, DeliveryPolicy::default());
    let decide = |random| decide_with(&claimed_after(3), &place, &Event::Emitted(http(503)), NOW, None, random);
    assert_eq!(decide([1; 18]), decide([1; 18]));
    assert_ne!(decide([1; 18]), decide([2; 18]));
    let mut other_id = [1; 18];
    other_id[0] = 2;
    assert_eq!(decide([1; 18]), decide(other_id), "the first ten bytes are for the dead letter's id only");
}

#[test]
fn an_unreadable_row_has_a_dead_letter_of_its_own() {
    let id = DeadLetterId::new(NOW, [3; 10]);
    let draft = unreadable(id, &"billing".parse().unwrap(), Unreadable::Envelope);
    assert_eq!(
        (draft.class, &draft.reason, &draft.code),
        (Class::Deterministic, &reason::ENTRY_UNREADABLE, &reason::ENTRY_UNREADABLE)
    );
    assert_eq!(draft.message.as_str(), "the stored envelope can't be read");
    let other = unreadable(id, &"billing".parse().unwrap(), Unreadable::Payload);
    assert_ne!(draft.fingerprint.hash, other.fingerprint.hash);
}

#[test]
fn a_person_s_dead_letter_keeps_the_last_failure_as_its_cause() {
    let id = DeadLetterId::new(NOW, [3; 10]);
    let of_operator = |entry: &Entry, note: &str| {
        by_operator(id, entry.progress.last_failure.as_ref(), &entry.destination, &ActText::new(note))
    };
    let draft = of_operator(&claimed_after(5), "customer is gone");
    assert_eq!((draft.class, &draft.reason), (Class::Transient, &reason::HTTP_UNAVAILABLE));
    assert_eq!(draft.code, reason::DEAD_LETTERED_BY_OPERATOR);
    assert_eq!(draft.message.as_str(), "customer is gone");
    assert_eq!(of_operator(&saved(1), "x").class, Class::Unknown);
}

#[test]
fn the_fingerprint_of_a_dead_letter_is_of_its_cause() {
    let by_limit = emitted(&claimed_after(4), Duplicates::Tolerated, http(503));
    let fingerprint = |transition: dlo_core::decide::Transition| match transition.next {
        Next::DeadLetter(draft) => draft.fingerprint,
        other => panic!("{other:?} is no dead letter"),
    };
    let expected = dlo_core::fingerprint::fingerprint(
        Class::Transient,
        &reason::HTTP_UNAVAILABLE,
        &"billing".parse().unwrap(),
        "status 503",
    );
    assert_eq!(fingerprint(by_limit), expected);
    assert_ne!(fingerprint(emitted(&claimed(), Duplicates::Harmful, timed_out())), expected);
}
