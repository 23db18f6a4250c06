//! `observe`: what becomes of a destination. Opens holds on evidence, closes them by probes, ramps up again.
//!
//! - **Breaker.** `breaker.failures` consecutive transient failures (ambiguous ones included) from at least
//!   `breaker.entries` distinct entries open a hold; fewer entries are enough when fewer are waiting.
//! - **Configuration.** Evidence about the whole destination opens a hold at once; failures that may concern one
//!   resource open it when `resource_failures` distinct entries met them with no success in between.
//! - **Probe.** [`begin_probe`] counts the probe as failed and books the longer wait at once; only a success takes
//!   that back. So a probe whose worker dies has failed without anyone saying so, and a late result of an emission
//!   that was in flight when the hold opened can't be taken for a failed probe.
//! - **Closing.** Any success closes a hold by breaker or configuration, a probe's or a late one's: it is evidence that
//!   the destination takes things, and what follows is a ramp that begins with one emission. An authoritative refusal
//!   (such as 400) closes a breaker's hold too, because it answered. Holds by a person, by a restore, and for want of
//!   an emitter are not evidence about the destination and are never changed here.
//! - **Ramp.** One emission at first, doubled by each batch of nothing but successes, halved by a failure, forgotten
//!   when it reaches the policy's concurrency.
//!
//! Healthy traffic changes nothing, so it costs no write.

use crate::{
    Class, DeliveryPolicy, EntryId, Health, Hold, HoldCause, Reason, Timestamp, health::Admission,
    policy::BreakerPolicy, reason,
};

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
    /// It answered, but refused this one thing (deterministic refusals).
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
    let mut automaton = Automaton { health: health.clone(), policy, waiting, now };
    let held_before = health.hold.is_some();
    for observation in observations {
        automaton.take(observation);
    }
    if !held_before && automaton.health.hold.is_none() {
        automaton.ramp(observations);
    }
    (automaton.health != *health).then_some(automaton.health)
}

/// Takes the probe: counts it as failed until a success says otherwise, and pushes `next_probe` out by the longer of
/// the next wait and the time that one emission may take, so that no second probe starts.
/// `None` if the destination is not due for one.
pub fn begin_probe(health: &Health, policy: &DeliveryPolicy, now: Timestamp) -> Option<Health> {
    if health.admission(now) != Admission::Probe {
        return None;
    }
    let mut probing = health.clone();
    probing.probe_requested = false;
    if let Some(hold) = &mut probing.hold {
        hold.failed_probes = hold.failed_probes.saturating_add(1);
        // A time that only a person may end (`MAX`) stays, although that person asked for one try.
        if hold.next_probe != Timestamp::MAX {
            // After a clock that was ahead, only the first probe is due by that ([`Hold::is_probe_due`]).
            hold.since = hold.since.min(now);
            hold.next_probe = now.after(probe_wait(policy.breaker, hold.failed_probes).max(policy.emission_deadline));
            hold.next_probe_set = now;
        }
    }
    Some(probing)
}

/// Holds a destination whose emitter kind is unknown to this process; its entries are kept.
///
/// The hold asks again after `breaker.probe_min`, then less often, so that a process that has the emitter resumes by
/// [`emitter_found`] without a person. `None` if it is held for that already and not due.
pub fn emitter_unknown(health: &Health, policy: &DeliveryPolicy, now: Timestamp) -> Option<Health> {
    let before = health.hold.as_ref().filter(|hold| hold.cause == HoldCause::EmitterUnknown);
    if before.is_some_and(|hold| !hold.is_probe_due(now)) && !health.probe_requested {
        return None;
    }
    // A hold that only a person may end is not replaced by one that ends by itself.
    if health.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Restore) {
        return None;
    }
    let failed_probes = before.map_or(0, |hold| hold.failed_probes.saturating_add(1));
    let mut held = health.clone();
    held.probe_requested = false;
    held.hold = Some(Hold {
        cause: HoldCause::EmitterUnknown,
        class: Class::Configuration,
        reason: reason::EMITTER_UNKNOWN,
        since: before.map_or(now, |hold| hold.since.min(now)),
        next_probe: now.after(probe_wait(policy.breaker, failed_probes)),
        next_probe_set: now,
        failed_probes,
    });
    Some(held)
}

/// Ends a hold by [`emitter_unknown`], in a process that has the emitter. `None` if there is no such hold.
pub fn emitter_found(health: &Health) -> Option<Health> {
    let hold = health.hold.as_ref().filter(|hold| hold.cause == HoldCause::EmitterUnknown)?;
    debug_assert_eq!(hold.reason, reason::EMITTER_UNKNOWN);
    Some(Health { hold: None, ..health.clone() })
}

/// Wait before the next probe after that many failed ones: `probe_min`, doubled with each, at most `probe_max`.
fn probe_wait(breaker: BreakerPolicy, failed: u32) -> core::time::Duration {
    let factor = 1_u32.checked_shl(failed.min(31)).unwrap_or(u32::MAX);
    breaker.probe_min.saturating_mul(factor).min(breaker.probe_max)
}

