//! Retention: old history and old enqueue keys go in the order in which they were saved.
//!
//! A clock that was ahead and was put right leaves rows that seem to be saved later than now. They stay until their stamp is
//! old, and stand in front of all that was saved since; so where such rows fill the whole first look, a second one goes
//! on behind them.

use dlo_core::Timestamp;
use dlo_ports::{
    StoreError,
    store::{PruneRequest, Pruned},
};
use rusqlite::{Connection, Row, params};

use crate::{
    error::{Doing, bounded},
    turn::Turn,
};

/// Most rows of each kind that one turn of pruning takes.
const MAX_PRUNE: usize = 1_000;
/// How many rows beyond those that it may take one look of pruning sees: kept rows in front of old ones cost one look
/// each.
const PRUNE_WINDOW: usize = 2 * MAX_PRUNE;
/// Newest workers that stay, however long ago they ended.
const WORKERS_KEPT: usize = 100;

/// Up to where a table was looked through behind rows from a clock that was ahead. Forgotten, it is found again by looking.
#[derive(Default)]
pub(crate) struct Cursors {
    history: Option<i64>,
    enqueue_keys: Option<i64>,
}

/// Drops old history and enqueue keys, oldest first; and with the history the workers that ended before it.
pub(crate) fn prune(turn: &mut Turn<'_>, request: PruneRequest) -> Result<Pruned, StoreError> {
    bounded("limit of a prune", request.limit, 1, MAX_PRUNE)?;
    let (tx, now, limit) = (&**turn.tx, turn.now, request.limit);
    let cursors = &mut turn.caches.pruned;
    prune_workers(tx, now.before(request.history), limit)?;
    let history = prune_history(tx, Ages { before: now.before(request.history), now }, limit, &mut cursors.history)?;
    let ages = Ages { before: now.before(request.enqueue_keys), now };
    let keys = drop_old(&EnqueueKeys { tx, ages }, 0, limit, &mut cursors.enqueue_keys)?;
    let more = history.more || keys.more;
    Ok(Pruned { history: history.dropped as u64, enqueue_keys: keys.dropped as u64, more })
}

/// What tells old, young and wrongly stamped rows apart.
#[derive(Clone, Copy)]
struct Ages {
    before: Timestamp,
    now: Timestamp,
}

/// A table whose rows were saved in the order of their position.
trait Table {
    /// A row as retention looks at it.
    type Row;
    /// Rows behind a position, in order.
    fn look(&self, after: i64, limit: usize) -> Result<Vec<Looked<Self::Row>>, StoreError>;
    /// Drops a row.
    fn drop(&self, row: &Looked<Self::Row>) -> Result<(), StoreError>;
    /// Position of the last row; 0 if there is none.
    fn last(&self) -> Result<i64, StoreError>;
}

struct Looked<R> {
    position: i64,
    /// It was saved long enough ago.
    past: bool,
    /// It is stamped later than now.
    ahead: bool,
    /// It stays for ever.
    kept: bool,
    row: R,
}

/// What became of a table.
struct Swept {
    dropped: usize,
    /// No row up to here will ever be dropped.
    done: i64,
    more: bool,
}

/// Drops old rows behind a position.
fn drop_old<T: Table>(table: &T, from: i64, limit: usize, cursor: &mut Option<i64>) -> Result<Swept, StoreError> {
    let window = PRUNE_WINDOW + limit;
    let rows = table.look(from, window)?;
    // A clock that went back may leave young rows before old ones: the mark stays before the first young one.
    let front = walk(table, &rows, limit, |row| row.past || row.kept)?;
    let mut swept = Swept { dropped: front.dropped, done: front.passed.unwrap_or(from), more: front.dropped == limit };
    let stopped_by_ahead = front.stopped_at.is_some_and(|at| rows[at].ahead);
    let Some(last) = rows.last().filter(|_| stopped_by_ahead && rows.len() == window) else {
        *cursor = None;
        return Ok(swept);
    };
    let after = cursor.unwrap_or(0).max(last.position);
    let rows = table.look(after, window)?;
    let behind = walk(table, &rows, limit - front.dropped, |row| row.past || row.kept || row.ahead)?;
    swept.dropped += behind.dropped;
    swept.more = swept.dropped == limit || (rows.len() == window && behind.stopped_at.is_none());
    // Positions of an emptied end come again.
    *cursor = Some(behind.passed.unwrap_or(after).min(table.last()?));
    Ok(swept)
}

/// What became of the rows of one look.
struct Walked {
    dropped: usize,
    /// The last row before the first that was not passed.
    passed: Option<i64>,
    /// Index of the first row that was not passed.
    stopped_at: Option<usize>,
}

