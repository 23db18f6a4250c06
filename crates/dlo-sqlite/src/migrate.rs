//! Migrations: numbered SQL files, applied once each, with the checksum of what was applied.

use dlo_core::Timestamp;
use dlo_ports::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use crate::error::Doing;

const DOING: &str = "migrate the schema";

/// A step of the schema. What was released is never edited: a change is a new step.
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 1] =
    [Migration { version: 1, name: "spine", sql: include_str!("migrations/0001_spine.sql") }];

/// The schema that this version of the crate works with.
pub const SCHEMA_VERSION: u64 = MIGRATIONS.len() as u64;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS dlo_migration (
    version     INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    checksum    BLOB NOT NULL CHECK (length(checksum) = 32),
    applied     INTEGER NOT NULL,
    app_version TEXT NOT NULL
) STRICT";

/// Brings the `dlo_…` tables of a file to [`SCHEMA_VERSION`]: for applications whose own file holds them. Doing it
/// again does nothing.
///
/// # Errors
/// `store.schema` when the file was made by a newer version, or a step that was applied is not the one known here.
pub fn migrate(conn: &mut Connection, now: Timestamp) -> Result<u64, StoreError> {
    // Looking needs no lock, so that opening a file that is in order waits for nobody.
    if has_ledger(conn)? && pending(conn)?.is_empty() {
        return Ok(SCHEMA_VERSION);
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive).doing(DOING)?;
    tx.execute_batch(LEDGER).doing(DOING)?;
    for migration in pending(&tx)? {
        apply(&tx, migration, now)?;
    }
    tx.commit().doing(DOING)?;
    Ok(SCHEMA_VERSION)
}

fn has_ledger(conn: &Connection) -> Result<bool, StoreError> {
    conn.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'dlo_migration')", [], |row| row.get(0))
        .doing(DOING)
}

/// Steps that are not applied yet. Fails when what is applied is not what is known.
fn pending(conn: &Connection) -> Result<Vec<&'static Migration>, StoreError> {
    let newest: Option<(i64, String)> = conn
        .query_row("SELECT version, app_version FROM dlo_migration ORDER BY version DESC LIMIT 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .doing(DOING)?;
    if let Some((version, app)) = newest.filter(|(version, _)| *version > SCHEMA_VERSION as i64) {
        return Err(refused(format!(
            "the schema has version {version}, made by dlo {app}, and this is dlo {} which knows up to version \
             {SCHEMA_VERSION}: use the newer one",
            env!("CARGO_PKG_VERSION"),
        )));
    }
    let mut pending = Vec::new();
    for migration in &MIGRATIONS {
        let checksum: Option<Vec<u8>> = conn
            .query_row("SELECT checksum FROM dlo_migration WHERE version = ?1", [migration.version], |row| row.get(0))
            .optional()
            .doing(DOING)?;
        match checksum {
            None => pending.push(migration),
            Some(applied) if applied[..] == Sha256::digest(migration.sql)[..] => {}
            Some(_) => {
                return Err(refused(format!(
                    "migration {} `{}` was applied with other content than this version of dlo has: open the file \
                     with the version that made it, or restore a backup",
                    migration.version, migration.name,
                )));
            }
        }
    }
    Ok(pending)
}

fn apply(tx: &Transaction<'_>, migration: &Migration, now: Timestamp) -> Result<(), StoreError> {
    tx.execute_batch(migration.sql).doing(DOING)?;
    tx.execute(
        "INSERT INTO dlo_migration (version, name, checksum, applied, app_version) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            migration.version,
            migration.name,
            &Sha256::digest(migration.sql)[..],
            now.as_micros(),
            env!("CARGO_PKG_VERSION"),
        ],
    )
    .doing(DOING)?;
    Ok(())
}

fn refused(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, message)
}
