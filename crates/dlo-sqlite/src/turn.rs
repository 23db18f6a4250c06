//! What a verb may use while its transaction is open.

use std::collections::BTreeMap;
use std::sync::Arc;

use dlo_core::{DestinationName, Health, TenantId, Timestamp};
use dlo_ports::{StoreError, persisted};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::{catalog::Catalog, error::Doing, memory::ClaimMemory, sweep::Cursors};

/// Fills with randomness.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// One verb in its transaction: the database's time is read once, randomness is an argument.
pub(crate) struct Turn<'a> {
    pub(crate) tx: &'a Transaction<'a>,
    pub(crate) now: Timestamp,
    pub(crate) random: &'a dyn Fn(&mut [u8]),
    pub(crate) caches: &'a mut Caches,
}

impl Turn<'_> {
    /// Randomness of an id.
    pub(crate) fn random10(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        (self.random)(&mut bytes);
        bytes
    }
}

/// What was parsed out of rows before. Everything in it is checked against a number in the database before it is used,
/// and forgotten when a transaction is rolled back (the numbers of a lost transaction may come again).
#[derive(Default)]
pub(crate) struct Caches {
    pub(crate) catalog: Catalog,
    pub(crate) claims: ClaimMemory,
    pub(crate) pruned: Cursors,
    health: BTreeMap<(TenantId, DestinationName), Health>,
}

impl Caches {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The stored health of a destination.
    pub(crate) fn health(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        destination: &DestinationName,
    ) -> Result<Health, StoreError> {
        let key = (tenant.clone(), destination.clone());
        let mut statement = conn
            .prepare_cached("SELECT version FROM dlo_health WHERE tenant = ?1 AND destination = ?2")
            .doing("read health")?;
        let version: Option<i64> = statement
            .query_row([tenant.as_str(), destination.as_str()], |row| row.get(0))
            .optional()
            .doing("read health")?;
        let Some(version) = version else {
            self.health.remove(&key);
            return Ok(Health::default());
        };
        if let Some(health) = self.health.get(&key).filter(|health| health.version as i64 == version) {
            return Ok(health.clone());
        }
        let health = read_health(conn, tenant, destination)?;
        self.health.insert(key, health.clone());
        Ok(health)
    }

    /// Saves health; the store counts its version.
    pub(crate) fn save_health(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        destination: &DestinationName,
        before: u64,
        health: Health,
    ) -> Result<Health, StoreError> {
        let health = Health { version: before + 1, ..health };
        conn.prepare_cached(include_str!("sql/health_save.sql"))
            .and_then(|mut statement| {
                statement.execute(params![
                    tenant.as_str(),
                    destination.as_str(),
                    health.version as i64,
                    persisted::HEALTH_SCHEMA,
                    persisted::encode_health(&health),
                ])
            })
            .doing("save health")?;
        self.health.insert((tenant.clone(), destination.clone()), health.clone());
        Ok(health)
    }
}

/// The stored health of a destination, parsed. A destination without a row is healthy.
pub(crate) fn read_health(
    conn: &Connection,
    tenant: &TenantId,
    destination: &DestinationName,
) -> Result<Health, StoreError> {
    let row: Option<(i64, u32, String)> = conn
        .prepare_cached("SELECT version, schema, body FROM dlo_health WHERE tenant = ?1 AND destination = ?2")
        .and_then(|mut statement| {
            statement
                .query_row([tenant.as_str(), destination.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .doing("read health")?;
    match row {
        None => Ok(Health::default()),
        Some((version, schema, body)) => Ok(persisted::decode_health(schema, &body, version as u64)?),
    }
}