struct Automaton<'a> {
    health: Health,
    policy: &'a DeliveryPolicy,
    waiting: u64,
    now: Timestamp,
}

impl Automaton<'_> {
    fn take(&mut self, observation: &Observation) {
        match observation {
            Observation::Success => self.success(),
            Observation::Transient { entry, reason } => self.transient(*entry, reason),
            Observation::Configuration { reason, .. } => self.configuration(reason),
            Observation::Resource { entry, reason } => self.resource(*entry, reason),
            Observation::Answered => self.answered(),
            Observation::Nothing => {}
        }
    }

    fn success(&mut self) {
        let cause = self.health.hold.as_ref().map(|hold| hold.cause);
        if !self.health.resource_streak.is_empty() || cause == Some(HoldCause::Configuration) {
            self.health.last_success = Some(self.now);
        }
        self.health.resource_streak.clear();
        self.forget_streak();
        if matches!(cause, Some(HoldCause::Breaker | HoldCause::Configuration)) {
            self.close();
        }
    }

    fn answered(&mut self) {
        self.forget_streak();
        if self.health.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::Breaker) {
            self.close();
        }
    }

    fn transient(&mut self, entry: EntryId, reason: &Reason) {
        if self.health.hold.is_some() {
            return self.probe_failed();
        }
        let breaker = self.policy.breaker;
        // Bounded, so that a failing entry among healthy ones stops costing writes.
        self.health.consecutive = self.health.consecutive.saturating_add(1).min(breaker.failures);
        add_distinct(&mut self.health.streak, entry, breaker.entries as usize);
        let needed = u64::from(breaker.entries).min(self.waiting).max(1);
        if self.health.consecutive >= breaker.failures && self.health.streak.len() as u64 >= needed {
            self.open(HoldCause::Breaker, Class::Transient, reason);
        }
    }

    fn configuration(&mut self, reason: &Reason) {
        match &mut self.health.hold {
            // What answers again, but refuses the credential, needs a person and not patience.
            Some(hold) if hold.cause == HoldCause::Breaker => {
                hold.cause = HoldCause::Configuration;
                hold.class = Class::Configuration;
                hold.reason = reason.clone();
                self.probe_failed();
            }
            Some(_) => self.probe_failed(),
            None => self.open(HoldCause::Configuration, Class::Configuration, reason),
        }
    }

    fn resource(&mut self, entry: EntryId, reason: &Reason) {
        self.forget_streak();
        add_distinct(&mut self.health.resource_streak, entry, self.policy.resource_failures as usize);
        if self.health.hold.is_some() {
            return self.probe_failed();
        }
        if self.health.resource_streak.len() >= self.policy.resource_failures as usize {
            self.open(HoldCause::Configuration, Class::Configuration, reason);
        }
    }

    fn open(&mut self, cause: HoldCause, class: Class, reason: &Reason) {
        self.health.ramp = None;
        self.health.hold = Some(Hold {
            cause,
            class,
            reason: reason.clone(),
            since: self.now,
            next_probe: self.now.after(self.policy.breaker.probe_min),
            next_probe_set: self.now,
            failed_probes: 0,
        });
    }

    fn close(&mut self) {
        self.health.hold = None;
        self.forget_streak();
        self.set_ramp(1);
    }

    /// A failure while held. The probe was counted when it began; here only the rest of the time that was reserved
    /// for its emission is given back. A late result of another emission finds nothing to give back.
    fn probe_failed(&mut self) {
        if let Some(hold) = &mut self.health.hold
            && hold.next_probe != Timestamp::MAX
        {
            let due = self.now.after(probe_wait(self.policy.breaker, hold.failed_probes));
            if due < hold.next_probe {
                (hold.next_probe, hold.next_probe_set) = (due, self.now);
            }
        }
    }

    fn forget_streak(&mut self) {
        self.health.consecutive = 0;
        self.health.streak.clear();
    }

    fn ramp(&mut self, observations: &[Observation]) {
        let Some(ramp) = self.health.ramp else { return };
        let failed =
            observations.iter().any(|o| matches!(o, Observation::Transient { .. } | Observation::Configuration { .. }));
        if failed {
            self.set_ramp((ramp / 2).max(1));
        } else if !observations.is_empty() && observations.iter().all(|o| *o == Observation::Success) {
            self.set_ramp(ramp.saturating_mul(2));
        }
    }

    fn set_ramp(&mut self, ramp: u32) {
        self.health.ramp = (ramp < self.policy.concurrency).then_some(ramp);
    }
}

fn add_distinct(entries: &mut Vec<EntryId>, entry: EntryId, limit: usize) {
    if entries.len() < limit && !entries.contains(&entry) {
        entries.push(entry);
    }
}
