//! Destinations: one text per version.

use core::time::Duration;

use dlo_core::{
    DeliveryPolicy, DestinationName, DestinationSpec, Duplicates, Reason, TenantId,
    destination::{EventTypeRule, Pace},
    policy::{Alternative, BreakerPolicy, Jitter},
    text::ErrorText,
};
use serde::{Deserialize, Serialize};

use super::{PersistedError, check_schema, read, write};

/// Schema that [`encode_destination`] writes.
pub const DESTINATION_SCHEMA: u32 = 1;

const WHAT: &str = "destination";

/// Everything of a destination but its tenant and name. Spans are whole seconds and nanoseconds, so that what was
/// applied and what is read are equal to the last digit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecRow {
    emitter: String,
    settings: String,
    duplicates: DuplicatesRow,
    policy: PolicyRow,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pace: Option<PaceRow>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    event_types: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    region: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum DuplicatesRow {
    Deduplicated { window: Duration },
    Tolerated,
    Harmful,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaceRow {
    per_minute: u32,
    burst: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AlternativeRow {
    MaxAge,
    ManualReview,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JitterRow {
    Equal,
    None,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakerRow {
    failures: u32,
    entries: u32,
    probe_min: Duration,
    probe_max: Duration,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRow {
    max_retry_attempts: u32,
    dead_letter_on_max_retry_attempts: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    alternative: Option<AlternativeRow>,
    dead_letter_reason_code: String,
    dead_letter_reason_message: String,
    retry_delay: Duration,
    deferred_delay: Duration,
    schedule: Vec<Duration>,
    jitter: JitterRow,
    retry_after_cap: Duration,
    max_age: Duration,
    max_crashed_attempts: u32,
    backlog_limit: u64,
    resource_failures: u32,
    breaker: BreakerRow,
    emission_deadline: Duration,
    concurrency: u32,
    page: u32,
}

/// The text of a destination in [`DESTINATION_SCHEMA`]: all but its tenant and name.
pub fn encode_destination(spec: &DestinationSpec) -> String {
    write(&SpecRow {
        emitter: spec.emitter.clone(),
        settings: spec.settings.clone(),
        duplicates: match spec.duplicates {
            Duplicates::Deduplicated { window } => DuplicatesRow::Deduplicated { window },
            Duplicates::Tolerated => DuplicatesRow::Tolerated,
            Duplicates::Harmful => DuplicatesRow::Harmful,
        },
        policy: policy_row(&spec.policy),
        pace: spec.pace.map(|Pace { per_minute, burst }| PaceRow { per_minute, burst }),
        event_types: spec.event_types.iter().map(|rule| rule.as_str().to_owned()).collect(),
        owner: spec.owner.clone(),
        region: spec.region.clone(),
    })
}

/// Reads a destination back.
pub fn decode_destination(
    schema: u32,
    json: &str,
    tenant: TenantId,
    name: DestinationName,
) -> Result<DestinationSpec, PersistedError> {
    check_schema(WHAT, schema, DESTINATION_SCHEMA)?;
    let row: SpecRow = read(WHAT, json)?;
    let event_types = row.event_types.iter().map(|rule| rule.parse::<EventTypeRule>()).collect::<Result<_, _>>();
    Ok(DestinationSpec {
        tenant,
        name,
        emitter: row.emitter,
        settings: row.settings,
        duplicates: match row.duplicates {
            DuplicatesRow::Deduplicated { window } => Duplicates::Deduplicated { window },
            DuplicatesRow::Tolerated => Duplicates::Tolerated,
            DuplicatesRow::Harmful => Duplicates::Harmful,
        },
        policy: policy(row.policy)?,
        pace: row.pace.map(|PaceRow { per_minute, burst }| Pace { per_minute, burst }),
        event_types: event_types
            .map_err(|error| PersistedError::malformed(WHAT, format!("`event_types` needs {}", error.rule)))?,
        owner: row.owner,
        region: row.region,
    })
}

fn policy_row(policy: &DeliveryPolicy) -> PolicyRow {
    PolicyRow {
        max_retry_attempts: policy.max_retry_attempts,
        dead_letter_on_max_retry_attempts: policy.dead_letter_on_max_retry_attempts,
        alternative: policy.alternative.map(|alternative| match alternative {
            Alternative::MaxAge => AlternativeRow::MaxAge,
            Alternative::ManualReview => AlternativeRow::ManualReview,
        }),
        dead_letter_reason_code: policy.dead_letter_reason_code.as_str().to_owned(),
        dead_letter_reason_message: policy.dead_letter_reason_message.as_str().to_owned(),
        retry_delay: policy.retry_delay,
        deferred_delay: policy.deferred_delay,
        schedule: policy.schedule.clone(),
        jitter: match policy.jitter {
            Jitter::Equal => JitterRow::Equal,
            Jitter::None => JitterRow::None,
        },
        retry_after_cap: policy.retry_after_cap,
        max_age: policy.max_age,
        max_crashed_attempts: policy.max_crashed_attempts,
        backlog_limit: policy.backlog_limit,
        resource_failures: policy.resource_failures,
        breaker: BreakerRow {
            failures: policy.breaker.failures,
            entries: policy.breaker.entries,
            probe_min: policy.breaker.probe_min,
            probe_max: policy.breaker.probe_max,
        },
        emission_deadline: policy.emission_deadline,
        concurrency: policy.concurrency,
        page: policy.page,
    }
}

fn policy(row: PolicyRow) -> Result<DeliveryPolicy, PersistedError> {
    let dead_letter_reason_code = Reason::new(&row.dead_letter_reason_code)
        .map_err(|error| PersistedError::malformed(WHAT, format!("`dead_letter_reason_code` needs {}", error.rule)))?;
    Ok(DeliveryPolicy {
        max_retry_attempts: row.max_retry_attempts,
        dead_letter_on_max_retry_attempts: row.dead_letter_on_max_retry_attempts,
        alternative: row.alternative.map(|alternative| match alternative {
            AlternativeRow::MaxAge => Alternative::MaxAge,
            AlternativeRow::ManualReview => Alternative::ManualReview,
        }),
        dead_letter_reason_code,
        dead_letter_reason_message: ErrorText::new(row.dead_letter_reason_message),
        retry_delay: row.retry_delay,
        deferred_delay: row.deferred_delay,
        schedule: row.schedule,
        jitter: match row.jitter {
            JitterRow::Equal => Jitter::Equal,
            JitterRow::None => Jitter::None,
        },
        retry_after_cap: row.retry_after_cap,
        max_age: row.max_age,
        max_crashed_attempts: row.max_crashed_attempts,
        backlog_limit: row.backlog_limit,
        resource_failures: row.resource_failures,
        breaker: BreakerPolicy {
            failures: row.breaker.failures,
            entries: row.breaker.entries,
            probe_min: row.breaker.probe_min,
            probe_max: row.breaker.probe_max,
        },
        emission_deadline: row.emission_deadline,
        concurrency: row.concurrency,
        page: row.page,
    })
}
