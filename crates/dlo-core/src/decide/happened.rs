//! What happened to an entry, in the words of the routing table, and what is written down of it.

use super::{CLAIM_LOST, Context, Event, INTERRUPTED};
use crate::{
    Class, Duplicates, Entry, Failure, Outcome, Phase, Reason, Timestamp, classify,
    classify::Classified,
    dead_letter::DeadLetterDraft,
    entry::{Attempt, LastFailure, Progress},
    fingerprint,
    observe::Observation,
    outcome::Receipt,
    reason,
    route::{Counts, What, Why},
    text::{Code, ErrorText},
};

/// What happened, in the words of the routing table, with the evidence beside it.
pub(super) struct Happened<'e> {
    pub(super) what: What,
    /// Name of the try's outcome; `None` = nothing was tried.
    tried: Option<&'static str>,
    pub(super) classified: Option<Classified>,
    failure: Option<&'e Failure>,
    /// Time that a deferral named.
    pub(super) until: Option<Timestamp>,
    pub(super) receipt: Option<Receipt>,
    /// When the try began.
    started: Timestamp,
}

impl<'e> Happened<'e> {
    pub(super) fn of(entry: &Entry, event: &'e Event, context: &Context<'_>) -> Self {
        match event {
            Event::Emitted(outcome) => Self::emitted(outcome, context),
            Event::ClaimLost => Self::claim_lost(entry, context),
            Event::Interrupted => Self {
                tried: Some(INTERRUPTED),
                classified: Some(classify::interrupted()),
                ..Self::without_try(What::Interrupted, context)
            },
            Event::NotSent => Self::without_try(What::NotSent, context),
            Event::Overdue => Self::without_try(What::TooOld, context),
            Event::Refused(reason) if *reason == reason::MAX_AGE_EXCEEDED => Self::without_try(What::TooOld, context),
            Event::Refused(_) => Self::without_try(What::Refused, context),
        }
    }

    fn without_try(what: What, context: &Context<'_>) -> Self {
        Self {
            what,
            tried: None,
            classified: None,
            failure: None,
            until: None,
            receipt: None,
            started: context.started,
        }
    }

    fn emitted(outcome: &'e Outcome, context: &Context<'_>) -> Self {
        let classified = classify::classify(outcome, context.destination.spec.duplicates);
        let what = match (outcome, &classified) {
            (Outcome::Delivered { .. }, _) => What::Accepted,
            (Outcome::Pending, _) => What::Pending,
            (Outcome::DeadLettered(_), _) => What::ProviderDeadLettered,
            (_, Some(classified)) => What::of_failure(classified),
            (_, None) => What::Deferred,
        };
        let (until, receipt) = match outcome {
            Outcome::Deferred { until } => (*until, None),
            Outcome::Delivered { receipt } => (None, receipt.clone()),
            _ => (None, None),
        };
        let failure = classify::failure(outcome);
        Self { tried: Some(outcome.name()), classified, failure, until, receipt, ..Self::without_try(what, context) }
    }

    fn claim_lost(entry: &Entry, context: &Context<'_>) -> Self {
        let claim = entry.claim.as_ref();
        let marked = claim.is_some_and(|claim| claim.send_mark);
        let what = match (marked, claim.is_some_and(|claim| claim.sole_suspect)) {
            (true, _) => What::Ambiguous,
            (false, true) => What::WorkerLostAlone,
            (false, false) => What::WorkerLost,
        };
        let mut classified = classify::lost_claim(marked);
        // Only `harmful` destinations keep send marks, so elsewhere the first byte may have left without one. What was
        // claimed under an earlier version of the destination may have been claimed when it was not yet harmful.
        let keeps_marks = context.destination.spec.duplicates == Duplicates::Harmful
            && claim.is_some_and(|claim| claim.claimed > context.destination.applied);
        classified.unanswered |= !keeps_marks;
        Self {
            tried: Some(CLAIM_LOST),
            classified: Some(classified),
            started: claim.map_or(context.started, |claim| claim.claimed),
            ..Self::without_try(what, context)
        }
    }

