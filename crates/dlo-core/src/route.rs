//! The one routing table: what happens to an entry, as data (P-08, design section 4).
//!
//! [`ROWS`] says what to do with what happened; the first row whose conditions hold decides. [`BOUNDS`] says what ends
//! a wait that a row asks for: an unanswered send that may not be repeated, the allowance, crashes, age.
//! [`decide`](crate::decide::decide) reads both and nothing else chooses a route.

use crate::{Class, Status, classify::Classified, classify::Scope};

/// What happened to the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The destination took it.
    Accepted,
    /// Pending: the destination took note of it.
    Pending,
    /// Deferred, by the provider or by policy.
    Deferred,
    /// Not sent or not taken, for a passing cause.
    Transient,
    /// Sent, and no authoritative answer.
    Ambiguous,
    /// The same input will fail again.
    Deterministic,
    /// Credential or configuration of the destination as a whole.
    ConfigurationOfDestination,
    /// Configuration that may concern one resource only.
    ConfigurationOfResource,
    /// No evidence.
    Unknown,
    /// The provider says that it dead-lettered it.
    ProviderDeadLettered,
    /// The claim ended without an outcome, no send mark, among others in flight.
    WorkerLost,
    /// The same, while it was the only suspect in flight.
    WorkerLostAlone,
    /// A shutdown cut the emission: it may have been sent.
    Interrupted,
    /// Claimed, with a send mark perhaps, and given up before the first byte.
    NotSent,
    /// Past `max_age` or `deliver_by`.
    TooOld,
    /// It may not be emitted: the last send is unanswered and may not be repeated.
    Refused,
}

impl What {
    /// What a classified failure is.
    pub fn of_failure(classified: &Classified) -> Self {
        match (classified.class, classified.scope) {
            (Class::Transient, _) => Self::Transient,
            (Class::Ambiguous, _) => Self::Ambiguous,
            (Class::Deterministic, _) => Self::Deterministic,
            (Class::Configuration, Scope::Destination) => Self::ConfigurationOfDestination,
            (Class::Configuration, Scope::Resource) => Self::ConfigurationOfResource,
            (Class::Unknown, _) => Self::Unknown,
        }
    }
}

/// A condition of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Given {
    /// The destination declares duplicates harmful.
    Harmful,
    /// A repeated send does no harm: `tolerated`, or the deduplication window is open when the next try is due.
    Repeatable,
    /// Others have succeeded at the destination since this entry met the same kind of failure.
    OthersSucceed,
    /// The entry was claimed as a suspect.
    Suspect,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// End: delivered.
    Deliver,
    /// Wait by the retry schedule.
    Retry,
    /// Wait `deferred_delay`, or until the time that was given.
    PutOff,
    /// Ready at once: if there is a wait, it is the destination's hold.
    Ready,
    /// Ready at once as a suspect, tried alone.
    Suspect,
    /// Set aside for a person.
    ManualReview,
    /// End: in quarantine, for this cause.
    Quarantine(Why),
}

impl Route {
    /// Whether the entry stays alive and is selected again.
    pub const fn is_wait(self) -> bool {
        matches!(self, Self::Retry | Self::PutOff | Self::Ready | Self::Suspect)
    }
}

/// Why an entry is quarantined: what gives the code and the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The failure itself.
    Evidence,
    /// `outbox.outcome_ambiguous`.
    OutcomeAmbiguous,
    /// The policy's code, by default `outbox.max_retry_attempts_exceeded`.
    Allowance,
    /// `outbox.worker_lost`.
    Crashes,
    /// `outbox.max_age_exceeded`.
    Age,
}

/// Which counter a row adds to, beside the attempt that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counts {
    /// None.
    Nothing,
    /// `failed`: it uses the allowance.
    Failed,
    /// `deferred`: it does not (I-08).
    Deferred,
    /// `crashed`.
    Crashed,
    /// `interrupted`: it uses no allowance either (I-08).
    Interrupted,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Stable id.
    pub id: &'static str,
    /// What happened.
    pub what: What,
    /// What must hold besides.
    pub given: &'static [Given],
    /// What to do.
    pub route: Route,
    /// What it counts as.
    pub counts: Counts,
    /// Status afterwards; `None` = as before the claim.
    pub status: Option<Status>,
}

impl Row {
    /// Whether it uses the allowance.
    pub fn is_charged(&self) -> bool {
        self.counts == Counts::Failed
    }
}

const fn row(
    id: &'static str,
    what: What,
    given: &'static [Given],
    route: Route,
    counts: Counts,
    status: Option<Status>,
) -> Row {
    Row { id, what, given, route, counts, status }
}

use Given::{Harmful, OthersSucceed, Repeatable};

const DEAD: Option<Status> = Some(Status::DeadLettered);

