//! What a saved transition means to logs and counters.

use dlo_core::{
    Class, DeadLetterId, DeliveryPolicy, Entry, EntryId, Envelope, Reason, Timestamp,
    decide::{Next, Transition},
};

use crate::{
    events,
    shared::{LaneKey, Shared},
};

/// How a transition ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Waits,
    ManualReview,
    DeadLettered { id: DeadLetterId, code: Reason },
}

/// The part of a transition that is told to people, kept while the rest is with the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) end: End,
    pub(crate) attempt: u32,
    pub(crate) class: Option<Class>,
    pub(crate) reason: Option<Reason>,
    pub(crate) charged: bool,
    pub(crate) last_chance: bool,
    pub(crate) due: Option<Timestamp>,
}

impl Note {
    /// Of a transition; `None` for what only adds to the number of deliveries.
    pub(crate) fn of(entry: &Entry, transition: &Transition, policy: &DeliveryPolicy) -> Option<Self> {
        let (end, due) = match &transition.next {
            Next::Delivered { .. } => return None,
            Next::Wait { due, .. } => (End::Waits, Some(*due)),
            Next::ManualReview => (End::ManualReview, None),
            Next::DeadLetter(draft) => (End::DeadLettered { id: draft.id, code: draft.code.clone() }, None),
        };
        let attempt = transition.attempt.as_ref();
        let cause = match &transition.next {
            Next::DeadLetter(draft) => (Some(draft.class), Some(draft.reason.clone())),
            _ => (attempt.and_then(|a| a.class), attempt.and_then(|a| a.reason.clone())),
        };
        let charged = attempt.is_some_and(|attempt| attempt.charged);
        let failed = transition.progress.counters.failed.saturating_sub(entry.baseline.failed);
        let last_chance = end == End::Waits
            && charged
            && policy.dead_letter_on_max_retry_attempts
            && failed.saturating_add(1) == policy.max_retry_attempts;
        Some(Self {
            end,
            attempt: transition.progress.attempts,
            class: cause.0,
            reason: cause.1,
            charged,
            last_chance,
            due,
        })
    }

    /// Counts it, once it is saved.
    pub(crate) fn count(&self, shared: &Shared, key: &LaneKey) {
        if self.charged {
            shared.metrics.charged(key);
        }
        if let End::DeadLettered { code, .. } = &self.end {
            let class = self.class.unwrap_or(Class::Unknown);
            shared.metrics.dead_letter(key, class, self.reason.as_ref().unwrap_or(code));
        }
    }

    /// Counts it and tells it, once it is saved; with what the envelope says to find its traces elsewhere (P-10).
    pub(crate) fn tell(&self, shared: &Shared, key: &LaneKey, entry: EntryId, envelope: Option<&Envelope>) {
        self.count(shared, key);
        match &self.end {
            End::Waits if self.class.is_none() && !self.charged => events::put_off(key, entry, self),
            End::Waits => events::emission_failed(key, entry, self),
            End::ManualReview => events::manual_review(key, entry, self, envelope),
            End::DeadLettered { id, code } => events::dead_letter_opened(key, entry, self, *id, code, envelope),
        }
        if self.last_chance {
            events::last_chance(key, entry, self, envelope);
        }
        if let Some(due) = self.due {
            shared.expect_due(due);
        }
    }
}
