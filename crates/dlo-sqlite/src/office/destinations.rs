//! Destinations: applied versions, and holds by people.

use dlo_core::{
    AuditEvent, DestinationName, DestinationSpec, Health, TenantId, Timestamp, health::ManualHold, limits::MAX_PAGE,
};
use dlo_ports::{
    StoreError,
    persisted::{DESTINATION_SCHEMA, HEALTH_SCHEMA, encode_destination, encode_health},
    store::{ActResult, Applied, AppliedChange, HoldAct},
};
use rusqlite::{Transaction, params};

use super::audit::record;
use crate::{
    catalog,
    error::{Doing, bounded, invalid},
    turn::read_health,
};

/// Creates and updates destinations, in order, all or none.
///
/// Every policy is validated before anything is written (P-03). A stored version that this binary can't read is not
/// overwritten: the error says so.
pub(crate) fn apply_destinations(
    tx: &Transaction<'_>,
    now: Timestamp,
    specs: &[DestinationSpec],
    audit: &AuditEvent,
) -> Result<Vec<Applied>, StoreError> {
    bounded("number of destinations to apply", specs.len(), 0, MAX_PAGE)?;
    for spec in specs {
        spec.policy
            .validate()
            .map_err(|error| invalid(format!("destination `{}/{}`: {error}", spec.tenant, spec.name)))?;
    }
    record(tx, now, audit)?;
    specs.iter().map(|spec| apply_one(tx, now, spec)).collect()
}

fn apply_one(tx: &Transaction<'_>, now: Timestamp, spec: &DestinationSpec) -> Result<Applied, StoreError> {
    let (version, change) = match catalog::latest(tx, &spec.tenant, &spec.name)? {
        None => (1, AppliedChange::Created),
        Some(current) if current.spec == *spec => {
            let destination = spec.name.clone();
            return Ok(Applied { destination, version: current.version, change: AppliedChange::Unchanged });
        }
        Some(current) => (current.version + 1, AppliedChange::Updated),
    };
    tx.prepare_cached(include_str!("../sql/office/destination_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                spec.tenant.as_str(),
                spec.name.as_str(),
                version as i64,
                DESTINATION_SCHEMA,
                encode_destination(spec),
                now.as_micros(),
            ])
        })
        .doing("save a destination")?;
    Ok(Applied { destination: spec.name.clone(), version, change })
}

/// Holds, releases or probes destinations; results in order.
pub(crate) fn act_on_destinations(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    destinations: &[DestinationName],
    act: &HoldAct,
    audit: &AuditEvent,
) -> Result<Vec<ActResult>, StoreError> {
    bounded("number of destinations to act on", destinations.len(), 0, MAX_PAGE)?;
    record(tx, now, audit)?;
    destinations.iter().map(|name| act_on_destination(tx, now, tenant, name, act, &audit.actor.name)).collect()
}

fn act_on_destination(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    name: &DestinationName,
    act: &HoldAct,
    actor: &str,
) -> Result<ActResult, StoreError> {
    if catalog::latest(tx, tenant, name)?.is_none() {
        return Ok(ActResult::Missing);
    }
    let health = read_health(tx, tenant, name)?;
    let changed = match act {
        HoldAct::Hold { reason } => {
            health.hold_by_person(ManualHold { since: now, actor: actor.to_owned(), reason: reason.clone() })
        }
        HoldAct::Release => health.release(),
        HoldAct::Probe if !health.is_held() => return Ok(ActResult::WrongState("open")),
        HoldAct::Probe => health.request_probe(),
    };
    match changed {
        None => Ok(ActResult::Unchanged),
        Some(changed) => {
            save_health(tx, tenant, name, &Health { version: health.version + 1, ..changed })?;
            Ok(ActResult::Done)
        }
    }
}

fn save_health(
    tx: &Transaction<'_>,
    tenant: &TenantId,
    name: &DestinationName,
    health: &Health,
) -> Result<(), StoreError> {
    tx.prepare_cached(include_str!("../sql/health_save.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                name.as_str(),
                health.version as i64,
                HEALTH_SCHEMA,
                encode_health(health)
            ])
        })
        .doing("save the health of a destination")?;
    Ok(())
}
