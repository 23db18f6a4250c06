//! Claims: leases on entries, their fence, and the five answers to a change by a worker.

use crate::{EntryKey, Token};

/// What a change by a worker, or by maintenance, must match (I-04, I-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The token of the claim (claim mode).
    Claim(Token),
    /// The version of the row, in the hand of its worker (plain mode).
    Version(u64),
    /// The version of the row as maintenance read it (I-05). It holds as [`Self::Version`] does, and is remembered as
    /// another fence: a late plain-mode worker must not be told that what maintenance saved was its own.
    Maintenance(u64),
}

/// One entry under one fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRef {
    /// Which generation of which entry.
    pub key: EntryKey,
    /// What must still hold.
    pub fence: Fence,
}

/// Answer to a fenced change. Repeating a change with the fence that made it answers `Applied` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransitionResult {
    /// Done, now or before by the same fence.
    Applied,
    /// Another claim holds the entry, or none does; nothing changed.
    StaleClaim,
    /// The generation has ended otherwise; nothing changed.
    Terminal,
    /// The row version moved on; nothing changed.
    ConcurrencyLost,
    /// There is no such entry.
    Missing,
}

impl TransitionResult {
    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::StaleClaim => "stale_claim",
            Self::Terminal => "terminal",
            Self::ConcurrencyLost => "concurrency_lost",
            Self::Missing => "missing",
        }
    }
}