/// Drops old rows until the limit, and passes rows from the front as long as they are such that need no further look.
fn walk<T: Table>(
    table: &T,
    rows: &[Looked<T::Row>],
    limit: usize,
    passes: impl Fn(&Looked<T::Row>) -> bool,
) -> Result<Walked, StoreError> {
    let mut walked = Walked { dropped: 0, passed: None, stopped_at: None };
    for (at, row) in rows.iter().enumerate() {
        if row.past && !row.kept {
            if walked.dropped == limit {
                walked.stopped_at.get_or_insert(at);
                break;
            }
            table.drop(row)?;
            walked.dropped += 1;
        }
        if walked.stopped_at.is_none() {
            if passes(row) {
                walked.passed = Some(row.position);
            } else {
                walked.stopped_at = Some(at);
            }
        }
    }
    Ok(walked)
}

fn prune_history(tx: &Connection, ages: Ages, limit: usize, cursor: &mut Option<i64>) -> Result<Swept, StoreError> {
    const DOING: &str = "prune history";
    let from: i64 = tx
        .prepare_cached("SELECT value FROM dlo_meta WHERE name = 'history_pruned'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .doing(DOING)?;
    let swept = drop_old(&History { tx, ages }, from, limit, cursor)?;
    if swept.done != from {
        // Sequence numbers of an emptied end come again, so the mark never lies beyond the last row.
        tx.prepare_cached(include_str!("../sql/prune_history_mark.sql"))
            .and_then(|mut statement| statement.execute([swept.done]))
            .doing(DOING)?;
    }
    Ok(swept)
}

/// Ended generations by the order of ending; a lineage that has a dead letter is kept.
struct History<'a> {
    tx: &'a Connection,
    ages: Ages,
}

struct EndedRow {
    tenant: String,
    entry: [u8; 16],
    attempts: i64,
}

impl Table for History<'_> {
    type Row = EndedRow;

    fn look(&self, after: i64, limit: usize) -> Result<Vec<Looked<EndedRow>>, StoreError> {
        look(self.tx, include_str!("../sql/prune_history_look.sql"), self.ages, after, limit, |row| {
            Ok(Looked {
                position: row.get(0)?,
                row: EndedRow { tenant: row.get(1)?, entry: row.get(2)?, attempts: row.get(3)? },
                past: row.get(4)?,
                ahead: row.get(5)?,
                kept: row.get(6)?,
            })
        })
    }

    fn drop(&self, looked: &Looked<EndedRow>) -> Result<(), StoreError> {
        delete(self.tx, "DELETE FROM dlo_history WHERE ended_seq = ?1", looked.position)?;
        if looked.row.attempts > 0 {
            self.tx
                .prepare_cached("DELETE FROM dlo_attempt WHERE tenant = ?1 AND entry = ?2")
                .and_then(|mut statement| statement.execute(params![looked.row.tenant, looked.row.entry]))
                .doing(DOING)?;
        }
        Ok(())
    }

    fn last(&self) -> Result<i64, StoreError> {
        last(self.tx, "SELECT coalesce(max(ended_seq), 0) FROM dlo_history")
    }
}

/// Enqueue keys by the order of saving.
struct EnqueueKeys<'a> {
    tx: &'a Connection,
    ages: Ages,
}

impl Table for EnqueueKeys<'_> {
    type Row = ();

    fn look(&self, after: i64, limit: usize) -> Result<Vec<Looked<()>>, StoreError> {
        look(self.tx, include_str!("../sql/prune_enqueue_keys_look.sql"), self.ages, after, limit, |row| {
            Ok(Looked { position: row.get(0)?, past: row.get(1)?, ahead: row.get(2)?, kept: false, row: () })
        })
    }

    fn drop(&self, looked: &Looked<()>) -> Result<(), StoreError> {
        delete(self.tx, "DELETE FROM dlo_enqueue_key WHERE id = ?1", looked.position)
    }

    fn last(&self) -> Result<i64, StoreError> {
        last(self.tx, "SELECT coalesce(max(id), 0) FROM dlo_enqueue_key")
    }
}

const DOING: &str = "prune old rows";

fn look<R>(
    tx: &Connection,
    sql: &str,
    ages: Ages,
    after: i64,
    limit: usize,
    read: impl FnMut(&Row<'_>) -> Result<Looked<R>, rusqlite::Error>,
) -> Result<Vec<Looked<R>>, StoreError> {
    let mut statement = tx.prepare_cached(sql).doing(DOING)?;
    let rows = statement
        .query_map(params![after, ages.before.as_micros(), limit as i64, ages.now.as_micros()], read)
        .doing(DOING)?;
    rows.collect::<Result<_, _>>().doing(DOING)
}

fn delete(tx: &Connection, sql: &str, position: i64) -> Result<(), StoreError> {
    tx.prepare_cached(sql).and_then(|mut statement| statement.execute([position])).doing(DOING)?;
    Ok(())
}

fn last(tx: &Connection, sql: &str) -> Result<i64, StoreError> {
    tx.prepare_cached(sql).and_then(|mut statement| statement.query_row([], |row| row.get(0))).doing(DOING)
}

fn prune_workers(tx: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    tx.prepare_cached(include_str!("../sql/prune_workers.sql"))
        .and_then(|mut statement| statement.execute(params![before.as_micros(), limit as i64, WORKERS_KEPT as i64]))
        .doing("prune workers")
}
