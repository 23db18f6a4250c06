//! `decide`: what becomes of an entry. The only place where a route is chosen (P-08).
//!
//! It classifies what happened ([`classify`](crate::classify)), reads the route from the table
//! ([`route`](crate::route)), and writes down the transition that a store saves in one transaction. Which failures are
//! charged, which dead-letter and with which code is said by the table, not here.
//!
//! Three choices that the table does not show:
//!
//! - **Unanswered stays unanswered.** Once a send may have been taken, later answers such as 429 or 503 say that
//!   *those* sends were not taken; they say nothing about the earlier one. Only an acceptance (delivered, pending)
//!   ends it. So a destination with a deduplication window is never sent to again after the window, however many
//!   refusals came in between (I-10).
//! - **A wait never reaches past the entry's end.** A due time after `max_age` or `deliver_by` is brought forward to
//!   it; the sweep, or [`may_emit`], then ends the entry with `outbox.max_age_exceeded`. Until then a person can still
//!   act on it.
//! - **An end by age comes last.** What ends the entry anyway keeps its own code.

use crate::{
    Class, Destination, Duplicates, Entry, Failure, Outcome, Phase, Reason, Timestamp, classify,
    classify::Classified,
    dead_letter::DeadLetterDraft,
    entry::{Attempt, Lane, LastFailure, Progress, Status},
    fingerprint, id,
    observe::Observation,
    outcome::Receipt,
    policy::Alternative,
    reason,
    route::{self, Counts, Given, Limit, Route, What, Why},
    schedule,
    text::{Code, ErrorText},
};

/// Name of the outcome of an attempt whose claim ended without one.
pub const CLAIM_LOST: &str = "claim_lost";

/// What happened to a claimed, or overdue, entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The emitter answered.
    Emitted(Outcome),
    /// The claim ended without an outcome: the worker is gone. Mark and suspicion are read from the entry's claim.
    ClaimLost,
    /// The sweep found it past `max_age` or `deliver_by`.
    Overdue,
    /// [`may_emit`] refused a claimed entry with this reason: nothing was sent.
    Refused(Reason),
}

/// Everything that `decide` may look at beside the entry and the event.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The destination, with its policy and duplicates declaration.
    pub destination: &'a Destination,
    /// Latest success of the destination that contradicts resource failures ([`crate::Health::last_success`]).
    pub last_success: Option<Timestamp>,
    /// The database's time.
    pub now: Timestamp,
    /// When the emission began (for the attempt record).
    pub started: Timestamp,
    /// Randomness for jitter and for the id of a dead letter.
    pub random: [u8; 18],
}

impl Context<'_> {
    /// The last eight bytes of the randomness.
    fn jitter(&self) -> u64 {
        let (_, bytes) = self.random.split_last_chunk::<8>().expect("18 bytes end in 8");
        u64::from_be_bytes(*bytes)
    }

    /// From the first ten bytes of the randomness.
    fn dead_letter_id(&self) -> id::DeadLetterId {
        let (bytes, _) = self.random.split_first_chunk::<10>().expect("18 bytes begin with 10");
        id::DeadLetterId::new(self.now, *bytes)
    }
}

/// What comes next for the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ended: delivered.
    Delivered {
        /// Proof, if there is one.
        receipt: Option<Receipt>,
    },
    /// Waits.
    Wait {
        /// Queue to wait in.
        lane: Lane,
        /// When it may be tried.
        due: Timestamp,
        /// How it was routed.
        status: Status,
    },
    /// Set aside for a person; never selected.
    ManualReview,
    /// Ended: in quarantine.
    DeadLetter(DeadLetterDraft),
}

impl Next {
    /// Status of the entry afterwards (S-03).
    pub const fn status(&self) -> Status {
        match self {
            Self::Delivered { .. } => Status::Delivered,
            Self::Wait { status, .. } => *status,
            Self::ManualReview => Status::Failed,
            Self::DeadLetter(_) => Status::DeadLettered,
        }
    }
}

/// A transition: all that the store has to save, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// What comes next.
    pub next: Next,
    /// The entry's progress after it.
    pub progress: Progress,
    /// The attempt to record; none for a first-try success, nor where nothing was tried.
    pub attempt: Option<Attempt>,
    /// What the destination's health learns from it.
    pub observation: Observation,
}

