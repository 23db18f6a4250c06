//! One test per row of the routing table, and one per bound (design section 4).

use std::collections::BTreeSet;

use dlo_core::{
    Class, DeadLetterDraft, Duplicates, EntryState, Failure, Lane, Observed, Outcome, Phase, Reason, Status, Timestamp,
    decide::{Event, Next, Transition},
    observe::Observation,
    policy::{Alternative, DeliveryPolicy},
    reason,
    route::{BOUNDS, ROWS, Route, What},
    text::{Code, ErrorText},
};

use crate::support::{
    DEDUPLICATED, MINUTE, NOW, WINDOW, claimed, claimed_after, custom, decide_at, decide_with, delivered, destination,
    emitted, entry_id, exact, http, timed_out,
};

const ALL_DUPLICATES: [Duplicates; 3] = [DEDUPLICATED, Duplicates::Tolerated, Duplicates::Harmful];

fn waits(transition: &Transition) -> (Lane, Timestamp, Status) {
    match transition.next {
        Next::Wait { lane, due, status } => (lane, due, status),
        ref other => panic!("{other:?} is no wait"),
    }
}

fn dead(transition: &Transition) -> &DeadLetterDraft {
    match &transition.next {
        Next::DeadLetter(draft) => draft,
        other => panic!("{other:?} is no dead letter"),
    }
}

fn charged(transition: &Transition) -> bool {
    transition.attempt.as_ref().expect("an attempt").charged
}

#[test]
fn every_what_has_an_unconditional_last_row() {
    let mut ids = BTreeSet::new();
    for row in ROWS {
        assert!(ids.insert(row.id), "{} twice", row.id);
        let last = ROWS.iter().rfind(|other| other.what == row.what).unwrap();
        assert!(last.given.is_empty(), "{:?} may find no row", row.what);
    }
    for bound in BOUNDS {
        assert!(ids.insert(bound.id), "{} twice", bound.id);
        assert!(!bound.route.is_wait(), "{} ends no wait", bound.id);
    }
    let whats: BTreeSet<What> = ROWS.iter().map(|row| row.what).collect();
    assert_eq!(whats.len(), 16, "each What stands in the table");
}

#[test]
fn a_wait_is_never_terminal_and_an_end_has_its_status() {
    for row in ROWS {
        let terminal = matches!(row.status, Some(Status::Delivered | Status::DeadLettered));
        assert_eq!(terminal, !row.route.is_wait(), "{}", row.id);
        assert!(!(row.is_charged() && row.status == Some(Status::Deferred)), "{} charges a deferral", row.id);
    }
}

#[test]
fn row_accepted() {
    for duplicates in ALL_DUPLICATES {
        let first = emitted(&claimed(), duplicates, delivered());
        assert_eq!(first.next, Next::Delivered { receipt: None });
        assert_eq!((first.attempt, first.progress.attempts), (None, 0), "a first-try success writes no attempt");
        assert_eq!(first.observation, Observation::Success);
    }
    let later = emitted(&claimed_after(2), Duplicates::Tolerated, delivered());
    let attempt = later.attempt.expect("a success after failures is recorded");
    assert_eq!((attempt.number, attempt.outcome, attempt.charged), (3, Code::new("delivered"), false));
    assert!(later.progress.last_failure.is_some(), "delivery does not wipe the failure history (trap D12)");
}

#[test]
fn row_pending() {
    let transition = emitted(&claimed_after(1), Duplicates::Tolerated, Outcome::Pending);
    assert_eq!(waits(&transition), (Lane::Retry, NOW.after(MINUTE), Status::Deferred));
    assert_eq!((charged(&transition), transition.progress.counters.failed), (false, 1));
    assert_eq!(transition.progress.counters.deferred, 1);
    assert_eq!(transition.observation, Observation::Success, "it took note of it");
    assert_eq!(transition.progress.last_failure, claimed_after(1).progress.last_failure, "trap D12");
}

#[test]
fn row_deferred() {
    let until = NOW.after(MINUTE * 7);
    for (asked, due) in [(None, NOW.after(MINUTE)), (Some(until), until)] {
        let transition = emitted(&claimed_after(4), Duplicates::Harmful, Outcome::Deferred { until: asked });
        assert_eq!(waits(&transition), (Lane::Retry, due, Status::Deferred));
        assert_eq!((charged(&transition), transition.progress.counters.failed), (false, 4));
        assert_eq!(transition.observation, Observation::Nothing);
    }
}

