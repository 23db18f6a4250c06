//! Operators' acts and what became of them.

use dlo_core::{DeadLetterDraft, DestinationName, EntryKey, Timestamp, text::ActText};

/// How a destination changed when it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which.
    pub destination: DestinationName,
    /// Its version now.
    pub version: u64,
    /// What happened.
    pub change: AppliedChange,
}

/// See [`Applied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedChange {
    /// New.
    Created,
    /// Another version.
    Updated,
    /// As it was.
    Unchanged,
}

/// What became of one item of an operator's act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActResult {
    /// Done.
    Done,
    /// It was so already.
    Unchanged,
    /// There is no such thing.
    Missing,
    /// Not allowed in the state that it is in.
    WrongState(&'static str),
}

/// An act on destinations' holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldAct {
    /// Hold until a person releases it.
    Hold {
        /// Why.
        reason: ActText,
    },
    /// End every hold, by a person or by evidence.
    Release,
    /// One try now.
    Probe,
}

/// An act on live entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAct {
    /// Ends it: not delivered, not dead-lettered. Not while claimed; manual review may be cancelled.
    Cancel,
    /// Due at that time at the latest, in its lane, even before `not_before`; `Unchanged` if it was. Not while claimed.
    ///
    /// Out of manual review the row moves to a new generation ([`dlo_core::Entry::next_generation`]) due at that time.
    /// The old one has not ended in any of the three ways, so it has no row among the ended; its attempts stay, the
    /// audit event tells of the move, and fences of it answer `Terminal`.
    RetryNow {
        /// When.
        due: Timestamp,
    },
    /// Out of manual review into quarantine.
    DeadLetter(Box<DeadLetterDraft>),
}

/// Result of one item of a redrive; each has a ledger row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveResult {
    /// A new generation is ready.
    Redriven {
        /// Its key.
        key: EntryKey,
    },
    /// Refused; the dead letter is as it was.
    Refused(dlo_core::dead_letter::RedriveRefusal),
    /// There is no such dead letter.
    Missing,
}