/// Whether a claimed entry may be emitted now; asked right before the emission. `Err` names the reason, to be given
/// back as [`Event::Refused`].
///
/// Refused with `outbox.outcome_ambiguous`: the last send is unanswered, and the destination declares duplicates
/// harmful or its deduplication window is over (I-10). Refused with `outbox.max_age_exceeded`: `max_age` or
/// `deliver_by` has passed.
pub fn may_emit(entry: &Entry, destination: &Destination, now: Timestamp) -> Result<(), Reason> {
    if entry.progress.unanswered && !repeatable_at(entry, destination, now) {
        return Err(reason::OUTCOME_AMBIGUOUS);
    }
    if entry.expires(destination.spec.policy.max_age) <= now {
        return Err(reason::MAX_AGE_EXCEEDED);
    }
    Ok(())
}

/// When a send of this entry may no longer be repeated: the end of its deduplication window. `None` = always may.
fn window_end(entry: &Entry, duplicates: Duplicates, now: Timestamp) -> Option<Timestamp> {
    match duplicates {
        Duplicates::Tolerated => None,
        Duplicates::Deduplicated { window } => Some(entry.first_claimed.unwrap_or(now).after(window)),
        Duplicates::Harmful => Some(Timestamp::EPOCH),
    }
}

fn repeatable_at(entry: &Entry, destination: &Destination, at: Timestamp) -> bool {
    window_end(entry, destination.spec.duplicates, at).is_none_or(|end| at < end)
}

/// Decides. Pure: the same inputs give the same transition.
pub fn decide(entry: &Entry, event: &Event, context: &Context<'_>) -> Transition {
    let happened = Happened::of(entry, event, context);
    let policy = &context.destination.spec.policy;
    let ends = entry.expires(policy.max_age);
    let within_age = |due: Timestamp| if ends > context.now { due.min(ends) } else { due };
    let retry_due = within_age(schedule::retry_due(
        policy,
        entry.failed_in_generation().saturating_add(1),
        happened.retry_after(),
        context.now,
        context.jitter(),
    ));
    let row = route::find(happened.what, |given| match given {
        Given::Harmful => context.destination.spec.duplicates == Duplicates::Harmful,
        Given::Repeatable => repeatable_at(entry, context.destination, retry_due),
        Given::OthersSucceed => others_succeed(entry, &happened, context),
    });
    let due = match row.route {
        Route::Retry => retry_due,
        Route::PutOff => within_age(schedule::put_off_due(policy, happened.until, context.now, context.jitter())),
        _ => context.now,
    };
    let mut progress = happened.progress(entry, row.counts, context.now);
    let bound = if row.route.is_wait() {
        route::ends(|limit| match limit {
            Limit::UnrepeatableSend => progress.unanswered && !repeatable_at(entry, context.destination, due),
            Limit::AllowanceUsedUp | Limit::AllowanceUsedUpForReview => {
                let used_up = row.is_charged() && charged(entry, &progress) >= policy.max_retry_attempts;
                used_up && limit == allowance_limit(policy.dead_letter_on_max_retry_attempts, policy.alternative)
            }
            Limit::CrashesUsedUp => {
                row.counts == Counts::Crashed && crashes(entry, &progress) >= policy.max_crashed_attempts
            }
            Limit::Expired => ends <= context.now,
        })
    } else {
        None
    };
    let attempt = happened.attempt(entry, row.is_charged(), context);
    progress.attempts += u32::from(attempt.is_some());
    let next = match bound.map_or(row.route, |bound| bound.route) {
        Route::Deliver => Next::Delivered { receipt: happened.receipt.clone() },
        Route::Retry | Route::PutOff | Route::Hold => {
            Next::Wait { lane: Lane::Retry, due, status: row.status.unwrap_or(entry.status) }
        }
        Route::Suspect => Next::Wait { lane: Lane::Suspect, due, status: row.status.unwrap_or(entry.status) },
        Route::ManualReview => Next::ManualReview,
        Route::Quarantine(why) => Next::DeadLetter(happened.dead_letter(entry, why, &progress, context)),
    };
    Transition { next, progress, attempt, observation: happened.observation(entry) }
}

fn charged(entry: &Entry, progress: &Progress) -> u32 {
    progress.counters.failed.saturating_sub(entry.baseline.failed)
}

