//! The dead letter: the quarantine record opened in the same transaction as the terminal transition (I-09).

use crate::{
    Class, DeadLetterId, DestinationName, Duplicates, EntryKey, EnvelopeId, OperationKey, Reason, Timestamp,
    entry::{Counters, LastFailure},
    fingerprint::Fingerprint,
    text::ErrorText,
};

/// What became of a dead letter. It outlives its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadLetterState {
    /// Nobody has released or disposed of it.
    Open,
    /// A redrive made a new generation.
    Redriven,
    /// The effect was found to have happened.
    Reconciled,
    /// Ended without redelivery.
    Disposed,
}

impl DeadLetterState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Open, Self::Redriven, Self::Reconciled, Self::Disposed];

    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Redriven => "redriven",
            Self::Reconciled => "reconciled",
            Self::Disposed => "disposed",
        }
    }
}

/// What `decide` says about a dead letter; the store adds what the entry and envelope rows hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterDraft {
    /// Its id.
    pub id: DeadLetterId,
    /// Class of the failure that caused it.
    pub class: Class,
    /// Reason of the failure that caused it.
    pub reason: Reason,
    /// Why it was dead-lettered: the cause itself, or a limit such as `outbox.max_age_exceeded`.
    pub code: Reason,
    /// Message of that code.
    pub message: ErrorText,
    /// Rule that classified the cause.
    pub rule: Option<crate::text::Code>,
    /// Fingerprint for grouping.
    pub fingerprint: Fingerprint,
}

/// What about a stored row can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unreadable {
    /// The entry's own row.
    Entry,
    /// The envelope's row.
    Envelope,
    /// The payload: missing, or its codec or key is not known here.
    Payload,
}

impl Unreadable {
    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Envelope => "envelope",
            Self::Payload => "payload",
        }
    }
}

/// The dead letter of a row that the store can't read: quarantined by itself, so that it never stalls the rest
/// (trap D10). Can't fail; `problem` says what is unreadable, never with content of the row.
pub fn unreadable(id: DeadLetterId, destination: &DestinationName, problem: Unreadable) -> DeadLetterDraft {
    let message = ErrorText::new(format!("the stored {} can't be read", problem.as_str()));
    let reason = crate::reason::ENTRY_UNREADABLE;
    let class = Class::Deterministic;
    DeadLetterDraft {
        id,
        class,
        code: reason.clone(),
        rule: None,
        fingerprint: crate::fingerprint::fingerprint(class, &reason, destination, message.as_str()),
        message,
        reason,
    }
}

/// The dead letter that a person makes of an entry in manual review: its class and reason are those of the last
/// failure, `note` is the person's reason.
pub fn by_operator(
    id: DeadLetterId,
    last_failure: Option<&LastFailure>,
    destination: &DestinationName,
    note: &crate::text::ActText,
) -> DeadLetterDraft {
    let code = crate::reason::DEAD_LETTERED_BY_OPERATOR;
    let (class, reason, text) = match last_failure {
        Some(failure) => (failure.class, failure.reason.clone(), failure.text.clone()),
        None => (Class::Unknown, code.clone(), ErrorText::new("no attempt failed before")),
    };
    let fingerprint = crate::fingerprint::fingerprint(class, &reason, destination, text.as_str());
    DeadLetterDraft { id, class, reason, code, message: ErrorText::new(note.as_str()), rule: None, fingerprint }
}

/// What an envelope's payload was, without its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PayloadSummary {
    /// Media type.
    pub content_type: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the bytes, if bytes are carried.
    pub sha256: Option<[u8; 32]>,
}

/// A dead letter as a store reads it (C-019…C-031 as far as the outbox itself knows them).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its id.
    pub id: DeadLetterId,
    /// Database sequence: order and cursors.
    pub seq: u64,
    /// Which generation of which entry.
    pub key: EntryKey,
    /// Destination that it failed for.
    pub destination: DestinationName,
    /// Version of that destination at the end.
    pub destination_version: u64,
    /// Envelope.
    pub envelope: EnvelopeId,
    /// Event type; `None` when the stored envelope can't be read.
    pub event_type: Option<String>,
    /// Source event id.
    pub source_event_id: Option<String>,
    /// Correlation id.
    pub correlation_id: Option<String>,
    /// Audit residue id.
    pub audit_residue_id: Option<String>,
    /// Payload without its bytes.
    pub payload: PayloadSummary,
    /// Operation key, kept over redrive.
    pub operation_key: OperationKey,
    /// Class of the cause.
    pub class: Class,
    /// Reason of the cause.
    pub reason: Reason,
    /// Why it was dead-lettered.
    pub code: Reason,
    /// Message of that code.
    pub message: ErrorText,
    /// Rule that classified the cause.
    pub rule: Option<crate::text::Code>,
    /// Original error, kept beside the dead-letter reason.
    pub last_failure: Option<LastFailure>,
    /// First failure.
    pub first_failed: Option<Timestamp>,
    /// Last failure.
    pub last_failed: Option<Timestamp>,
    /// First claim over the lineage.
    pub first_claimed: Option<Timestamp>,
    /// When it was opened.
    pub opened: Timestamp,
    /// Attempts recorded over the lineage.
    pub attempts: u32,
    /// Counters at the end.
    pub counters: Counters,
    /// Whether the last send is unanswered.
    pub unanswered: bool,
    /// Fingerprint.
    pub fingerprint: Fingerprint,
    /// What became of it.
    pub state: DeadLetterState,
}

