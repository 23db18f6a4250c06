//! Health of destinations.

use dlo_core::{Class, EntryId, Health, Hold, HoldCause, Reason, Timestamp, health::ManualHold, text::ActText};
use serde::{Deserialize, Serialize};

use super::{PersistedError, check_schema, read, write};

/// Schema that [`encode_health`] writes.
pub const HEALTH_SCHEMA: u32 = 1;

const WHAT: &str = "health";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HealthRow {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    manual: Option<ManualRow>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hold: Option<HoldRow>,
    #[serde(skip_serializing_if = "core::ops::Not::not", default)]
    probe_requested: bool,
    #[serde(skip_serializing_if = "is_zero", default)]
    consecutive: u32,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    streak: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    resource_streak: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    last_success: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ramp: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pace_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManualRow {
    since: i64,
    actor: String,
    reason: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldRow {
    cause: String,
    class: String,
    reason: String,
    since: i64,
    next_probe: i64,
    /// Rows that were saved without it: as `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_probe_set: Option<i64>,
    failed_probes: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// The text of a health row in [`HEALTH_SCHEMA`]: all but its version, which stands in a column of its own.
pub fn encode_health(health: &Health) -> String {
    write(&HealthRow {
        manual: health.manual.as_ref().map(|manual| ManualRow {
            since: manual.since.as_micros(),
            actor: manual.actor.clone(),
            reason: manual.reason.as_str().to_owned(),
        }),
        hold: health.hold.as_ref().map(|hold| HoldRow {
            cause: hold.cause.as_str().to_owned(),
            class: hold.class.as_str().to_owned(),
            reason: hold.reason.as_str().to_owned(),
            since: hold.since.as_micros(),
            next_probe: hold.next_probe.as_micros(),
            next_probe_set: (hold.next_probe_set != hold.since).then(|| hold.next_probe_set.as_micros()),
            failed_probes: hold.failed_probes,
        }),
        probe_requested: health.probe_requested,
        consecutive: health.consecutive,
        streak: health.streak.iter().map(EntryId::to_string).collect(),
        resource_streak: health.resource_streak.iter().map(EntryId::to_string).collect(),
        last_success: health.last_success.map(Timestamp::as_micros),
        ramp: health.ramp,
        pace_at: health.pace_at.map(Timestamp::as_micros),
    })
}

/// Reads a health row back; `version` is the one of its column.
pub fn decode_health(schema: u32, json: &str, version: u64) -> Result<Health, PersistedError> {
    check_schema(WHAT, schema, HEALTH_SCHEMA)?;
    let row: HealthRow = read(WHAT, json)?;
    Ok(Health {
        version,
        manual: row.manual.map(|manual| ManualHold {
            since: Timestamp::from_micros(manual.since),
            actor: manual.actor,
            reason: ActText::new(manual.reason),
        }),
        hold: row.hold.map(hold).transpose()?,
        probe_requested: row.probe_requested,
        consecutive: row.consecutive,
        streak: entries(&row.streak)?,
        resource_streak: entries(&row.resource_streak)?,
        last_success: row.last_success.map(Timestamp::from_micros),
        ramp: row.ramp,
        pace_at: row.pace_at.map(Timestamp::from_micros),
    })
}

fn hold(row: HoldRow) -> Result<Hold, PersistedError> {
    let bad = |field: &str, rule: &str| PersistedError::malformed(WHAT, format!("`hold.{field}` needs {rule}"));
    Ok(Hold {
        cause: HoldCause::ALL
            .into_iter()
            .find(|cause| cause.as_str() == row.cause)
            .ok_or_else(|| bad("cause", "breaker, configuration, emitter_unknown or restore"))?,
        class: row.class.parse::<Class>().map_err(|error| bad("class", error.rule))?,
        reason: Reason::new(&row.reason).map_err(|error| bad("reason", error.rule))?,
        since: Timestamp::from_micros(row.since),
        next_probe: Timestamp::from_micros(row.next_probe),
        next_probe_set: Timestamp::from_micros(row.next_probe_set.unwrap_or(row.since)),
        failed_probes: row.failed_probes,
    })
}

fn entries(texts: &[String]) -> Result<Vec<EntryId>, PersistedError> {
    texts
        .iter()
        .map(|text| {
            text.parse().map_err(|_| {
                PersistedError::malformed(WHAT, "streaks need entry ids (`ent_` and 32 hexadecimal digits)")
            })
        })
        .collect()
}
