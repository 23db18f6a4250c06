//! The entry: one durable state record around one envelope for one destination.

use core::fmt;

use crate::{
    Class, DestinationName, EntryId, EnvelopeId, OperationKey, Reason, TenantId, Timestamp, Token,
    outcome::Phase,
    text::{Code, ErrorText},
};

/// 0 for the original; each redrive of the same entry adds one.
pub type Generation = u32;

/// Key of rows about one generation of one entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// Owner.
    pub tenant: TenantId,
    /// Entry.
    pub entry: EntryId,
    /// Generation.
    pub generation: Generation,
}

impl fmt::Display for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.tenant, self.entry, self.generation)
    }
}

/// Where an entry is (I-01). The state of an entry is the state of its latest generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryState {
    /// Due, unclaimed.
    Ready,
    /// Unclaimed and due later.
    Waiting,
    /// Under a lease.
    Claimed,
    /// Waits behind the head of its ordering key.
    Blocked,
    /// Set aside for a person; never selected.
    ManualReview,
    /// Ended: delivered.
    Delivered,
    /// Ended: in quarantine.
    DeadLettered,
    /// Ended: cancelled by a person.
    Cancelled,
}

impl EntryState {
    /// All states, live ones first.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Waiting,
        Self::Claimed,
        Self::Blocked,
        Self::ManualReview,
        Self::Delivered,
        Self::DeadLettered,
        Self::Cancelled,
    ];

    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Claimed => "claimed",
            Self::Blocked => "blocked",
            Self::ManualReview => "manual_review",
            Self::Delivered => "delivered",
            Self::DeadLettered => "dead_lettered",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the generation has ended (I-03).
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Delivered | Self::DeadLettered | Self::Cancelled)
    }
}

impl fmt::Display for EntryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Delivery status (S-03): a function of state and of how the entry was last routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Never tried.
    Pending,
    /// Terminal success.
    Delivered,
    /// Put off; nothing was charged.
    Deferred,
    /// Failed; retryability is not implied.
    Failed,
    /// Failed, and expected to be retryable.
    RetryableFailure,
    /// Terminal failure.
    DeadLettered,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Delivered, Self::Deferred, Self::Failed, Self::RetryableFailure, Self::DeadLettered];

    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Deferred => "deferred",
            Self::Failed => "failed",
            Self::RetryableFailure => "retryable_failure",
            Self::DeadLettered => "dead_lettered",
        }
    }
}

/// Which queue of its destination a live entry stands in. Stored as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Never tried in this generation.
    Pending = 0,
    /// Tried before.
    Retry = 1,
    /// Was in flight when a worker was lost: tried as the only suspect of its process.
    Suspect = 2,
}

impl Lane {
    /// From the stored number.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Pending),
            1 => Some(Self::Retry),
            2 => Some(Self::Suspect),
            _ => None,
        }
    }
}

/// Counters of an entry over its whole lineage. They only grow (I-07).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counters {
    /// Claims taken; counted, and decide nothing (traps D1–D3).
    pub claims: u32,
    /// Failed attempts that were charged (`RetryCount` of the seeds).
    pub failed: u32,
    /// Crashes as the only suspect.
    pub crashed: u32,
    /// Deferred, pending and held outcomes; they use no allowance (I-08).
    pub deferred: u32,
    /// Claims released by a shutdown.
    pub interrupted: u32,
}

/// The last failure of an entry, kept beside a dead-letter reason (trap D12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// Class.
    pub class: Class,
    /// Reason code.
    pub reason: Reason,
    /// Provider's code, if it gave one.
    pub provider_code: Option<Code>,
    /// Text composed by us.
    pub text: ErrorText,
}

/// What changes on an entry with every transition, whatever comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Counters of the lineage.
    pub counters: Counters,
    /// Attempts recorded over the lineage; the next attempt's number is one more.
    pub attempts: u32,
    /// First failure of this generation.
    pub first_failed: Option<Timestamp>,
    /// Latest failure of this generation, charged or not.
    pub last_failed: Option<Timestamp>,
    /// Latest failure.
    pub last_failure: Option<LastFailure>,
    /// Whether a send may have been taken that no answer has settled since (I-10). Refusals of later sends (429, 503 …)
    /// do not settle an earlier one; delivered and pending do.
    pub unanswered: bool,
}