    pub(super) fn retry_after(&self) -> Option<core::time::Duration> {
        self.failure.and_then(|failure| failure.retry_after)
    }

    fn is_our_own_trouble(&self) -> bool {
        matches!(self.what, What::WorkerLost | What::WorkerLostAlone | What::Interrupted)
    }

    fn text(&self) -> ErrorText {
        match (self.failure, &self.classified) {
            (Some(failure), _) => failure.text.clone(),
            (None, _) if self.what == What::Interrupted => {
                ErrorText::new("a shutdown cut the emission after its grace, before an answer")
            }
            (None, Some(classified)) if classified.class == Class::Ambiguous => {
                ErrorText::new("the claim ended without an outcome after the first byte may have left")
            }
            (None, Some(_)) => ErrorText::new("the claim ended without an outcome: the worker is gone"),
            (None, None) => ErrorText::new(""),
        }
    }

    fn last_failure(&self) -> Option<LastFailure> {
        let classified = self.classified.as_ref()?;
        Some(LastFailure {
            class: classified.class,
            reason: classified.reason.clone(),
            provider_code: self.failure.and_then(|failure| failure.provider_code.clone()),
            text: self.text(),
        })
    }

    pub(super) fn progress(&self, entry: &Entry, counts: Counts, now: Timestamp) -> Progress {
        let mut progress = entry.progress.clone();
        let counters = &mut progress.counters;
        match counts {
            Counts::Nothing => {}
            Counts::Failed => counters.failed = counters.failed.saturating_add(1),
            Counts::Deferred => counters.deferred = counters.deferred.saturating_add(1),
            Counts::Crashed => counters.crashed = counters.crashed.saturating_add(1),
            Counts::Interrupted => counters.interrupted = counters.interrupted.saturating_add(1),
        }
        progress.unanswered = match &self.classified {
            Some(classified) => classified.unanswered || progress.unanswered,
            // Accepted and pending say what became of the send; a deferral, an end by age and a refusal do not.
            None => progress.unanswered && !matches!(self.what, What::Accepted | What::Pending),
        };
        // What our own process met says nothing about the provider, so it does not replace the provider's error (D12).
        let replaces = !(self.is_our_own_trouble() && progress.last_failure.is_some());
        if let Some(failure) = self.last_failure().filter(|_| replaces) {
            progress.first_failed = progress.first_failed.or(Some(now));
            progress.last_failed = Some(now);
            progress.last_failure = Some(failure);
        }
        progress
    }

    pub(super) fn attempt(&self, entry: &Entry, charged: bool, context: &Context<'_>) -> Option<Attempt> {
        let outcome = self.tried?;
        if self.what == What::Accepted && entry.progress.attempts == 0 {
            return None;
        }
        let classified = self.classified.as_ref();
        Some(Attempt {
            number: entry.progress.attempts + 1,
            generation: entry.key.generation,
            started: self.started,
            finished: context.now,
            outcome: Code::new(outcome),
            class: classified.map(|classified| classified.class),
            reason: classified.map(|classified| classified.reason.clone()).or_else(|| self.put_off_reason()),
            rule: classified.map(|classified| Code::new(classified.rule)),
            phase: classified.map_or(Phase::Answered, |classified| classified.phase),
            http_status: classified.and_then(|classified| classified.http_status),
            provider_code: self.failure.and_then(|failure| failure.provider_code.clone()),
            text: self.text(),
            charged,
            token: entry.claim.as_ref().map(|claim| claim.token),
            destination_version: context.destination.version,
        })
    }

    fn put_off_reason(&self) -> Option<Reason> {
        match self.what {
            What::Pending => Some(reason::EMISSION_PENDING),
            What::Deferred => Some(reason::EMISSION_DEFERRED),
            _ => None,
        }
    }

