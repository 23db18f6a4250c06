//! `observe`: what becomes of a destination. Opens holds on evidence, closes them by probes, ramps up again.

use crate::{Class, DeliveryPolicy, EntryId, Health, Reason, Timestamp};

/// What one transition says about its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It took an emission.
    Success,
    /// It did not take one for a passing cause (transient, or ambiguous: no answer).
    Transient {
        /// Which entry.
        entry: EntryId,
        /// Why.
        reason: Reason,
    },
    /// Credential or configuration evidence about the whole destination.
    Configuration {
        /// Which entry.
        entry: EntryId,
        /// Why.
        reason: Reason,
    },
    /// A failure that may concern one resource only (403, 404, 410, 3xx).
    Resource {
        /// Which entry.
        entry: EntryId,
        /// Why.
        reason: Reason,
    },
    /// It answered, but says nothing about its health (deterministic refusals, deferrals).
    Answered,
    /// Nothing was learnt.
    Nothing,
}

/// New health after a batch of observations in order, or `None` if nothing changes.
///
/// `waiting` is the number of live entries of the destination, at most as many as the caller counted
/// (the breaker opens on fewer distinct entries when fewer are waiting).
pub fn observe(
    health: &Health,
    policy: &DeliveryPolicy,
    observations: &[Observation],
    waiting: u64,
    now: Timestamp,
) -> Option<Health> {
    let _ = (health, policy, observations, waiting, now, Class::Transient);
    unimplemented!("being written")
}

/// Takes the probe: pushes `next_probe` out by the time that one emission may take, so that no second probe starts.
/// `None` if the destination is not due for one.
pub fn begin_probe(health: &Health, policy: &DeliveryPolicy, now: Timestamp) -> Option<Health> {
    let _ = (health, policy, now);
    unimplemented!("being written")
}
