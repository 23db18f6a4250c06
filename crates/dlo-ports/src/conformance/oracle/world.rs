//! What sequences work with: destinations, and how emissions end.

use core::time::Duration;

use dlo_core::{
    Class, DeliveryPolicy, DestinationName, DestinationSpec, Duplicates, Failure, Observed, Outcome, Phase, Reason,
    TenantId, Timestamp, destination::Pace, policy::Alternative,
};

use super::ops::End;

/// Where items go: destinations, none that exists, the routing rules, two at once.
pub(super) const TARGETS: [&[&str]; 6] = [&["a"], &["b"], &["c"], &["nowhere"], &[], &["c", "a"]];

/// The first destination of a target.
pub(super) fn destination(target: usize) -> DestinationName {
    DestinationName::new(TARGETS[target].first().copied().unwrap_or("b")).unwrap()
}

/// That many seconds from a time.
pub(super) fn shifted(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_micros(now.as_micros() + seconds * 1_000_000)
}

/// Destinations that differ in what they declare; variants differ from each other in policy.
pub(super) fn spec(name: &str, variant: u8) -> DestinationSpec {
    let mut policy = DeliveryPolicy {
        max_retry_attempts: if name == "c" { 1 } else { 2 },
        max_age: Duration::from_secs(100_000),
        max_crashed_attempts: 1 + u32::from(variant % 2),
        backlog_limit: if name == "a" { 6 } else { 1_000 },
        ..Default::default()
    };
    policy.breaker.failures = 3;
    policy.breaker.entries = 2;
    policy.resource_failures = 2;
    if name == "c" {
        policy.dead_letter_on_max_retry_attempts = false;
        policy.alternative = Some(Alternative::ManualReview);
    }
    policy.max_retry_attempts += u32::from(variant % 2);
    let duplicates = match (name, variant) {
        (_, 4) => Duplicates::Harmful,
        ("a", _) => Duplicates::Tolerated,
        ("b", _) => Duplicates::Harmful,
        _ => Duplicates::Deduplicated { window: Duration::from_hours(2) },
    };
    let paced = (name == "b") != (variant == 2);
    DestinationSpec {
        tenant: TenantId::default_tenant(),
        name: DestinationName::new(name).unwrap(),
        emitter: "noop".into(),
        settings: "{}".into(),
        duplicates,
        policy,
        pace: paced.then_some(Pace { per_minute: 60, burst: 2 }),
        event_types: if name == "b" { Vec::new() } else { vec!["order.*".parse().unwrap()] },
        owner: None,
        region: None,
    }
}

impl End {
    /// What the emitter answers.
    pub(super) fn outcome(self, now: Timestamp) -> Outcome {
        let custom = |class, phase| {
            Failure::custom(class, Reason::new("test.reason").unwrap(), phase, "composed text 12 of a failure")
        };
        let http = |status| Failure::new(Observed::Http { status }, format!("status {status}"));
        match self {
            Self::Delivered => Outcome::Delivered { receipt: None },
            Self::Pending => Outcome::Pending,
            Self::Deferred => Outcome::Deferred { until: None },
            Self::DeferredFor(seconds) => {
                Outcome::Deferred { until: Some(now.after(Duration::from_secs(u64::from(seconds)))) }
            }
            Self::Transient => Outcome::RetryableFailure(custom(Class::Transient, Phase::Answered)),
            Self::Refused => Outcome::Failed(http(400)),
            Self::Unanswered => Outcome::Ambiguous(custom(Class::Ambiguous, Phase::Sent)),
            Self::Unknown => Outcome::Failed(Failure::new(Observed::Nothing, "")),
            Self::Credential => Outcome::Failed(http(401)),
            Self::Resource => Outcome::Failed(http(404)),
            Self::ProviderDeadLettered => Outcome::DeadLettered(custom(Class::Deterministic, Phase::Answered)),
        }
    }
}