/// The table, in order. A failure of the entry itself that ends it counts as failed too (trap D12: the terminal
/// attempt is counted); what is put off, held or lost with its worker never is (I-08).
pub static ROWS: &[Row] = &[
    row("accepted", What::Accepted, &[], Route::Deliver, Counts::Nothing, Some(Status::Delivered)),
    row("pending", What::Pending, &[], Route::PutOff, Counts::Deferred, Some(Status::Deferred)),
    row("deferred", What::Deferred, &[], Route::PutOff, Counts::Deferred, Some(Status::Deferred)),
    row("transient", What::Transient, &[], Route::Retry, Counts::Failed, Some(Status::RetryableFailure)),
    row("ambiguous.repeatable", What::Ambiguous, &[Repeatable], Route::Retry, Counts::Failed, Some(Status::Failed)),
    // The place of the readback: once a destination has one, it is asked before this row quarantines.
    row("ambiguous", What::Ambiguous, &[], Route::Quarantine(Why::OutcomeAmbiguous), Counts::Failed, DEAD),
    row("deterministic", What::Deterministic, &[], Route::Quarantine(Why::Evidence), Counts::Failed, DEAD),
    row(
        "configuration.destination",
        What::ConfigurationOfDestination,
        &[],
        Route::Ready,
        Counts::Deferred,
        Some(Status::Deferred),
    ),
    row(
        "configuration.resource.alone",
        What::ConfigurationOfResource,
        &[OthersSucceed],
        Route::Quarantine(Why::Evidence),
        Counts::Nothing,
        DEAD,
    ),
    row(
        "configuration.resource",
        What::ConfigurationOfResource,
        &[],
        Route::PutOff,
        Counts::Deferred,
        Some(Status::Deferred),
    ),
    row("unknown.harmful", What::Unknown, &[Harmful], Route::Quarantine(Why::Evidence), Counts::Failed, DEAD),
    row("unknown", What::Unknown, &[], Route::Retry, Counts::Failed, Some(Status::Failed)),
    row(
        "provider_dead_lettered",
        What::ProviderDeadLettered,
        &[],
        Route::Quarantine(Why::Evidence),
        Counts::Failed,
        DEAD,
    ),
    row("worker_lost", What::WorkerLost, &[], Route::Suspect, Counts::Nothing, None),
    row("worker_lost.alone", What::WorkerLostAlone, &[], Route::Suspect, Counts::Crashed, None),
    row(
        "interrupted.harmful",
        What::Interrupted,
        &[Harmful],
        Route::Quarantine(Why::OutcomeAmbiguous),
        Counts::Interrupted,
        DEAD,
    ),
    row("interrupted", What::Interrupted, &[], Route::Ready, Counts::Interrupted, None),
    // Nothing was tried, so nothing is learnt: a suspect stays one.
    row("not_sent.suspect", What::NotSent, &[Given::Suspect], Route::Suspect, Counts::Interrupted, None),
    row("not_sent", What::NotSent, &[], Route::Ready, Counts::Interrupted, None),
    row("too_old", What::TooOld, &[], Route::Quarantine(Why::Age), Counts::Nothing, DEAD),
    row("refused", What::Refused, &[], Route::Quarantine(Why::OutcomeAmbiguous), Counts::Nothing, DEAD),
];

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// A send is unanswered, and when the next try would be due it may not be repeated (I-10).
    UnrepeatableSend,
    /// The failure in hand used the last of the allowance, and the policy names no alternative (P-01, P-02).
    AllowanceUsedUp,
    /// The same, where the policy's alternative is manual review.
    AllowanceUsedUpForReview,
    /// `max_crashed_attempts` is reached.
    CrashesUsedUp,
    /// `max_age` or `deliver_by` has passed.
    Expired,
}

/// One bound on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Stable id.
    pub id: &'static str,
    /// When it applies.
    pub limit: Limit,
    /// What to do instead of waiting.
    pub route: Route,
    /// Status afterwards.
    pub status: Status,
}

const fn bound(id: &'static str, limit: Limit, why: Why) -> Bound {
    Bound { id, limit, route: Route::Quarantine(why), status: Status::DeadLettered }
}

/// The bounds, in order: the first that is exceeded replaces the wait.
pub static BOUNDS: &[Bound] = &[
    bound("unanswered", Limit::UnrepeatableSend, Why::OutcomeAmbiguous),
    bound("allowance", Limit::AllowanceUsedUp, Why::Allowance),
    Bound {
        id: "allowance.review",
        limit: Limit::AllowanceUsedUpForReview,
        route: Route::ManualReview,
        status: Status::Failed,
    },
    bound("crashes", Limit::CrashesUsedUp, Why::Crashes),
    bound("age", Limit::Expired, Why::Age),
];

/// The row for what happened, where `given` says which conditions hold.
pub fn find(what: What, given: impl Fn(Given) -> bool) -> &'static Row {
    ROWS.iter()
        .find(|row| row.what == what && row.given.iter().all(|condition| given(*condition)))
        .expect("each What has a row without conditions (test `every_what_has_an_unconditional_last_row`)")
}

/// The first bound that is exceeded, where `exceeded` says which limits are.
pub fn ends(exceeded: impl Fn(Limit) -> bool) -> Option<&'static Bound> {
    BOUNDS.iter().find(|bound| exceeded(bound.limit))
}
