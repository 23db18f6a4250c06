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
    Destination, Duplicates, Entry, Outcome, Reason, Timestamp, classify,
    dead_letter::DeadLetterDraft,
    entry::{Attempt, Lane, Progress, Status},
    id,
    observe::Observation,
    outcome::Receipt,
    policy::Alternative,
    reason,
    route::{self, Counts, Given, Limit, Route, Row},
    schedule,
};

mod happened;

use happened::Happened;

/// Name of the outcome of an attempt whose claim ended without one.
pub const CLAIM_LOST: &str = "claim_lost";
/// Name of the outcome of an attempt that a shutdown cut.
pub const INTERRUPTED: &str = "interrupted";

/// What happened to a claimed, or overdue, entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The emitter answered.
    Emitted(Outcome),
    /// The claim ended without an outcome: the worker is gone. Mark and suspicion are read from the entry's claim.
    ClaimLost,
    /// A shutdown cut the emission after its grace: it may have been sent, and nothing is charged (trap D3). Claims
    /// whose emission never began are given back by the store's `release` instead.
    Interrupted,
    /// The claim is given up before the first byte, and may carry a send mark: nothing was tried. Claims that surely
    /// have no mark are given back by the store's `release` instead.
    NotSent,
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

fn repeatable_at(entry: &Entry, destination: &Destination, at: Timestamp) -> bool {
    at < destination.spec.repeatable_until(entry.first_claimed.unwrap_or(at))
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
        Given::Suspect => entry.lane == Lane::Suspect,
    });
    let due = match row.route {
        Route::Retry => retry_due,
        Route::PutOff => within_age(schedule::put_off_due(policy, happened.until, context.now, context.jitter())),
        _ => context.now,
    };
    let mut progress = happened.progress(entry, row.counts, context.now);
    let wait = Wait { entry, context, row, progress: &progress, due };
    let bound = if row.route.is_wait() { route::ends(|limit| wait.exceeds(limit)) } else { None };
    let attempt = happened.attempt(entry, row.is_charged(), context);
    progress.attempts += u32::from(attempt.is_some());
    let next = match bound.map_or(row.route, |bound| bound.route) {
        Route::Deliver => Next::Delivered { receipt: happened.receipt.clone() },
        Route::Retry | Route::PutOff | Route::Ready => {
            Next::Wait { lane: Lane::Retry, due, status: row.status.unwrap_or(entry.status) }
        }
        Route::Suspect => Next::Wait { lane: Lane::Suspect, due, status: row.status.unwrap_or(entry.status) },
        Route::ManualReview => Next::ManualReview,
        Route::Quarantine(why) => Next::DeadLetter(happened.dead_letter(entry, why, &progress, context)),
    };
    Transition { next, progress, attempt, observation: happened.observation(entry) }
}

/// A wait that a row asks for, to be held against the bounds.
struct Wait<'a> {
    entry: &'a Entry,
    context: &'a Context<'a>,
    row: &'static Row,
    /// Progress with what happened counted in.
    progress: &'a Progress,
    due: Timestamp,
}

impl Wait<'_> {
    fn exceeds(&self, limit: Limit) -> bool {
        let destination = self.context.destination;
        let policy = &destination.spec.policy;
        match limit {
            Limit::UnrepeatableSend => self.progress.unanswered && !repeatable_at(self.entry, destination, self.due),
            Limit::AllowanceUsedUp => {
                self.allowance_used_up() && (policy.dead_letter_on_max_retry_attempts || policy.alternative.is_none())
            }
            Limit::AllowanceUsedUpForReview => {
                self.allowance_used_up() && policy.alternative == Some(Alternative::ManualReview)
            }
            Limit::CrashesUsedUp => self.crashes_used_up(),
            Limit::Expired => self.entry.expires(policy.max_age) <= self.context.now,
        }
    }

    /// The failure in hand counts (P-01).
    fn allowance_used_up(&self) -> bool {
        let used = self.progress.counters.failed.saturating_sub(self.entry.baseline.failed);
        self.row.is_charged() && used >= self.context.destination.spec.policy.max_retry_attempts
    }

    fn crashes_used_up(&self) -> bool {
        let used = self.progress.counters.crashed.saturating_sub(self.entry.baseline.crashed);
        self.row.counts == Counts::Crashed && used >= self.context.destination.spec.policy.max_crashed_attempts
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