/// A live entry as a store reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: EntryKey,
    /// Database sequence of this generation: order and cursors, never identity.
    pub seq: u64,
    /// What it carries.
    pub envelope: EnvelopeId,
    /// Where it goes.
    pub destination: DestinationName,
    /// Key given to the provider.
    pub operation_key: OperationKey,
    /// Start of this generation.
    pub created: Timestamp,
    /// Last change of the row.
    pub updated: Timestamp,
    /// Not tried before.
    pub not_before: Option<Timestamp>,
    /// Dead-lettered if not delivered by.
    pub deliver_by: Option<Timestamp>,
    /// Which queue of the destination.
    pub lane: Lane,
    /// When it may be tried.
    pub due: Timestamp,
    /// How it was last routed.
    pub status: Status,
    /// Set aside for a person.
    pub manual_review: bool,
    /// Grows with every change of the row (S-07).
    pub version: u64,
    /// First claim over the lineage: where a deduplication window starts.
    pub first_claimed: Option<Timestamp>,
    /// Counters at the start of this generation: the allowance is measured from here.
    pub baseline: Counters,
    /// What happened so far.
    pub progress: Progress,
    /// The claim that holds it, if one does.
    pub claim: Option<Claim>,
}

/// A lease on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Opaque fence.
    pub token: Token,
    /// Process that holds it.
    pub incarnation: crate::Incarnation,
    /// Taken at.
    pub claimed: Timestamp,
    /// Hard deadline by the database's clock.
    pub deadline: Timestamp,
    /// The first byte may have left.
    pub send_mark: bool,
    /// It was claimed as the only suspect in flight of its process.
    pub sole_suspect: bool,
}

impl Entry {
    /// Failed attempts charged to this generation.
    pub fn failed_in_generation(&self) -> u32 {
        self.progress.counters.failed.saturating_sub(self.baseline.failed)
    }

    /// Crashes charged to this generation.
    pub fn crashed_in_generation(&self) -> u32 {
        self.progress.counters.crashed.saturating_sub(self.baseline.crashed)
    }

    /// Where it is at that time.
    pub fn state(&self, now: Timestamp) -> EntryState {
        if self.claim.is_some() {
            EntryState::Claimed
        } else if self.manual_review {
            EntryState::ManualReview
        } else if self.due <= now {
            EntryState::Ready
        } else {
            EntryState::Waiting
        }
    }

    /// When it ends by age: the earlier of `deliver_by` and `max_age` after the later of start and `not_before`.
    pub fn expires(&self, max_age: core::time::Duration) -> Timestamp {
        let start = self.not_before.map_or(self.created, |t| t.max(self.created));
        let by_age = start.after(max_age);
        self.deliver_by.map_or(by_age, |t| t.min(by_age))
    }
}

impl Entry {
    /// The next generation of an entry, after a redrive or a retry out of manual review: another row of the same
    /// entry and operation key (I-11), with the counters as its baseline (I-07) and no failure of its own yet.
    ///
    /// What a lineage keeps is kept: counters, number of attempts, first claim, and whether the last send has an
    /// answer (I-10). `generation` is the latest one plus 1; `seq` is fresh.
    #[must_use]
    pub fn next_generation(&self, generation: Generation, seq: u64, due: Timestamp, now: Timestamp) -> Self {
        let counters = self.progress.counters;
        Self {
            key: EntryKey { generation, ..self.key.clone() },
            seq,
            created: now,
            updated: now,
            lane: Lane::Pending,
            due,
            status: Status::Pending,
            manual_review: false,
            version: 1,
            baseline: counters,
            progress: Progress {
                counters,
                attempts: self.progress.attempts,
                unanswered: self.progress.unanswered,
                ..Progress::default()
            },
            claim: None,
            ..self.clone()
        }
    }
}

/// One try at emission that did not simply succeed at once, as recorded for ever beside the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Number over the lineage, from 1.
    pub number: u32,
    /// Generation it belonged to.
    pub generation: Generation,
    /// When the emission began.
    pub started: Timestamp,
    /// When the outcome was known.
    pub finished: Timestamp,
    /// Outcome name ([`crate::Outcome::name`]), or `claim_lost`.
    pub outcome: Code,
    /// Class, if it failed.
    pub class: Option<Class>,
    /// Reason, if it failed.
    pub reason: Option<Reason>,
    /// Rule that classified it.
    pub rule: Option<Code>,
    /// How far it got.
    pub phase: Phase,
    /// HTTP status, if there was one.
    pub http_status: Option<u16>,
    /// Provider's own code.
    pub provider_code: Option<Code>,
    /// Text composed by us.
    pub text: ErrorText,
    /// Whether it used the allowance.
    pub charged: bool,
    /// Claim that it ran under.
    pub token: Option<Token>,
    /// Version of the destination that it ran with.
    pub destination_version: u64,
}
