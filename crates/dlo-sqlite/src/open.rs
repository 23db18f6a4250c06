//! Opening a file: connections, their settings, and the check that the settings really hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use core::time::Duration;

use dlo_ports::{Clock, StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    error::{Doing, from_sqlite},
    migrate::migrate,
    random::system_random,
    turn::Random,
};

const DOING: &str = "open the database";

/// Where a store has its time from (I-06).
#[derive(Clone)]
pub enum StoreClock {
    /// The clock of the host: on SQLite the database's clock is the clock of the engine that holds its lock.
    Database(Arc<dyn Clock>),
    /// A clock that a test or a simulator moves.
    Given(Arc<dyn Clock>),
}

impl StoreClock {
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Database(clock) | Self::Given(clock) => clock.clone(),
        }
    }
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// Ours: made, and set up, by us.
    #[default]
    Own,
    /// An application's own file that holds our tables beside its own. Its journal mode must be WAL; neither that nor
    /// `auto_vacuum` is changed.
    Application,
    /// The same, and its journal mode may be set to WAL, which is kept in the file.
    ApplicationSetWal,
}

/// How to open a store.
#[derive(Clone)]
pub struct OpenOptions {
    /// The database file. `-wal`, `-shm` and the engine lock lie beside it.
    pub path: PathBuf,
    /// Time.
    pub clock: StoreClock,
    /// Randomness of ids (default: the operating system's).
    pub random: Random,
    /// Make the file if it is not there (default false).
    pub create: bool,
    /// Whose file it is (default ours).
    pub attach: Attach,
    /// How long a group of verbs waits while another process writes, before it is answered `store.busy` (default 30 s).
    pub busy_timeout: Duration,
    /// Most pages that the file may have (default: SQLite's own limit). For tests of a full disk.
    pub max_page_count: Option<u32>,
}

impl OpenOptions {
    /// Default options for an existing file of ours.
    pub fn new(path: impl Into<PathBuf>, clock: StoreClock) -> Self {
        Self {
            path: path.into(),
            clock,
            random: system_random(),
            create: false,
            attach: Attach::Own,
            busy_timeout: Duration::from_secs(30),
            max_page_count: None,
        }
    }
}

/// Bytes of a page of our own files. Rows are appended far more than they are looked up, and a commit of many rows costs
/// a quarter less with pages of twice SQLite's default.
const PAGE_BYTES: u32 = 8_192;

/// Pages that the write-ahead log may have before a commit moves them into the file: 32 MiB in our own files. Most are
/// moved beside the writer before that ([`crate::log`]).
pub(crate) const WAL_PAGES: u32 = 4_096;

/// Size to which the write-ahead log is cut when it starts again, in bytes.
pub(crate) const WAL_BYTES: i64 = WAL_PAGES as i64 * PAGE_BYTES as i64;

/// Page cache of the writer, in KiB.
const WRITER_CACHE_KIB: i64 = 16 * 1_024;

/// Page cache of a reader, in KiB.
const READER_CACHE_KIB: i64 = 2 * 1_024;

/// Opens the file for writing, sets it up and migrates it.
pub(crate) fn open_writer(options: &OpenOptions) -> Result<Connection, StoreError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if options.create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut conn = connect(&options.path, flags)?;
    conn.busy_timeout(options.busy_timeout).doing(DOING)?;
    if !options.create {
        refuse_other_files(&conn)?;
    }
    set_up_file(&conn, options.attach)?;
    set_up_connection(&conn, WRITER_CACHE_KIB)?;
    check_durability(&conn)?;
    if let Some(pages) = options.max_page_count {
        conn.pragma_update(None, "max_page_count", pages).doing(DOING)?;
    }
    migrate(&mut conn, options.clock.clock().now())?;
    // From here on the writer waits by itself.
    conn.busy_timeout(Duration::ZERO).doing(DOING)?;
    Ok(conn)
}

