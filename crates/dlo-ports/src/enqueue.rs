//! Answers to an enqueue.

use dlo_core::{DestinationName, EntryId, EnvelopeId, TenantId, Timestamp};

/// Answer to one enqueue item. An item never raises: the others, and the caller's transaction, go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueAnswer {
    /// Saved; will be delivered at least once, or end in quarantine.
    Created {
        /// The envelope.
        envelope: EnvelopeId,
        /// One entry per destination, in the order of the destinations.
        entries: Vec<(EntryId, DestinationName)>,
    },
    /// The same key with the same content was saved before; nothing was added.
    Existing {
        /// The envelope that was saved first.
        envelope: EnvelopeId,
    },
    /// The same key was saved before with other content; nothing was added.
    Conflict {
        /// The envelope that was saved first.
        envelope: EnvelopeId,
    },
    /// Not saved.
    Refused(Refusal),
}

/// Why an enqueue item was not saved. Each has a stable code and a page in `docs/errors/`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The envelope breaks a bound.
    #[error(transparent)]
    Envelope(#[from] dlo_core::envelope::EnvelopeError),
    /// A named destination does not exist.
    #[error(
        "destination `{destination}` does not exist in tenant `{tenant}`: apply it first (`dlo destinations apply`)"
    )]
    UnknownDestination {
        /// Tenant.
        tenant: TenantId,
        /// Destination.
        destination: DestinationName,
    },
    /// No destination named, and no event-type rule takes it.
    #[error("no destination of tenant `{tenant}` takes this event type: name one, or add an `event_types` rule")]
    NoRoute {
        /// Tenant.
        tenant: TenantId,
    },
    /// More destinations than one item may have.
    #[error("{seen} destinations for one item: at most {limit} are allowed")]
    FanOut {
        /// How many were given.
        seen: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The destination's backlog is full.
    #[error("backlog of destination `{destination}` is full: {seen} entries wait and `backlog_limit` is {limit}")]
    BacklogFull {
        /// Destination.
        destination: DestinationName,
        /// Live entries.
        seen: u64,
        /// The limit.
        limit: u64,
    },
    /// `deliver_by` is not after now, or not after `not_before`.
    #[error("`deliver_by` {deliver_by} is not after {earliest}: nothing could be delivered in time")]
    DeadlinePassed {
        /// What was given.
        deliver_by: Timestamp,
        /// What it must be after.
        earliest: Timestamp,
    },
}

impl Refusal {
    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Envelope(_) => "enqueue.envelope_invalid",
            Self::UnknownDestination { .. } => "enqueue.unknown_destination",
            Self::NoRoute { .. } => "enqueue.no_route",
            Self::FanOut { .. } => "enqueue.fan_out",
            Self::BacklogFull { .. } => "enqueue.backlog_full",
            Self::DeadlinePassed { .. } => "enqueue.deadline_passed",
        }
    }

    /// All codes.
    pub const CODES: [&'static str; 6] = [
        "enqueue.envelope_invalid",
        "enqueue.unknown_destination",
        "enqueue.no_route",
        "enqueue.fan_out",
        "enqueue.backlog_full",
        "enqueue.deadline_passed",
    ];
}
