//! Destinations: configured, versioned targets owned by one tenant.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::{DeliveryPolicy, DestinationName, TenantId, Timestamp};

/// What happens when a destination receives the same operation key twice. Required; there is no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duplicates {
    /// It collapses the same operation key for this long, from the first claim.
    Deduplicated {
        /// The provider's documented window.
        window: Duration,
    },
    /// A duplicate does no harm.
    Tolerated,
    /// A duplicate is a second payment, a second e-mail: never repeated blindly (I-10).
    Harmful,
}

impl Duplicates {
    /// Stable name without the window.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deduplicated { .. } => "deduplicated",
            Self::Tolerated => "tolerated",
            Self::Harmful => "harmful",
        }
    }
}

impl fmt::Display for Duplicates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deduplicated { window } => write!(f, "deduplicated({}s)", window.as_secs()),
            Self::Tolerated | Self::Harmful => f.write_str(self.name()),
        }
    }
}

/// An event-type rule: an exact type, or a prefix that ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTypeRule(String);

impl EventTypeRule {
    /// Whether the rule takes this event type.
    pub fn matches(&self, event_type: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => event_type.starts_with(prefix),
            None => self.0 == event_type,
        }
    }

    /// The rule as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EventTypeRule {
    type Err = crate::id::ParseIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let body = text.strip_suffix('*').unwrap_or(text);
        if text.is_empty() || text.len() > 255 || body.contains('*') || text.chars().any(char::is_control) {
            return Err(crate::id::ParseIdError {
                kind: "event type rule",
                value: text.chars().take(128).collect(),
                rule: "an event type of 1 to 255 bytes, or a prefix that ends in one `*`",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

/// Token bucket of a destination. Pace only delays (I-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Emissions allowed per minute, at least 1.
    pub per_minute: u32,
    /// Emissions that may go at once after a pause, at least 1.
    pub burst: u32,
}

/// What a destination is, without the version that the store gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationSpec {
    /// Owner.
    pub tenant: TenantId,
    /// Name within the tenant.
    pub name: DestinationName,
    /// Which emitter: `webhook`, `noop`, or an embedder's own kind.
    pub emitter: String,
    /// The emitter's own settings as a JSON object; secrets only as references.
    pub settings: String,
    /// What a duplicate does there.
    pub duplicates: Duplicates,
    /// Delivery policy.
    pub policy: DeliveryPolicy,
    /// Token bucket, if paced.
    pub pace: Option<Pace>,
    /// Event types that are routed here when an envelope names no destination.
    pub event_types: Vec<EventTypeRule>,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Where the data may go.
    pub region: Option<String>,
}

impl DestinationSpec {
    /// A destination of tenant `default` with the default policy, no settings, no pace and no rules; set the other
    /// fields by name.
    pub fn new(name: DestinationName, emitter: impl Into<String>, duplicates: Duplicates) -> Self {
        Self {
            tenant: TenantId::default_tenant(),
            name,
            emitter: emitter.into(),
            settings: "{}".to_owned(),
            duplicates,
            policy: DeliveryPolicy::default(),
            pace: None,
            event_types: Vec::new(),
            owner: None,
            region: None,
        }
    }
}

impl DestinationSpec {
    /// Until when a send whose answer is not known may be begun again, if the entry was first claimed at that time
    /// (I-10, risk R4): never where duplicates are harmful, always where they are tolerated.
    ///
    /// A window begins with the first claim, which is no later than the provider's own first sight, and a repeated
    /// send has to arrive before its end: so it may begin until one `emission_deadline` before.
    pub fn repeatable_until(&self, first_claimed: Timestamp) -> Timestamp {
        match self.duplicates {
            Duplicates::Harmful => Timestamp::EPOCH,
            Duplicates::Tolerated => Timestamp::MAX,
            Duplicates::Deduplicated { window } => {
                first_claimed.after(window.saturating_sub(self.policy.emission_deadline))
            }
        }
    }
}

/// A stored destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// What it is.
    pub spec: DestinationSpec,
    /// Grows by one with every change; recorded with each attempt.
    pub version: u64,
    /// When this version was applied.
    pub applied: Timestamp,
}