/// Opens the file for reading verbs: nothing can be changed through it.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // In WAL mode a reader waits only while the file is being recovered or closed.
    conn.busy_timeout(Duration::from_secs(5)).doing(DOING)?;
    set_up_connection(&conn, READER_CACHE_KIB)?;
    conn.pragma_update(None, "query_only", true).doing(DOING)?;
    Ok(conn)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    Connection::open_with_flags(path, flags).map_err(|error| {
        let error = from_sqlite(error, DOING);
        if path.exists() || flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
            error
        } else {
            StoreError::new(StoreErrorKind::Unavailable, "no such file: make it with `dlo init`").with_source(error)
        }
    })
}

/// A file that was named by mistake stays as it is: nothing is made or set in it.
fn refuse_other_files(conn: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'dlo_migration')";
    if conn.query_row(sql, (), |row| row.get(0)).doing(DOING)? {
        return Ok(());
    }
    let message = "no outbox is in this file: name another, or make one in it with `dlo init`";
    Err(StoreError::new(StoreErrorKind::Unavailable, message))
}

/// Settings that are kept in the file.
fn set_up_file(conn: &Connection, attach: Attach) -> Result<(), StoreError> {
    if attach == Attach::Own {
        // Only an empty file takes it; afterwards it would need a VACUUM, which nobody asked for.
        let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0)).doing(DOING)?;
        if pages == 0 {
            conn.pragma_update(None, "page_size", PAGE_BYTES).doing(DOING)?;
            conn.pragma_update(None, "auto_vacuum", "INCREMENTAL").doing(DOING)?;
        }
    }
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).doing(DOING)?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    if attach == Attach::Application {
        return Err(StoreError::new(
            StoreErrorKind::Invalid,
            format!(
                "journal mode is `{mode}` and the store needs `wal`: set `PRAGMA journal_mode=WAL` in the application, \
                 or allow the store to set it (it is kept in the file)"
            ),
        ));
    }
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).doing("set WAL mode")?;
    if mode.eq_ignore_ascii_case("wal") {
        Ok(())
    } else {
        Err(StoreError::new(
            StoreErrorKind::Unavailable,
            format!("journal mode stays `{mode}`: WAL needs shared memory, so put the file on a local file system"),
        ))
    }
}

/// Settings of this connection alone. Foreign keys are not used: rows outlive what they name (history its envelope, a
/// dead letter its entry), and the invariants are checked by `dlo doctor`.
fn set_up_connection(conn: &Connection, cache_kib: i64) -> Result<(), StoreError> {
    conn.set_prepared_statement_cache_capacity(128);
    // Plans must not depend on bound values: otherwise SQLite prepares a statement again whenever they change.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).doing("set up the connection")?;
    for (name, value) in [
        // A commit is on the disk before it is answered.
        ("synchronous", 2),
        // macOS: `fsync` only reaches the drive's cache there, F_FULLFSYNC what is behind it. Elsewhere without effect.
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("foreign_keys", 0),
        // Memory.
        ("temp_store", 2),
        // A memory-mapped file turns an IO error into the end of the process.
        ("mmap_size", 0),
        ("cache_size", -cache_kib),
        ("wal_autocheckpoint", i64::from(WAL_PAGES)),
        ("journal_size_limit", WAL_BYTES),
    ] {
        conn.pragma_update(None, name, value).doing("set up the connection")?;
    }
    Ok(())
}

/// What a commit promises rests on two settings: they are read back.
fn check_durability(conn: &Connection) -> Result<(), StoreError> {
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).doing(DOING)?;
    let synchronous: i64 = conn.pragma_query_value(None, "synchronous", |row| row.get(0)).doing(DOING)?;
    if mode.eq_ignore_ascii_case("wal") && synchronous == 2 {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Unavailable,
        format!("journal mode is `{mode}` and synchronous is {synchronous}: a commit needs `wal` and 2 (full)"),
    ))
}
