//! `decide`: what becomes of an entry. The only place where a route is chosen (P-08).

use crate::{
    Destination, Entry, Outcome, Timestamp,
    dead_letter::DeadLetterDraft,
    entry::{Attempt, Lane, Progress, Status},
    observe::Observation,
    outcome::Receipt,
};

/// What happened to a claimed, or overdue, entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The emitter answered.
    Emitted(Outcome),
    /// The claim ended without an outcome: the worker is gone. Mark and suspicion are read from the entry's claim.
    ClaimLost,
    /// The sweep found it past `max_age` or `deliver_by`.
    Overdue,
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

/// A transition: all that the store has to save, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// What comes next.
    pub next: Next,
    /// The entry's progress after it.
    pub progress: Progress,
    /// The attempt to record; none for a first-try success.
    pub attempt: Option<Attempt>,
    /// What the destination's health learns from it.
    pub observation: Observation,
}

/// Decides. Pure: the same inputs give the same transition.
pub fn decide(entry: &Entry, event: &Event, context: &Context<'_>) -> Transition {
    let _ = (entry, event, context);
    unimplemented!("being written")
}