#[test]
fn row_transient() {
    for duplicates in ALL_DUPLICATES {
        let transition = emitted(&claimed(), duplicates, http(503));
        assert_eq!(waits(&transition), (Lane::Retry, NOW.after(MINUTE), Status::RetryableFailure));
        assert_eq!((charged(&transition), transition.progress.counters.failed), (true, 1));
        let observed = Observation::Transient { entry: entry_id(1), reason: reason::HTTP_UNAVAILABLE };
        assert_eq!(transition.observation, observed);
        assert!(!transition.progress.unanswered);
    }
}

#[test]
fn row_ambiguous_repeatable() {
    for duplicates in [DEDUPLICATED, Duplicates::Tolerated] {
        let transition = emitted(&claimed(), duplicates, timed_out());
        assert_eq!(waits(&transition), (Lane::Retry, NOW.after(MINUTE), Status::Failed));
        assert!(charged(&transition) && transition.progress.unanswered);
    }
}

#[test]
fn row_ambiguous() {
    let transition = emitted(&claimed(), Duplicates::Harmful, timed_out());
    let draft = dead(&transition);
    assert_eq!((draft.class, &draft.reason), (Class::Ambiguous, &reason::TIMEOUT_AFTER_SEND));
    assert_eq!(draft.code, reason::OUTCOME_AMBIGUOUS);
    assert!(transition.progress.unanswered, "a redrive has to see it");
    assert_eq!(transition.progress.counters.failed, 1, "the terminal attempt counts (trap D12)");
}

#[test]
fn row_deterministic() {
    for duplicates in ALL_DUPLICATES {
        let transition = emitted(&claimed(), duplicates, http(422));
        let draft = dead(&transition);
        assert_eq!((draft.class, &draft.reason), (Class::Deterministic, &reason::HTTP_UNPROCESSABLE));
        assert_eq!(draft.code, reason::HTTP_UNPROCESSABLE, "the reason tells these apart (C-012)");
        assert_eq!(draft.message, ErrorText::new("status 422"));
        assert_eq!(draft.rule, Some(Code::new("http.422")));
        assert_eq!(transition.observation, Observation::Answered);
    }
}

#[test]
fn row_configuration_destination() {
    for duplicates in ALL_DUPLICATES {
        let transition = emitted(&claimed_after(4), duplicates, http(401));
        assert_eq!(waits(&transition), (Lane::Retry, NOW, Status::Deferred), "the hold is the wait");
        assert!(!charged(&transition));
        assert_eq!((transition.progress.counters.failed, transition.progress.counters.deferred), (4, 1));
        let observed = Observation::Configuration { entry: entry_id(1), reason: reason::HTTP_UNAUTHORIZED };
        assert_eq!(transition.observation, observed);
    }
}

#[test]
fn row_configuration_resource() {
    let transition = emitted(&claimed(), Duplicates::Tolerated, http(404));
    assert_eq!(waits(&transition), (Lane::Retry, NOW.after(MINUTE), Status::Deferred));
    assert!(!charged(&transition));
    let observed = Observation::Resource { entry: entry_id(1), reason: reason::HTTP_NOT_FOUND };
    assert_eq!(transition.observation, observed);
}

#[test]
fn row_configuration_resource_alone() {
    let place = destination(Duplicates::Tolerated, exact());
    let mut entry = claimed();
    let first = decide_at(&entry, &place, &Event::Emitted(http(404)), NOW);
    entry.progress = first.progress;
    let later = NOW.after(MINUTE * 2);
    let decide = |outcome, success| decide_with(&entry, &place, &Event::Emitted(outcome), later, success, [7; 18]);
    let transition = decide(http(404), Some(NOW.after(MINUTE)));
    let draft = dead(&transition);
    assert_eq!((draft.class, &draft.code), (Class::Configuration, &reason::HTTP_NOT_FOUND));
    assert_eq!(transition.progress.counters.failed, 0);
    waits(&decide(http(404), Some(NOW)));
    waits(&decide(http(404), None));
    waits(&decide(http(410), Some(NOW.after(MINUTE))));
}

#[test]
fn row_unknown_harmful() {
    let transition = emitted(&claimed(), Duplicates::Harmful, custom(None, Phase::Unknown));
    let draft = dead(&transition);
    assert_eq!((draft.class, draft.code.as_str()), (Class::Unknown, "provider.said_so"));
    assert!(transition.progress.unanswered, "nothing says that it was not sent");
}

