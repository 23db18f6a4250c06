//! Destinations with work: a skip scan over the ready index, one seek per destination and lane.

use dlo_core::{DestinationName, Lane, TenantId, Timestamp, health::Admission, limits::MAX_PAGE};
use dlo_ports::{
    StoreError,
    store::{DueDestination, DuePage, Scope},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    catalog::latest_version,
    error::{Doing, bounded},
    turn::read_health,
};

const DOING: &str = "find destinations with work";

/// Destinations with unclaimed live entries, after a key, in order.
pub(crate) fn due_destinations(
    conn: &Connection,
    now: Timestamp,
    scope: &Scope,
    after: Option<&(TenantId, DestinationName)>,
    limit: usize,
) -> Result<DuePage, StoreError> {
    bounded("limit of a page of destinations", limit, 1, MAX_PAGE)?;
    let mut destinations = Vec::new();
    let mut last = after.map(|(tenant, name)| (tenant.as_str().to_owned(), name.as_str().to_owned()));
    while let Some((tenant, name)) = next(conn, last.as_ref())? {
        last = Some((tenant.clone(), name.clone()));
        // A name that can't be read is no destination: its rows are shown by the checks of `dlo doctor`.
        let (Ok(tenant), Ok(destination)) = (TenantId::new(&tenant), DestinationName::new(&name)) else { continue };
        if !scope.takes(&tenant, &destination) {
            continue;
        }
        if destinations.len() == limit {
            return Ok(DuePage { now, destinations, more: true });
        }
        let Some(next_due) = earliest(conn, &tenant, &destination)? else { continue };
        let Some(version) = latest_version(conn, &tenant, &destination)? else { continue };
        // Health that can't be read holds its destination, and never the others.
        let admission =
            read_health(conn, &tenant, &destination).map_or(Admission::Held(Timestamp::MAX), |h| h.admission(now));
        destinations.push(DueDestination { tenant, destination, version, next_due, admission });
    }
    Ok(DuePage { now, destinations, more: false })
}

fn next(conn: &Connection, last: Option<&(String, String)>) -> Result<Option<(String, String)>, StoreError> {
    let (tenant, name) = last.map_or(("", ""), |(tenant, name)| (tenant, name));
    conn.prepare_cached(include_str!("sql/due_next.sql"))
        .and_then(|mut statement| statement.query_row([tenant, name], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .doing(DOING)
}

fn earliest(
    conn: &Connection,
    tenant: &TenantId,
    destination: &DestinationName,
) -> Result<Option<Timestamp>, StoreError> {
    let mut earliest = None;
    for lane in [Lane::Pending, Lane::Retry, Lane::Suspect] {
        let due: Option<i64> = conn
            .prepare_cached(include_str!("sql/due_earliest.sql"))
            .and_then(|mut statement| {
                statement
                    .query_row(params![tenant.as_str(), destination.as_str(), lane as i64], |row| row.get(0))
                    .optional()
            })
            .doing(DOING)?;
        if let Some(due) = due.map(Timestamp::from_micros) {
            earliest = Some(earliest.map_or(due, |earliest: Timestamp| earliest.min(due)));
        }
    }
    Ok(earliest)
}
