//! What a redrive by ids refuses, one case a rule and their order (I-10, I-15, C-058, C-119).

use dlo_core::{
    Class, Counters, DeadLetter, DeadLetterId, DeadLetterState, Duplicates, EnvelopeId, Timestamp,
    dead_letter::{PayloadSummary, redrive_refusal},
    fingerprint::fingerprint,
    reason,
};

use crate::support::{DEDUPLICATED, MINUTE, NOW, WINDOW, destination, exact, saved};

fn dead_letter(unanswered: bool) -> DeadLetter {
    let entry = saved(1);
    DeadLetter {
        id: DeadLetterId::from_bytes([1; 16]),
        seq: 1,
        destination_version: 1,
        envelope: EnvelopeId::from_bytes([1; 16]),
        event_type: None,
        source_event_id: None,
        correlation_id: None,
        audit_residue_id: None,
        payload: PayloadSummary::default(),
        operation_key: entry.operation_key,
        class: Class::Transient,
        reason: reason::HTTP_UNAVAILABLE,
        code: reason::MAX_RETRY_ATTEMPTS_EXCEEDED,
        message: "used up".into(),
        rule: None,
        last_failure: None,
        first_failed: Some(NOW),
        last_failed: Some(NOW),
        first_claimed: Some(NOW),
        opened: NOW,
        attempts: 5,
        counters: Counters::default(),
        unanswered,
        fingerprint: fingerprint(Class::Transient, &reason::HTTP_UNAVAILABLE, &entry.destination, "used up"),
        state: DeadLetterState::Open,
        key: entry.key,
        destination: entry.destination,
    }
}

fn refusal(dead_letter: &DeadLetter, duplicates: Duplicates, now: Timestamp) -> Option<&'static str> {
    let place = destination(duplicates, exact());
    redrive_refusal(dead_letter, Some(&place), None, None, true, now).map(|refusal| refusal.code())
}

#[test]
fn what_may_have_happened_is_refused_whatever_its_class() {
    // It ended as a used-up allowance, and an earlier send of it was never answered.
    for (duplicates, now, expected) in [
        (Duplicates::Harmful, NOW, Some("redrive.unanswered")),
        (DEDUPLICATED, NOW.after(MINUTE), None),
        (DEDUPLICATED, NOW.after(WINDOW), Some("redrive.window_over")),
        (Duplicates::Tolerated, NOW.after(WINDOW), None),
    ] {
        assert_eq!(refusal(&dead_letter(true), duplicates, now), expected, "{duplicates} at {now}");
        assert_eq!(
            refusal(&dead_letter(false), duplicates, now),
            None,
            "{duplicates}: an answered send may be repeated"
        );
    }
}

#[test]
fn a_redrive_goes_to_its_own_destination_or_nowhere() {
    let none = redrive_refusal(&dead_letter(false), None, None, None, true, NOW);
    assert_eq!(none.map(|refusal| refusal.code()), Some("redrive.unknown_destination"));
}

#[test]
fn every_other_rule_refuses_with_its_code() {
    let place = destination(Duplicates::Harmful, exact());
    let refuse = |dead_letter: &DeadLetter, deliver_by, alive, readable| {
        redrive_refusal(dead_letter, Some(&place), deliver_by, alive, readable, NOW).map(|refusal| refusal.code())
    };
    for state in [DeadLetterState::Redriven, DeadLetterState::Reconciled, DeadLetterState::Disposed] {
        let ended = DeadLetter { state, ..dead_letter(false) };
        assert_eq!(refuse(&ended, None, Some(1), false), Some("redrive.not_open"), "{state:?}");
    }
    assert_eq!(refuse(&dead_letter(true), None, Some(1), false), Some("redrive.alive"));
    assert_eq!(refuse(&dead_letter(true), Some(NOW), None, false), Some("redrive.unreadable"));
    assert_eq!(refuse(&dead_letter(true), Some(NOW), None, true), Some("redrive.deadline_passed"));
    assert_eq!(refuse(&dead_letter(false), Some(NOW.after(MINUTE)), None, true), None);
}