/// Why a dead letter is not redriven. Each has a stable code and a page in `docs/errors/`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedriveRefusal {
    /// It is not open any more (insert-if-absent, I-15).
    #[error("dead letter is {state}, not open: it was released or disposed of before")]
    NotOpen {
        /// State that it is in.
        state: &'static str,
    },
    /// The last send is unanswered and the destination calls duplicates harmful (I-10).
    #[error(
        "the last send has no authoritative answer and `{destination}` declares duplicates harmful: a redrive could repeat the \
             effect; look up the operation key at the provider first"
    )]
    Unanswered {
        /// Destination.
        destination: DestinationName,
    },
    /// The last send is unanswered and the deduplication window is over.
    #[error(
        "the last send has no authoritative answer and the deduplication window of `{destination}` ended at {until}: a redrive \
             could repeat the effect; look up the operation key at the provider first"
    )]
    WindowOver {
        /// Destination.
        destination: DestinationName,
        /// End of the window.
        until: Timestamp,
    },
    /// `deliver_by` is absolute.
    #[error("`deliver_by` was {deliver_by}: it can't be delivered in time any more")]
    DeadlinePassed {
        /// The deadline.
        deliver_by: Timestamp,
    },
    /// The stored envelope can't be read.
    #[error("the stored envelope can't be read: there is nothing that could be delivered")]
    Unreadable,
    /// The destination is gone.
    #[error("destination `{destination}` does not exist any more: apply it first")]
    UnknownDestination {
        /// Destination.
        destination: DestinationName,
    },
    /// Another generation of the entry is alive.
    #[error("generation {generation} of the entry is alive: wait for its end")]
    Alive {
        /// The generation.
        generation: u32,
    },
}

impl RedriveRefusal {
    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotOpen { .. } => "redrive.not_open",
            Self::Unanswered { .. } => "redrive.unanswered",
            Self::WindowOver { .. } => "redrive.window_over",
            Self::DeadlinePassed { .. } => "redrive.deadline_passed",
            Self::Unreadable => "redrive.unreadable",
            Self::UnknownDestination { .. } => "redrive.unknown_destination",
            Self::Alive { .. } => "redrive.alive",
        }
    }

    /// All codes.
    pub const CODES: [&'static str; 7] = [
        "redrive.not_open",
        "redrive.unanswered",
        "redrive.window_over",
        "redrive.deadline_passed",
        "redrive.unreadable",
        "redrive.unknown_destination",
        "redrive.alive",
    ];
}

/// Whether a dead letter may be redriven without gates: `None` = yes.
///
/// `destination` is the current one; `alive` is a live generation of the same entry, if there is one; `readable` says
/// whether the stored envelope can be read. The rule about unanswered sends holds whatever the class is (I-10).
pub fn redrive_refusal(
    dead_letter: &DeadLetter,
    destination: Option<&crate::Destination>,
    deliver_by: Option<Timestamp>,
    alive: Option<u32>,
    readable: bool,
    now: Timestamp,
) -> Option<RedriveRefusal> {
    if dead_letter.state != DeadLetterState::Open {
        return Some(RedriveRefusal::NotOpen { state: dead_letter.state.as_str() });
    }
    if let Some(generation) = alive {
        return Some(RedriveRefusal::Alive { generation });
    }
    let name = dead_letter.destination.clone();
    let Some(destination) = destination else {
        return Some(RedriveRefusal::UnknownDestination { destination: name });
    };
    if !readable {
        return Some(RedriveRefusal::Unreadable);
    }
    if let Some(deliver_by) = deliver_by.filter(|deliver_by| *deliver_by <= now) {
        return Some(RedriveRefusal::DeadlinePassed { deliver_by });
    }
    if !dead_letter.unanswered {
        return None;
    }
    match destination.spec.duplicates {
        Duplicates::Harmful => Some(RedriveRefusal::Unanswered { destination: name }),
        Duplicates::Tolerated => None,
        Duplicates::Deduplicated { .. } => {
            // The window runs from the first claim of the operation key, so a redrive does not restart it.
            let until = destination.spec.repeatable_until(dead_letter.first_claimed.unwrap_or(dead_letter.opened));
            (until <= now).then_some(RedriveRefusal::WindowOver { destination: name, until })
        }
    }
}
