//! Destinations as they stand, parsed once per change.

use std::collections::BTreeMap;
use std::sync::Arc;

use dlo_core::{Destination, DestinationName, TenantId, Timestamp};
use dlo_ports::{StoreError, persisted};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Doing, corrupt};

/// Latest versions of destinations. One number in the database tells whether they still hold.
#[derive(Default)]
pub(crate) struct Catalog {
    stamp: Option<i64>,
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
            *self = Self { stamp: Some(stamp), known: BTreeMap::new() };
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
        if !self.known.contains_key(tenant) {
            self.known.insert(tenant.clone(), OfTenant::default());
        }
        let of_tenant = self.known.get_mut(tenant).expect("inserted above");
        if !of_tenant.complete
            && !of_tenant.destinations.contains_key(name)
            && let Some(destination) = latest(conn, tenant, name)?
        {
            of_tenant.destinations.insert(name.clone(), Arc::new(destination));
        }
        Ok(of_tenant.destinations.get(name))
    }

    /// Names of the destinations whose event-type rules take this event type, in name order.
    pub(crate) fn takers(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        event_type: &str,
    ) -> Result<Vec<DestinationName>, StoreError> {
        let of_tenant = self.known.entry(tenant.clone()).or_default();
        if !of_tenant.complete {
            for name in names(conn, tenant)? {
                if let Some(destination) = latest(conn, tenant, &name)? {
                    of_tenant.destinations.insert(name, Arc::new(destination));
                }
            }
            of_tenant.complete = true;
        }
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
