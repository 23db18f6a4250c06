//! Trouble of the store: what passes, what ends the run, and one log line for each change of state.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use dlo_ports::{StoreError, StoreErrorKind};

use crate::{events, limits, shared::locked};

/// What to do about a store error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Wait, and call again: it passes by itself or by somebody freeing space.
    Retry,
    /// End the run: going on could lose or repeat work.
    End,
}

fn remedy(kind: StoreErrorKind) -> Remedy {
    match kind {
        StoreErrorKind::Busy | StoreErrorKind::Unavailable | StoreErrorKind::DiskFull => Remedy::Retry,
        _ => Remedy::End,
    }
}

/// Verbs that only read: that they work says nothing about saving.
const READS: [&str; 4] = ["due_destinations", "destination", "lost_claims", "overdue"];

/// What one kind of verb meets.
#[derive(Debug, Default)]
struct Side {
    failing: AtomicBool,
    state: Mutex<Option<StoreErrorKind>>,
}

/// State of the store as the engine meets it.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    reads: Side,
    writes: Side,
    scout: AtomicBool,
    stuck: AtomicUsize,
}

/// An outcome in hand that the store would not save; while there is one, nothing is claimed by any lane.
#[derive(Debug)]
pub(crate) struct Stuck(Arc<Trouble>);

impl Drop for Stuck {
    fn drop(&mut self) {
        self.0.stuck.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Trouble {
    fn side(&self, verb: &str) -> &Side {
        if READS.contains(&verb) { &self.reads } else { &self.writes }
    }

    /// Takes note of a failure; logs it if the state changes by it.
    pub(crate) fn failed(&self, verb: &'static str, error: &StoreError) -> Remedy {
        let side = self.side(verb);
        let kind = error.kind();
        let before = locked(&side.state).replace(kind);
        side.failing.store(true, Ordering::Release);
        if before != Some(kind) {
            events::store_failed(verb, error);
        }
        remedy(kind)
    }

    /// Takes note of a verb that worked.
    pub(crate) fn worked(&self, verb: &'static str) {
        let side = self.side(verb);
        if !side.failing.load(Ordering::Acquire) || self.is_stuck() {
            return;
        }
        side.failing.store(false, Ordering::Release);
        if let Some(kind) = locked(&side.state).take() {
            events::store_recovered(verb, kind.code());
        }
    }

    /// Whether the last write failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.writes.failing.load(Ordering::Acquire)
    }

    /// Kind of the present trouble.
    pub(crate) fn state(&self) -> Option<StoreErrorKind> {
        locked(&self.writes.state).or(*locked(&self.reads.state))
    }

    /// While the store fails, claiming stops but for one claim at a time that finds out whether it works again.
    pub(crate) fn may_claim(&self) -> bool {
        !self.is_stuck() && (!self.is_failing() || !self.scout.swap(true, Ordering::AcqRel))
    }

    /// Whether an outcome in hand waits to be saved.
    fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire) > 0
    }

    /// An outcome could not be saved; the token lives until it is.
    pub(crate) fn stick(self: &Arc<Self>) -> Stuck {
        self.stuck.fetch_add(1, Ordering::AcqRel);
        Stuck(Arc::clone(self))
    }

    /// A claim has been answered; the next one may scout.
    pub(crate) fn claim_answered(&self) {
        self.scout.store(false, Ordering::Release);
    }
}

/// Waits that double.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(limits::STORE_RETRY_FIRST)
    }
}

impl Backoff {
    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(limits::STORE_RETRY_LONGEST);
        wait
    }

    /// After a success.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.next(), limits::STORE_RETRY_FIRST);
    }

    #[test]
    fn one_scout_at_a_time_while_the_store_fails() {
        let trouble = Arc::new(Trouble::default());
        assert!(trouble.may_claim() && trouble.may_claim());
        assert_eq!(trouble.failed("claim", &StoreError::new(StoreErrorKind::DiskFull, "full")), Remedy::Retry);
        assert!(trouble.may_claim());
        assert!(!trouble.may_claim());
        trouble.claim_answered();
        assert!(trouble.may_claim());
        let stuck = trouble.stick();
        trouble.claim_answered();
        trouble.worked("claim");
        assert!(trouble.is_failing() && !trouble.may_claim(), "an outcome waits to be saved");
        drop(stuck);
        trouble.worked("due_destinations");
        assert!(trouble.is_failing(), "a read says nothing about saving");
        trouble.worked("claim");
        assert!(trouble.may_claim() && trouble.may_claim());
        assert_eq!(trouble.failed("claim", &StoreError::new(StoreErrorKind::Fenced, "ended")), Remedy::End);
    }
}