    pub(super) fn dead_letter(
        &self,
        entry: &Entry,
        why: Why,
        progress: &Progress,
        context: &Context<'_>,
    ) -> DeadLetterDraft {
        let (code, message) = self.code_and_message(why, context);
        let cause = self.cause(why, &code, progress);
        let fingerprint = fingerprint::fingerprint(cause.class, &cause.reason, &entry.destination, cause.text.as_str());
        DeadLetterDraft {
            id: context.dead_letter_id(),
            class: cause.class,
            reason: cause.reason,
            code,
            message,
            rule: self.classified.as_ref().map(|classified| Code::new(classified.rule)),
            fingerprint,
        }
    }

    /// The failure that a dead letter is about: the one in hand, else the latest, else the limit itself.
    fn cause(&self, why: Why, code: &Reason, progress: &Progress) -> LastFailure {
        let known = self.last_failure().or_else(|| progress.last_failure.clone());
        match (why, known) {
            // A later refusal (429, 503 …) is not why the send is unanswered.
            (Why::OutcomeAmbiguous, Some(failure)) if failure.class == Class::Ambiguous => failure,
            (Why::OutcomeAmbiguous, _) => limit_itself(Class::Ambiguous, code, "the last send has no answer"),
            (_, Some(failure)) => failure,
            (_, None) => limit_itself(Class::Unknown, code, "no attempt failed before"),
        }
    }

    fn code_and_message(&self, why: Why, context: &Context<'_>) -> (Reason, ErrorText) {
        let spec = &context.destination.spec;
        match why {
            Why::Evidence => {
                let reason = self.classified.as_ref().map_or(reason::EMISSION_FAILED, |now| now.reason.clone());
                (reason, self.text())
            }
            Why::OutcomeAmbiguous => {
                let because = match spec.duplicates {
                    Duplicates::Harmful => "declares duplicates harmful",
                    _ => "can't collapse a duplicate any more (its deduplication window ends first)",
                };
                let message =
                    format!("the last send has no authoritative answer and `{}` {because}: not repeated", spec.name);
                (reason::OUTCOME_AMBIGUOUS, ErrorText::new(message))
            }
            Why::Allowance => {
                (spec.policy.dead_letter_reason_code.clone(), spec.policy.dead_letter_reason_message.clone())
            }
            Why::Crashes => (
                reason::WORKER_LOST,
                ErrorText::new(format!(
                    "the worker was lost {} times while this entry was the only suspect in flight",
                    spec.policy.max_crashed_attempts
                )),
            ),
            Why::Age => (reason::MAX_AGE_EXCEEDED, ErrorText::new("not delivered within `max_age` or by `deliver_by`")),
        }
    }

    pub(super) fn observation(&self, entry: &Entry) -> Observation {
        let id = entry.key.entry;
        let reason =
            || self.classified.as_ref().map_or(reason::EMISSION_FAILED, |classified| classified.reason.clone());
        let answered = self.classified.as_ref().is_some_and(|classified| classified.phase == Phase::Answered);
        let status = self.classified.as_ref().and_then(|classified| classified.http_status);
        match self.what {
            // A deferral may come from policy on our own side, so it says nothing.
            What::Accepted | What::Pending => Observation::Success,
            // A lost worker is our own trouble, marked or not.
            What::Transient | What::Ambiguous if self.failure.is_some() => {
                Observation::Transient { entry: id, reason: reason() }
            }
            What::ConfigurationOfDestination => Observation::Configuration { entry: id, reason: reason() },
            What::ConfigurationOfResource => Observation::Resource { entry: id, reason: reason() },
            // A 5xx that no rule names is no reason to retry, but it is one to stop asking for a while.
            What::Unknown if status.is_some_and(|status| status >= 500) => {
                Observation::Transient { entry: id, reason: reason() }
            }
            What::Deterministic | What::ProviderDeadLettered | What::Unknown if answered => Observation::Answered,
            _ => Observation::Nothing,
        }
    }
}

fn limit_itself(class: Class, code: &Reason, text: &str) -> LastFailure {
    LastFailure { class, reason: code.clone(), provider_code: None, text: ErrorText::new(text) }
}
