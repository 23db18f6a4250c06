//! Destinations with health and depth.

use dlo_core::{DestinationName, TenantId, Timestamp, limits::MAX_PAGE};
use dlo_ports::{
    StoreError, StoreErrorKind,
    store::{Depth, DestinationView},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    catalog,
    error::{Doing, bounded, corrupt},
    rows::parsed,
    totals,
    turn::read_health,
};

/// Destinations, in order of (tenant, name).
pub(crate) fn destinations(
    conn: &Connection,
    now: Timestamp,
    tenant: Option<&TenantId>,
    after: Option<&(TenantId, DestinationName)>,
    limit: usize,
) -> Result<Vec<DestinationView>, StoreError> {
    bounded("limit of destinations", limit, 1, MAX_PAGE)?;
    names(conn, tenant, after, limit)?
        .iter()
        .map(|(tenant, name)| {
            view(conn, now, tenant, name).map_err(|error| error.within(&format!("destination `{tenant}/{name}`")))
        })
        .collect()
}

fn view(
    conn: &Connection,
    now: Timestamp,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<DestinationView, StoreError> {
    let destination = catalog::latest(conn, tenant, name)?.ok_or_else(|| corrupt("it vanished inside one snapshot"))?;
    let health = read_health(conn, tenant, name)?;
    Ok(DestinationView { destination, health, depth: depth(conn, now, tenant, name)? })
}

/// Whether a destination is held. Health that can't be read holds it, as for the claims.
pub(super) fn is_held(conn: &Connection, tenant: &TenantId, name: &DestinationName) -> Result<bool, StoreError> {
    match read_health(conn, tenant, name) {
        Ok(health) => Ok(health.is_held()),
        Err(error) if matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Schema) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Keys of destinations, in order.
pub(crate) fn names(
    conn: &Connection,
    tenant: Option<&TenantId>,
    after: Option<&(TenantId, DestinationName)>,
    limit: usize,
) -> Result<Vec<(TenantId, DestinationName)>, StoreError> {
    let (after_tenant, after_name) = after.map_or(("", ""), |(tenant, name)| (tenant.as_str(), name.as_str()));
    let mut statement =
        conn.prepare_cached(include_str!("../sql/read/destination_names.sql")).doing("list destinations")?;
    let mut rows = statement
        .query(params![tenant.map(TenantId::as_str), after_tenant, after_name, limit as i64])
        .doing("list destinations")?;
    let mut names = Vec::new();
    while let Some(row) = rows.next().doing("list destinations")? {
        names.push((parsed(row, 0, "tenant")?, parsed(row, 1, "name")?));
    }
    Ok(names)
}

/// Live entries by state. Only what is ready is counted row by row, in its index; the rest are totals, kept in the
/// transactions that change them.
pub(super) fn depth(
    conn: &Connection,
    now: Timestamp,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<Depth, StoreError> {
    let (tenant, name) = (tenant.as_str(), name.as_str());
    let count = |sql: &'static str| -> Result<u64, StoreError> {
        conn.prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(params![tenant, name], |row| row.get(0)))
            .map(unsigned)
            .doing("count live entries")
    };
    let ready = conn
        .prepare_cached(include_str!("../sql/read/depth_ready.sql"))
        .and_then(|mut statement| statement.query_row(params![tenant, name, now.as_micros()], |row| row.get(0)))
        .map(unsigned)
        .doing("count ready entries")?;
    let claimed = count(include_str!("../sql/read/depth_claimed.sql"))?;
    let manual_review = total(conn, tenant, name, totals::MANUAL_REVIEW)?;
    let live = total(conn, tenant, name, totals::LIVE)?;
    Ok(Depth {
        ready,
        waiting: live.saturating_sub(ready).saturating_sub(claimed).saturating_sub(manual_review),
        claimed,
        manual_review,
        dead_letters_open: total(conn, tenant, name, totals::DEAD_LETTERS_OPEN)?,
    })
}

/// One total; zero if it was never counted.
pub(super) fn total(conn: &Connection, tenant: &str, destination: &str, name: &str) -> Result<u64, StoreError> {
    let value: Option<i64> = conn
        .prepare_cached(include_str!("../sql/read/total.sql"))
        .and_then(|mut statement| statement.query_row(params![tenant, destination, name], |row| row.get(0)).optional())
        .doing("read a total")?;
    Ok(value.map_or(0, unsigned))
}

/// A count; a negative one is damage that another check names.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
