//! Migrations: applied once, refused when they are not what is known.

use dlo_core::Timestamp;
use dlo_ports::StoreErrorKind;
use dlo_sqlite::{SCHEMA_VERSION, SqliteStore, migrate};
use rusqlite::Connection;

use crate::support::*;

/// Everything that makes a schema, as SQLite itself keeps it.
fn schema(conn: &Connection) -> Vec<String> {
    let mut statement =
        conn.prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_fresh_file_and_a_migrated_one_are_the_same() {
    let bench = Bench::new();
    let mut own = Connection::open_in_memory().unwrap();
    own.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)").unwrap();
    assert_eq!(migrate(&mut own, Timestamp::EPOCH).unwrap(), SCHEMA_VERSION);
    own.execute_batch("DROP TABLE orders").unwrap();
    assert_eq!(schema(&own), schema(&bench.other()));
}

#[test]
fn migrating_again_changes_nothing() {
    let bench = Bench::new();
    let before: Timestamp = Timestamp::from_micros(
        bench.other().query_row("SELECT applied FROM dlo_migration WHERE version = 1", [], |row| row.get(0)).unwrap(),
    );
    bench.clock.advance(std::time::Duration::from_secs(5));
    migrate(&mut bench.other(), Timestamp::MAX).unwrap();
    let after = bench.other().query_row("SELECT max(applied) FROM dlo_migration", [], |row| row.get(0)).unwrap();
    assert_eq!(before, Timestamp::from_micros(after));
    assert_eq!(bench.count("dlo_migration"), SCHEMA_VERSION as i64);
}

#[test]
fn a_newer_schema_is_refused() {
    let bench = Bench::new();
    bench
        .other()
        .execute(
            "INSERT INTO dlo_migration (version, name, checksum, applied, app_version)
             VALUES (99, 'later', zeroblob(32), 0, '9.9.9')",
            [],
        )
        .unwrap();
    let error = SqliteStore::open(bench.options()).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    let text = error.to_string();
    assert!(text.contains("version 99") && text.contains("9.9.9") && text.contains("dlo.db"), "{text}");
}

#[test]
fn a_changed_migration_is_refused() {
    let bench = Bench::new();
    bench.other().execute("UPDATE dlo_migration SET checksum = zeroblob(32) WHERE version = 1", []).unwrap();
    let error = SqliteStore::open(bench.options()).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("migration 1 `spine`"), "{error}");
}
