//! `classify`: what an outcome means. Ordered rule data turns evidence into class, reason and rule id (C-007…C-012).
//!
//! The class comes from evidence only: a timeout or a status that no rule names is never called transient for want of
//! a better word (C-011). The first rule of [`RULES`] that takes the evidence decides; its id is stored with the
//! attempt, so that a later change of the rules can be told from a change of the provider.
//!
//! What no rule can know is said by the emitter: [`Observed::Custom`] with a class is kept, with one exception. An
//! emitter that says that the first byte left and that no answer came can't know that the thing was not taken, so a
//! "transient" or "configuration" after [`Phase::Sent`] counts as ambiguous (I-10).

use crate::{Class, Duplicates, Failure, Observed, Outcome, Phase, Reason, reason};

mod rules;

pub use rules::{RULES, Rule, Takes};

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The destination as a whole, or nothing in particular.
    Destination,
    /// Maybe one resource behind the destination only (403, 404, 410, 3xx).
    Resource,
}

/// A classified failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// Class.
    pub class: Class,
    /// Reason beside the class.
    pub reason: Reason,
    /// Id of the rule that said so.
    pub rule: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// How far the request got.
    pub phase: Phase,
    /// HTTP status, if that was the evidence.
    pub http_status: Option<u16>,
    /// The send may have been taken, and there is no authoritative answer that says otherwise (I-10).
    pub unanswered: bool,
}

/// Ids of the rules about what an emitter says itself; they follow [`RULES`].
pub const SAID_RULES: &[&str] = &[
    "custom.class",
    "custom.after_send",
    "custom.without_class",
    "outcome.retryable",
    "outcome.without_evidence",
    "outcome.ambiguous",
    "claim.lost",
    "claim.lost_after_send",
    "claim.interrupted",
];

/// The failure of an outcome, if it is one.
pub fn failure(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Delivered { .. } | Outcome::Pending | Outcome::Deferred { .. } => None,
        Outcome::Failed(failure)
        | Outcome::RetryableFailure(failure)
        | Outcome::DeadLettered(failure)
        | Outcome::Ambiguous(failure) => Some(failure),
    }
}

/// Classifies an outcome for a destination that declares `duplicates`. `None` if it is not a failure.
pub fn classify(outcome: &Outcome, duplicates: Duplicates) -> Option<Classified> {
    let failure = failure(outcome)?;
    let by_evidence = match &failure.observed {
        Observed::Http { .. } | Observed::Transport { .. } => by_rule(&failure.observed, duplicates),
        Observed::Custom { class, reason, phase } => by_emitter(outcome, *class, reason, *phase),
        Observed::Nothing => without_evidence(outcome),
    };
    if matches!(outcome, Outcome::Ambiguous(_)) {
        // The emitter saw that it has no authoritative answer: that outweighs whatever else was seen.
        return Some(Classified {
            class: Class::Ambiguous,
            rule: "outcome.ambiguous",
            scope: Scope::Destination,
            unanswered: true,
            ..by_evidence
        });
    }
    Some(by_evidence)
}

/// Whether a stored failure was one that may concern one resource only.
pub fn is_about_resource(class: Class, reason: &Reason) -> bool {
    class == Class::Configuration && RULES.iter().any(|rule| rule.scope == Scope::Resource && rule.reason == *reason)
}

fn by_rule(observed: &Observed, duplicates: Duplicates) -> Classified {
    let rule = RULES
        .iter()
        .find(|rule| rule.takes.matches(observed, duplicates))
        .expect("the last HTTP rule takes every status, and the last transport rule every kind in every phase");
    let (phase, http_status) = match observed {
        Observed::Http { status } => (Phase::Answered, Some(*status)),
        Observed::Transport { phase, .. } | Observed::Custom { phase, .. } => (*phase, None),
        Observed::Nothing => (Phase::Unknown, None),
    };
    // A rule's "may have been taken" can't outweigh an emitter that knows that no byte has left.
    let unanswered = rule.unanswered && phase != Phase::NotSent;
    Classified {
        class: rule.class,
        reason: rule.reason.clone(),
        rule: rule.id,
        scope: rule.scope,
        phase,
        http_status,
        unanswered,
    }
}

fn by_emitter(outcome: &Outcome, class: Option<Class>, reason: &Reason, phase: Phase) -> Classified {
    let retryable = matches!(outcome, Outcome::RetryableFailure(_));
    let (class, rule) = match class {
        Some(Class::Transient | Class::Configuration) if phase == Phase::Sent => {
            (Class::Ambiguous, "custom.after_send")
        }
        Some(class) => (class, "custom.class"),
        None if retryable && phase == Phase::Sent => (Class::Ambiguous, "custom.after_send"),
        None if retryable => (Class::Transient, "outcome.retryable"),
        None => (Class::Unknown, "custom.without_class"),
    };
    let unanswered = match class {
        Class::Ambiguous => true,
        Class::Unknown => matches!(phase, Phase::Sent | Phase::Unknown),
        Class::Transient | Class::Deterministic | Class::Configuration => phase == Phase::Sent,
    };
    Classified { class, reason: reason.clone(), rule, scope: Scope::Destination, phase, http_status: None, unanswered }
}

fn without_evidence(outcome: &Outcome) -> Classified {
    // (class, reason, rule, phase, unanswered)
    let (class, reason, rule, phase, unanswered) = match outcome {
        Outcome::RetryableFailure(_) => {
            (Class::Transient, reason::EMISSION_RETRYABLE, "outcome.retryable", Phase::Unknown, false)
        }
        // A provider that says that it dead-lettered the thing has answered.
        Outcome::DeadLettered(_) => {
            (Class::Unknown, reason::EMISSION_DEAD_LETTERED, "outcome.without_evidence", Phase::Answered, false)
        }
        Outcome::Ambiguous(_) => {
            (Class::Ambiguous, reason::EMISSION_AMBIGUOUS, "outcome.ambiguous", Phase::Unknown, true)
        }
        _ => (Class::Unknown, reason::EMISSION_FAILED, "outcome.without_evidence", Phase::Unknown, true),
    };
    Classified { class, reason, rule, scope: Scope::Destination, phase, http_status: None, unanswered }
}

/// An emission that a shutdown cut: it may have been sent.
pub fn interrupted() -> Classified {
    Classified {
        class: Class::Ambiguous,
        reason: reason::EMISSION_INTERRUPTED,
        rule: "claim.interrupted",
        scope: Scope::Destination,
        phase: Phase::Unknown,
        http_status: None,
        unanswered: true,
    }
}

/// A claim that ended without an outcome. `marked`: the first byte may have left.
pub fn lost_claim(marked: bool) -> Classified {
    let (class, reason, rule) = if marked {
        (Class::Ambiguous, reason::CLAIM_EXPIRED_AFTER_SEND, "claim.lost_after_send")
    } else {
        (Class::Unknown, reason::CLAIM_EXPIRED, "claim.lost")
    };
    Classified {
        class,
        reason,
        rule,
        scope: Scope::Destination,
        phase: if marked { Phase::Sent } else { Phase::Unknown },
        http_status: None,
        unanswered: marked,
    }
}