#[test]
fn row_unknown() {
    for duplicates in [DEDUPLICATED, Duplicates::Tolerated] {
        let transition = emitted(&claimed(), duplicates, custom(None, Phase::Unknown));
        assert_eq!(waits(&transition), (Lane::Retry, NOW.after(MINUTE), Status::Failed));
        assert!(charged(&transition));
        assert_eq!(transition.observation, Observation::Nothing);
        let unlisted = emitted(&claimed(), duplicates, http(520));
        let observed = Observation::Transient { entry: entry_id(1), reason: reason::HTTP_UNEXPECTED };
        assert_eq!(unlisted.observation, observed, "no reason to retry, but one to stop asking for a while");
        assert_eq!(emitted(&claimed(), duplicates, http(102)).observation, Observation::Answered);
    }
}

#[test]
fn row_provider_dead_lettered() {
    let failure = Failure::custom(Class::Deterministic, Reason::known("provider.dlq"), Phase::Answered, "in its queue");
    let transition = emitted(&claimed(), Duplicates::Tolerated, Outcome::DeadLettered(failure));
    let draft = dead(&transition);
    assert_eq!((draft.class, draft.code.as_str()), (Class::Deterministic, "provider.dlq"));
    assert_eq!(transition.observation, Observation::Answered);
}

#[test]
fn row_worker_lost() {
    let place = destination(Duplicates::Harmful, exact());
    let transition = decide_at(&claimed_after(4), &place, &Event::ClaimLost, NOW);
    assert_eq!(waits(&transition), (Lane::Suspect, NOW, Status::RetryableFailure), "status as before the claim");
    assert!(!charged(&transition) && !transition.progress.unanswered);
    assert_eq!(transition.progress.counters.crashed, 0, "only a sole suspect is charged with a crash");
    let attempt = transition.attempt.unwrap();
    assert_eq!((attempt.outcome, attempt.reason), (Code::new("claim_lost"), Some(reason::CLAIM_EXPIRED)));
    assert_eq!(transition.progress.last_failure, claimed_after(4).progress.last_failure, "trap D12");
}

#[test]
fn row_worker_lost_alone() {
    let place = destination(Duplicates::Tolerated, exact());
    let mut entry = claimed();
    entry.claim.as_mut().unwrap().sole_suspect = true;
    for crash in 1..=3 {
        let transition = decide_at(&entry, &place, &Event::ClaimLost, NOW);
        assert_eq!((charged(&transition), transition.progress.counters.crashed), (false, crash));
        if crash < 3 {
            assert_eq!(waits(&transition), (Lane::Suspect, NOW, Status::Pending));
        } else {
            assert_eq!(dead(&transition).code, reason::WORKER_LOST);
            assert_eq!(dead(&transition).reason, reason::CLAIM_EXPIRED);
        }
        entry.progress = transition.progress;
    }
}

#[test]
fn a_lost_claim_with_a_send_mark_is_ambiguous() {
    let mut entry = claimed();
    entry.claim.as_mut().unwrap().send_mark = true;
    entry.claim.as_mut().unwrap().sole_suspect = true;
    let harmful = decide_at(&entry, &destination(Duplicates::Harmful, exact()), &Event::ClaimLost, NOW);
    assert_eq!(dead(&harmful).code, reason::OUTCOME_AMBIGUOUS);
    assert_eq!(dead(&harmful).reason, reason::CLAIM_EXPIRED_AFTER_SEND);
    assert!(harmful.progress.unanswered);
    assert_eq!(harmful.observation, Observation::Nothing, "a lost worker says nothing about the destination");
    let tolerated = decide_at(&entry, &destination(Duplicates::Tolerated, exact()), &Event::ClaimLost, NOW);
    assert_eq!(waits(&tolerated).2, Status::Failed);
}

