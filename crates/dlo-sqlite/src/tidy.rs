//! Idle turns: the write-ahead log goes into the file, and free pages go back to the file system.

use core::time::Duration;
use std::time::Instant;

use rusqlite::Connection;

use crate::log::Log;

/// How long nothing must have been written before the file is tidied.
const QUIET: Duration = Duration::from_secs(1);
/// Pages that one turn gives back: a short transaction.
const VACUUM_PAGES: i64 = 256;
/// Free pages below this stay: they are used again soon.
const FREE_PAGES_KEPT: i64 = 1_024;

/// What is still to be tidied.
#[derive(Default)]
pub(crate) struct Tidy {
    /// When the last write was, while there is something to tidy.
    wrote: Option<Instant>,
    log: Log,
}

impl Tidy {
    /// Something was committed.
    pub(crate) fn wrote(&mut self, conn: &Connection) {
        self.log.wrote(conn);
        self.put_off();
    }

    fn put_off(&mut self) {
        self.wrote = Some(Instant::now());
    }

    /// How long until there is something to do; `None` when there is nothing.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.wrote.map(|at| QUIET.saturating_sub(at.elapsed()).max(Duration::from_millis(1)))
    }

    /// One turn, if it is time and no other process has written lately.
    pub(crate) fn turn(&mut self, conn: &Connection, since_others: Option<Duration>) {
        if self.wrote.is_none_or(|at| at.elapsed() < QUIET) {
            return;
        }
        if since_others.is_some_and(|since| since < QUIET) {
            self.put_off();
            return;
        }
        // Trouble is not reported from here: tidying is tried again after the next write, and verbs report theirs.
        match tidy(conn) {
            Ok(true) => self.put_off(),
            Ok(false) | Err(_) => self.wrote = None,
        }
    }
}

/// One step; true if there is something left for the next turn.
fn tidy(conn: &Connection) -> Result<bool, rusqlite::Error> {
    Ok(give_back(conn)? || !empty_log(conn)?)
}

/// Moves the write-ahead log into the file, which keeps nobody from writing, and cuts it if that takes no waiting: who
/// waits for a reader to leave would hold the write lock meanwhile. False while a reader stands in the way.
fn empty_log(conn: &Connection) -> Result<bool, rusqlite::Error> {
    let (log, moved): (i64, i64) =
        conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    if log != moved {
        return Ok(false);
    }
    // The writer's connection has no busy timeout.
    let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}

/// Gives some free pages back; true if there are more. In a file without incremental vacuum there are none.
fn give_back(conn: &Connection) -> Result<bool, rusqlite::Error> {
    let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    const INCREMENTAL: i64 = 2;
    if pragma("auto_vacuum")? != INCREMENTAL {
        return Ok(false);
    }
    let (free, all) = (pragma("freelist_count")?, pragma("page_count")?);
    if free <= FREE_PAGES_KEPT || free * 4 <= all {
        return Ok(false);
    }
    conn.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    Ok(true)
}
