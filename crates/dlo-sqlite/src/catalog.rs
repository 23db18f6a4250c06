//! Destinations as they stand, parsed once per change.

use std::collections::BTreeMap;
use std::sync::Arc;

use dlo_core::{Destination, DestinationName, TenantId, Timestamp};
use dlo_ports::{StoreError, persisted};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Doing, corrupt};

/// Most destinations that are kept parsed; one more, and all are forgotten and read again as they are asked for. A spec has
/// some kilobytes, and a process that serves more of them than this at a time pays one look each.
const MAX_KEPT: usize = 10_000;

/// Latest versions of destinations. One number in the database tells whether they still hold.
#[derive(Default)]
pub(crate) struct Catalog {
    stamp: Option<i64>,
    /// Tenants that have destinations: a name that was only ever asked for leaves nothing behind.
    known: BTreeMap<TenantId, OfTenant>,
}

#[derive(Default)]
struct OfTenant {
    destinations: BTreeMap<DestinationName, Arc<Destination>>,
    /// Whether every destination of the tenant is in the map.
    complete: bool,
}

impl Catalog {
    /// Forgets what changed since. Once per transaction, before the others.
    pub(crate) fn refresh(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let stamp: i64 = conn
            .prepare_cached("SELECT value FROM dlo_meta WHERE name = 'destination_stamp'")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .doing("read the destinations' stamp")?;
        if self.stamp != Some(stamp) {
            *self = Self { stamp: Some(stamp), ..Self::default() };
        }
        Ok(())
    }

    /// A destination by name.
    pub(crate) fn find(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        name: &DestinationName,
    ) -> Result<Option<&Arc<Destination>>, StoreError> {
        let of_tenant = self.known.get(tenant);
        let answered = of_tenant.is_some_and(|known| known.complete || known.destinations.contains_key(name));
        if !answered && let Some(destination) = latest(conn, tenant, name)? {
            self.make_room();
            let of_tenant = self.known.entry(tenant.clone()).or_default();
            of_tenant.destinations.insert(name.clone(), Arc::new(destination));
        }
        Ok(self.known.get(tenant).and_then(|known| known.destinations.get(name)))
    }

    /// Keeps the bound of what is kept.
    fn make_room(&mut self) {
        if self.known.values().map(|of_tenant| of_tenant.destinations.len()).sum::<usize>() >= MAX_KEPT {
            self.known.clear();
        }
    }

    /// Names of the destinations whose event-type rules take this event type, in name order.
    pub(crate) fn takers(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        event_type: &str,
    ) -> Result<Vec<DestinationName>, StoreError> {
        if !self.known.get(tenant).is_some_and(|known| known.complete) {
            let mut read = OfTenant { complete: true, ..OfTenant::default() };
            for name in names(conn, tenant)? {
                if let Some(destination) = latest(conn, tenant, &name)? {
                    read.destinations.insert(name, Arc::new(destination));
                }
            }
            if read.destinations.is_empty() {
                return Ok(Vec::new());
            }
            self.make_room();
            self.known.insert(tenant.clone(), read);
        }
        let of_tenant = self.known.get(tenant).expect("read above, or known before");
        let takes =
            |destination: &Destination| destination.spec.event_types.iter().any(|rule| rule.matches(event_type));
        let takers = of_tenant.destinations.iter().filter(|(_, destination)| takes(destination));
        Ok(takers.map(|(name, _)| name.clone()).collect())
    }
}

/// The latest version of a destination.
pub(crate) fn latest(
    conn: &Connection,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<Option<Destination>, StoreError> {
    let row = conn
        .prepare_cached(include_str!("sql/destination_latest.sql"))
        .and_then(|mut statement| statement.query_row([tenant.as_str(), name.as_str()], row_of).optional())
        .doing("read a destination")?;
    row.map(|row| {
        Ok(Destination {
            spec: persisted::decode_destination(row.schema, &row.spec, tenant.clone(), name.clone())?,
            version: row.version as u64,
            applied: Timestamp::from_micros(row.applied),
        })
    })
    .transpose()
}

/// The latest version number of a destination, whatever its content is.
pub(crate) fn latest_version(
    conn: &Connection,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<Option<u64>, StoreError> {
    let row = conn
        .prepare_cached(include_str!("sql/destination_latest.sql"))
        .and_then(|mut statement| statement.query_row([tenant.as_str(), name.as_str()], |row| row.get(0)).optional())
        .doing("read a destination")?;
    Ok(row.map(|version: i64| version as u64))
}

struct DestinationRow {
    version: i64,
    schema: u32,
    spec: String,
    applied: i64,
}

fn row_of(row: &Row<'_>) -> Result<DestinationRow, rusqlite::Error> {
    Ok(DestinationRow { version: row.get(0)?, schema: row.get(1)?, spec: row.get(2)?, applied: row.get(3)? })
}

fn names(conn: &Connection, tenant: &TenantId) -> Result<Vec<DestinationName>, StoreError> {
    let mut statement = conn
        .prepare_cached("SELECT DISTINCT name FROM dlo_destination WHERE tenant = ?1")
        .doing("list destinations")?;
    let mut rows = statement.query([tenant.as_str()]).doing("list destinations")?;
    let mut names = Vec::new();
    while let Some(row) = rows.next().doing("list destinations")? {
        let name: String = row.get(0).doing("list destinations")?;
        names
            .push(DestinationName::new(&name).map_err(|_| corrupt("a stored destination has a name that is not one"))?);
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