#[test]
fn rows_interrupted() {
    // Traps D2, D3: restarts charge nothing, however many.
    let mut entry = claimed_after(4);
    let place = destination(Duplicates::Tolerated, exact());
    for restart in 1..=20 {
        let transition = decide_at(&entry, &place, &Event::Interrupted, NOW);
        assert_eq!(waits(&transition), (Lane::Retry, NOW, Status::RetryableFailure), "status as before the claim");
        assert_eq!((charged(&transition), transition.progress.counters.interrupted), (false, restart));
        assert_eq!(transition.observation, Observation::Nothing);
        entry.progress = transition.progress;
    }
    assert_eq!(entry.progress.counters.failed, 4);
    assert_eq!(entry.progress.last_failure, claimed_after(4).progress.last_failure, "trap D12");
    let harmful = decide_at(&claimed(), &destination(Duplicates::Harmful, exact()), &Event::Interrupted, NOW);
    assert_eq!(dead(&harmful).code, reason::OUTCOME_AMBIGUOUS);
    assert_eq!(dead(&harmful).reason, reason::EMISSION_INTERRUPTED);
    assert!(!charged(&harmful) && harmful.progress.unanswered);
    let late = decide_at(&claimed(), &destination(DEDUPLICATED, exact()), &Event::Interrupted, NOW.after(WINDOW));
    assert_eq!(dead(&late).code, reason::OUTCOME_AMBIGUOUS, "the window is over (risk R4)");
}

#[test]
fn rows_not_sent() {
    for duplicates in ALL_DUPLICATES {
        let place = destination(duplicates, exact());
        for (lane, expected) in
            [(Lane::Pending, Lane::Retry), (Lane::Retry, Lane::Retry), (Lane::Suspect, Lane::Suspect)]
        {
            let mut entry = claimed_after(4);
            entry.lane = lane;
            entry.claim.as_mut().unwrap().send_mark = true;
            let transition = decide_at(&entry, &place, &Event::NotSent, NOW);
            assert_eq!(waits(&transition), (expected, NOW, entry.status), "ready at once, status as before the claim");
            let mut progress = entry.progress.clone();
            progress.counters.interrupted += 1;
            assert_eq!(transition.progress, progress, "nothing else is counted, nothing is cleared");
            assert_eq!((&transition.attempt, &transition.observation), (&None, &Observation::Nothing));
        }
    }
    // What was unanswered before stays so: a wait does not end it (I-10).
    let mut entry = claimed();
    entry.progress.unanswered = true;
    let harmful = decide_at(&entry, &destination(Duplicates::Harmful, exact()), &Event::NotSent, NOW);
    assert_eq!(dead(&harmful).code, reason::OUTCOME_AMBIGUOUS);
    let tolerated = decide_at(&entry, &destination(Duplicates::Tolerated, exact()), &Event::NotSent, NOW);
    assert!(tolerated.progress.unanswered);
}

#[test]
fn row_too_old() {
    let place = destination(Duplicates::Tolerated, exact());
    let mut entry = claimed_after(2);
    entry.claim = None;
    let transition = decide_at(&entry, &place, &Event::Overdue, NOW);
    let draft = dead(&transition);
    assert_eq!((draft.class, &draft.reason), (Class::Transient, &reason::HTTP_UNAVAILABLE), "class is kept");
    assert_eq!((&draft.code, &transition.attempt), (&reason::MAX_AGE_EXCEEDED, &None));
    entry.progress.last_failure = None;
    let untried = decide_at(&entry, &place, &Event::Overdue, NOW);
    assert_eq!((dead(&untried).class, &dead(&untried).reason), (Class::Unknown, &reason::MAX_AGE_EXCEEDED));
}

#[test]
fn row_refused() {
    let place = destination(Duplicates::Harmful, exact());
    let mut entry = claimed_after(2);
    entry.progress.unanswered = true;
    let transition = decide_at(&entry, &place, &Event::Refused(reason::OUTCOME_AMBIGUOUS), NOW);
    let draft = dead(&transition);
    assert_eq!((draft.class, &draft.code), (Class::Ambiguous, &reason::OUTCOME_AMBIGUOUS));
    assert_eq!((&transition.attempt, transition.progress.counters.failed), (&None, 2), "nothing was tried");
    let old = decide_at(&entry, &place, &Event::Refused(reason::MAX_AGE_EXCEEDED), NOW);
    assert_eq!(dead(&old).code, reason::MAX_AGE_EXCEEDED);
}

#[test]
fn bound_unanswered() {
    let place = destination(DEDUPLICATED, exact());
    let mut entry = claimed_after(1);
    entry.progress.unanswered = true;
    // The second failure waits five minutes: exactly then a repeated send could arrive after the window.
    let too_early = NOW.after(MINUTE * 5).before(WINDOW).after(exact().emission_deadline);
    entry.first_claimed = Some(too_early);
    let transition = decide_at(&entry, &place, &Event::Emitted(http(429)), NOW);
    assert_eq!((dead(&transition).class, &dead(&transition).code), (Class::Ambiguous, &reason::OUTCOME_AMBIGUOUS));
    entry.first_claimed = Some(too_early.after(core::time::Duration::from_micros(1)));
    let in_time = decide_at(&entry, &place, &Event::Emitted(http(429)), NOW);
    assert_eq!(waits(&in_time).1, NOW.after(MINUTE * 5));
    assert!(in_time.progress.unanswered, "a refusal does not settle the send before it");
}

