//! Causes that must not share one blind retry (C-005), and what each of them becomes.

use std::collections::BTreeMap;

use dlo_core::{
    Class, Duplicates, Outcome, Status,
    decide::{Next, Transition},
    reason,
};

use crate::support::{DEDUPLICATED, claimed, claimed_after, emitted, http, timed_out};

/// What becomes of an entry at its first failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Waits, and has used one of its allowance.
    Retried,
    /// Waits, and has used nothing: the cause is the destination's.
    PutOff,
    /// In quarantine at once.
    Quarantined,
}

fn fate(transition: &Transition) -> Fate {
    match transition.next {
        Next::Wait { status: Status::Deferred, .. } => Fate::PutOff,
        Next::Wait { .. } => Fate::Retried,
        Next::DeadLetter(_) => Fate::Quarantined,
        ref other => panic!("{other:?} is no fate of a failure"),
    }
}

fn class_of(outcome: Outcome) -> Class {
    let transition = emitted(&claimed(), Duplicates::Tolerated, outcome);
    transition.attempt.expect("a failure is recorded").class.expect("and classified")
}

#[test]
fn seven_causes_do_not_share_one_retry() {
    use Class::{Configuration, Deterministic, Transient};
    let cases: [(&str, &[u16], Class, Fate); 7] = [
        ("provider outage", &[503, 529, 429], Transient, Fate::Retried),
        ("schema drift", &[422, 415], Deterministic, Fate::Quarantined),
        ("tool or interface change", &[501, 405], Deterministic, Fate::Quarantined),
        ("policy denial", &[451], Deterministic, Fate::Quarantined),
        ("permissions", &[401, 403], Configuration, Fate::PutOff),
        ("stale resource", &[409, 412, 428], Deterministic, Fate::Quarantined),
        ("deterministic bad input", &[400, 413], Deterministic, Fate::Quarantined),
    ];
    let mut reasons = BTreeMap::new();
    for (cause, statuses, class, expected) in cases {
        for status in statuses {
            assert_eq!(class_of(http(*status)), class, "{cause}: {status}");
            for duplicates in [DEDUPLICATED, Duplicates::Tolerated, Duplicates::Harmful] {
                let transition = emitted(&claimed(), duplicates, http(*status));
                assert_eq!(fate(&transition), expected, "{cause}: {status} on {duplicates}");
            }
            let reason = emitted(&claimed(), Duplicates::Tolerated, http(*status)).attempt.unwrap().reason.unwrap();
            let known = *reasons.entry(reason.clone()).or_insert(cause);
            assert_eq!(known, cause, "{reason} does not tell these causes apart");
        }
    }
}

/// A send that may have been taken is a class of its own, never a plain timeout (C-010, C-057).
#[test]
fn it_may_have_happened_is_no_plain_failure() {
    assert_eq!(class_of(timed_out()), Class::Ambiguous);
    assert_eq!(fate(&emitted(&claimed(), Duplicates::Harmful, timed_out())), Fate::Quarantined);
}

/// The same quarantine, told apart by what is recorded (C-012).
#[test]
fn a_used_up_allowance_and_a_refusal_are_recorded_differently() {
    let draft = |transition: Transition| match transition.next {
        Next::DeadLetter(draft) => draft,
        other => panic!("{other:?} is no dead letter"),
    };
    let used_up = draft(emitted(&claimed_after(4), Duplicates::Tolerated, http(503)));
    let refused = draft(emitted(&claimed_after(4), Duplicates::Tolerated, http(400)));
    assert_eq!((used_up.class, used_up.code), (Class::Transient, reason::MAX_RETRY_ATTEMPTS_EXCEEDED));
    assert_eq!((refused.class, refused.code), (Class::Deterministic, reason::HTTP_BAD_REQUEST));
    assert_ne!(used_up.fingerprint, refused.fingerprint);
}