fn crashes(entry: &Entry, progress: &Progress) -> u32 {
    progress.counters.crashed.saturating_sub(entry.baseline.crashed)
}

/// Which limit a used-up allowance is. With the alternative `max_age` it is one that no bound names: age ends it.
fn allowance_limit(dead_letters: bool, alternative: Option<Alternative>) -> Limit {
    match (dead_letters, alternative) {
        (true, _) | (false, None) => Limit::AllowanceUsedUp,
        (false, Some(Alternative::ManualReview)) => Limit::AllowanceUsedUpForReview,
        (false, Some(Alternative::MaxAge)) => Limit::Expired,
    }
}

/// Whether the destination took other things since this entry met the same resource failure.
fn others_succeed(entry: &Entry, happened: &Happened<'_>, context: &Context<'_>) -> bool {
    let (Some(before), Some(at), Some(success)) =
        (&entry.progress.last_failure, entry.progress.last_failed, context.last_success)
    else {
        return false;
    };
    let same = happened.classified.as_ref().is_some_and(|now| now.reason == before.reason);
    same && classify::is_about_resource(before.class, &before.reason) && success > at
}

/// What happened, in the words of the routing table, with the evidence beside it.
struct Happened<'e> {
    what: What,
    /// Name of the try's outcome; `None` = nothing was tried.
    tried: Option<&'static str>,
    classified: Option<Classified>,
    failure: Option<&'e Failure>,
    /// Time that a deferral named.
    until: Option<Timestamp>,
    receipt: Option<Receipt>,
    /// When the try began.
    started: Timestamp,
}

impl<'e> Happened<'e> {
    fn of(entry: &Entry, event: &'e Event, context: &Context<'_>) -> Self {
        match event {
            Event::Emitted(outcome) => Self::emitted(outcome, context),
            Event::ClaimLost => Self::claim_lost(entry, context),
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
        // Only `harmful` destinations keep send marks, so elsewhere the first byte may have left without one.
        classified.unanswered |= context.destination.spec.duplicates != Duplicates::Harmful;
        Self {
            tried: Some(CLAIM_LOST),
            classified: Some(classified),
            started: claim.map_or(context.started, |claim| claim.claimed),
            ..Self::without_try(what, context)
        }
    }

    fn retry_after(&self) -> Option<core::time::Duration> {
        self.failure.and_then(|failure| failure.retry_after)
    }

    fn is_worker_lost(&self) -> bool {
        matches!(self.what, What::WorkerLost | What::WorkerLostAlone)
    }

    fn text(&self) -> ErrorText {
        match (self.failure, &self.classified) {
            (Some(failure), _) => failure.text.clone(),
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

    fn progress(&self, entry: &Entry, counts: Counts, now: Timestamp) -> Progress {
        let mut progress = entry.progress.clone();
        let counters = &mut progress.counters;
        match counts {
            Counts::Nothing => {}
            Counts::Failed => counters.failed = counters.failed.saturating_add(1),
            Counts::Deferred => counters.deferred = counters.deferred.saturating_add(1),
            Counts::Crashed => counters.crashed = counters.crashed.saturating_add(1),
        }
        progress.unanswered = match &self.classified {
            Some(classified) => classified.unanswered || progress.unanswered,
            // Accepted and pending say what became of the send; a deferral, an end by age and a refusal do not.
            None => progress.unanswered && !matches!(self.what, What::Accepted | What::Pending),
        };
        // A lost worker says nothing about the provider, so it does not replace the provider's own error (trap D12).
        let replaces = !(self.is_worker_lost() && progress.last_failure.is_some());
        if let Some(failure) = self.last_failure().filter(|_| replaces) {
            progress.first_failed = progress.first_failed.or(Some(now));
            progress.last_failed = Some(now);
            progress.last_failure = Some(failure);
        }
        progress
    }

    fn attempt(&self, entry: &Entry, charged: bool, context: &Context<'_>) -> Option<Attempt> {
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

    fn dead_letter(&self, entry: &Entry, why: Why, progress: &Progress, context: &Context<'_>) -> DeadLetterDraft {
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
                let message = format!("the last send has no answer and `{}` {because}: not repeated", spec.name);
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

    fn observation(&self, entry: &Entry) -> Observation {
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