#[test]
fn bound_allowance() {
    let before = emitted(&claimed_after(3), Duplicates::Tolerated, http(503));
    assert_eq!(waits(&before).1, NOW.after(MINUTE * 125));
    let transition = emitted(&claimed_after(4), Duplicates::Tolerated, http(503));
    let draft = dead(&transition);
    assert_eq!(draft.code, reason::MAX_RETRY_ATTEMPTS_EXCEEDED);
    assert_eq!(draft.message.as_str(), "Outbox entry exceeded the configured maximum retry attempts.");
    assert_eq!((draft.class, &draft.reason), (Class::Transient, &reason::HTTP_UNAVAILABLE), "original kept (D12)");
    assert_eq!(transition.progress.last_failure.unwrap().text.as_str(), "status 503");
    assert_eq!(transition.progress.counters.failed, 5);
}

#[test]
fn bound_allowance_review() {
    let policy = DeliveryPolicy {
        dead_letter_on_max_retry_attempts: false,
        alternative: Some(Alternative::ManualReview),
        ..exact()
    };
    let place = destination(Duplicates::Tolerated, policy);
    let transition = decide_at(&claimed_after(4), &place, &Event::Emitted(http(503)), NOW);
    assert_eq!(transition.next, Next::ManualReview);
    assert_eq!(transition.next.status(), Status::Failed);
}

#[test]
fn the_alternative_max_age_goes_on_by_the_last_delay() {
    let policy =
        DeliveryPolicy { dead_letter_on_max_retry_attempts: false, alternative: Some(Alternative::MaxAge), ..exact() };
    let place = destination(Duplicates::Tolerated, policy);
    let transition = decide_at(&claimed_after(40), &place, &Event::Emitted(http(503)), NOW);
    assert_eq!(waits(&transition).1, NOW.after(MINUTE * 125));
}

#[test]
fn bound_age() {
    let place = destination(Duplicates::Tolerated, exact());
    let mut entry = claimed();
    entry.created = NOW.before(place.spec.policy.max_age);
    for outcome in [http(503), http(404), http(401), Outcome::Pending] {
        let transition = decide_at(&entry, &place, &Event::Emitted(outcome), NOW);
        assert_eq!(dead(&transition).code, reason::MAX_AGE_EXCEEDED);
    }
    let own = decide_at(&entry, &place, &Event::Emitted(http(400)), NOW);
    assert_eq!(dead(&own).code, reason::HTTP_BAD_REQUEST, "what ends it anyway keeps its code");
    let taken = decide_at(&entry, &place, &Event::Emitted(delivered()), NOW);
    assert_eq!(taken.next, Next::Delivered { receipt: None });
}

#[test]
fn a_wait_ends_at_the_end_of_the_entry() {
    let mut entry = claimed();
    entry.deliver_by = Some(NOW.after(MINUTE / 2));
    let transition = emitted(&entry, Duplicates::Tolerated, http(503));
    assert_eq!(waits(&transition).1, NOW.after(MINUTE / 2));
    let far = Outcome::Deferred { until: Some(Timestamp::MAX) };
    assert_eq!(waits(&emitted(&entry, Duplicates::Tolerated, far)).1, NOW.after(MINUTE / 2));
}

#[test]
fn retry_after_lengthens_a_retry() {
    let mut failure = Failure::new(Observed::Http { status: 429 }, "status 429");
    failure.retry_after = Some(MINUTE * 3);
    let transition = emitted(&claimed(), Duplicates::Tolerated, Outcome::Failed(failure));
    assert_eq!(waits(&transition).1, NOW.after(MINUTE * 3));
}

#[test]
fn states_follow_from_routes() {
    let mut entry = claimed();
    assert_eq!(entry.state(NOW), EntryState::Claimed);
    let transition = emitted(&entry, Duplicates::Tolerated, http(503));
    let (lane, due, status) = waits(&transition);
    entry = dlo_core::Entry { claim: None, lane, due, status, ..entry };
    assert_eq!(entry.state(NOW), EntryState::Waiting);
    assert_eq!(entry.state(due), EntryState::Ready, "due is inclusive");
    assert!(matches!(ROWS[0].route, Route::Deliver));
}
