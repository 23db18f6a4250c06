//! Health of a destination: holds, breaker, probe, ramp and pace, as one durable row.

use crate::{Class, EntryId, Reason, Timestamp, text::ActText};

/// Why a destination is held by the product itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldCause {
    /// The breaker opened on consecutive transient failures.
    Breaker,
    /// Credential, permission or configuration evidence.
    Configuration,
    /// No emitter of this kind in the process.
    EmitterUnknown,
    /// The database may have gone back in time: reconcile first (I-10).
    Restore,
}

impl HoldCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Breaker, Self::Configuration, Self::EmitterUnknown, Self::Restore];

    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Configuration => "configuration",
            Self::EmitterUnknown => "emitter_unknown",
            Self::Restore => "restore",
        }
    }
}

/// A hold that evidence opened, and that a probe may close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub cause: HoldCause,
    /// Class of the evidence.
    pub class: Class,
    /// Reason of the evidence.
    pub reason: Reason,
    /// Since when.
    pub since: Timestamp,
    /// When one entry may be tried; [`Timestamp::MAX`] when only a person may end it.
    pub next_probe: Timestamp,
    /// When that time was set: it shows that the clock was ahead then.
    pub next_probe_set: Timestamp,
    /// Probes that began and were not followed by a success, one in flight included; the wait doubles with each, up to
    /// `probe_max`.
    pub failed_probes: u32,
}

impl Hold {
    /// Whether one entry may be tried now.
    ///
    /// The time of a probe can't have been set after now: where it says so, the clock was ahead then, and that time is as
    /// wrong. It is due then, so that a corrected clock does not keep a destination held for as long as it was ahead; who
    /// takes the probe sets it by the right clock. A hold that only a person may end stays.
    pub fn is_probe_due(&self, now: Timestamp) -> bool {
        self.next_probe <= now || (now < self.next_probe_set && self.next_probe != Timestamp::MAX)
    }
}

/// A hold by a person; only a person ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualHold {
    /// Since when.
    pub since: Timestamp,
    /// Who, as recorded in the audit event.
    pub actor: String,
    /// Why.
    pub reason: ActText,
}

/// Durable health of one destination for one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Grows with every change; changes by workers are conditional on it.
    pub version: u64,
    /// Hold by a person.
    pub manual: Option<ManualHold>,
    /// Hold by evidence.
    pub hold: Option<Hold>,
    /// A person asked for one try now.
    pub probe_requested: bool,
    /// Consecutive transient failures.
    pub consecutive: u32,
    /// Distinct entries among them, at most `breaker.entries`.
    pub streak: Vec<EntryId>,
    /// Distinct entries that met a failure that may concern one resource only, at most `resource_failures`.
    pub resource_streak: Vec<EntryId>,
    /// Latest success that contradicts such failures.
    pub last_success: Option<Timestamp>,
    /// Emissions allowed in flight while recovering; `None` = the policy's concurrency.
    pub ramp: Option<u32>,
    /// Theoretical arrival time of the token bucket.
    pub pace_at: Option<Timestamp>,
}

/// Whether, and how, a destination may be claimed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Freely, up to this many emissions in flight (`None` = the policy's concurrency).
    Open(Option<u32>),
    /// One entry, as a probe.
    Probe,
    /// Not before this time ([`Timestamp::MAX`] = until a person acts).
    Held(Timestamp),
}

impl Health {
    /// Whether the destination may be claimed from now.
    pub fn admission(&self, now: Timestamp) -> Admission {
        if self.probe_requested && (self.manual.is_some() || self.hold.is_some()) {
            return Admission::Probe;
        }
        if self.manual.is_some() {
            return Admission::Held(Timestamp::MAX);
        }
        match &self.hold {
            Some(hold) if hold.is_probe_due(now) => Admission::Probe,
            Some(hold) => Admission::Held(hold.next_probe),
            None => Admission::Open(self.ramp),
        }
    }

    /// Whether anything holds it.
    pub fn is_held(&self) -> bool {
        self.manual.is_some() || self.hold.is_some()
    }

    /// After a person's hold; `None` if a person holds it already. The store counts the version.
    #[must_use]
    pub fn hold_by_person(&self, hold: ManualHold) -> Option<Self> {
        self.manual.is_none().then(|| Self { manual: Some(hold), ..self.clone() })
    }

    /// After a person's release: every hold ends, and the evidence that was gathered so far is forgotten, so that one
    /// further failure does not hold it again. `None` if nothing holds it.
    #[must_use]
    pub fn release(&self) -> Option<Self> {
        self.is_held().then(|| Self {
            manual: None,
            hold: None,
            probe_requested: false,
            consecutive: 0,
            streak: Vec::new(),
            resource_streak: Vec::new(),
            ..self.clone()
        })
    }

    /// After a person asked for one try now; `None` if nothing holds it, or if one is asked for already.
    #[must_use]
    pub fn request_probe(&self) -> Option<Self> {
        (self.is_held() && !self.probe_requested).then(|| Self { probe_requested: true, ..self.clone() })
    }
}
