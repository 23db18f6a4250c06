//! Sweeps: lost claims, overdue entries, retention.

use core::time::Duration;

use dlo_core::{DestinationName, Entry, Incarnation, TenantId, Timestamp, dead_letter::Unreadable, limits::MAX_PAGE};
use dlo_ports::{
    StoreError,
    store::{PruneRequest, Pruned},
};
use rusqlite::{Connection, params};

use crate::{
    error::{Doing, bounded},
    quarantine::quarantine_unreadable,
    rows::{EntryReader, entry_select},
    turn::Turn,
};

/// Most rows of each kind that one turn of pruning takes.
const MAX_PRUNE: usize = 1_000;
/// How many rows beyond the first one turn of pruning looks at: kept rows in front of old ones cost one look each.
const PRUNE_WINDOW: usize = 2 * MAX_PRUNE;
/// Newest workers that stay, however long ago they ended.
const WORKERS_KEPT: usize = 100;

/// Entries that were read, and rows that could not be.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) entries: Vec<Entry>,
    pub(crate) unreadable: Vec<UnreadableRow>,
}

/// A row that can't be read, with the names that it is stored under.
pub(crate) struct UnreadableRow {
    seq: i64,
    tenant: String,
    destination: String,
    problem: Unreadable,
}

impl Found {
    fn read(&mut self, conn: &Connection, reader: &mut EntryReader, seq: i64) -> Result<(), StoreError> {
        const DOING: &str = "read an entry";
        let mut statement = conn.prepare_cached(entry_select!("WHERE e.seq = ?1")).doing(DOING)?;
        let mut rows = statement.query([seq]).doing(DOING)?;
        let Some(row) = rows.next().doing(DOING)? else { return Ok(()) };
        match reader.read(row) {
            Ok(entry) => self.entries.push(entry),
            Err(crate::rows::Unreadable(column)) => self.unreadable.push(UnreadableRow {
                seq,
                tenant: row.get(1).doing(DOING)?,
                destination: row.get(4).doing(DOING)?,
                problem: if column == "envelope" { Unreadable::Envelope } else { Unreadable::Entry },
            }),
        }
        Ok(())
    }
}

/// Quarantines what a sweep could not read (trap D10). Rows under names that are none are left to `dlo doctor`.
pub(crate) fn quarantine_found(turn: &mut Turn<'_>, found: &Found) -> Result<(), StoreError> {
    for row in &found.unreadable {
        let (Ok(tenant), Ok(destination)) = (TenantId::new(&row.tenant), DestinationName::new(&row.destination)) else {
            continue;
        };
        quarantine_unreadable(turn, &tenant, &destination, &[(row.seq, row.problem)])?;
    }
    Ok(())
}

/// Claimed entries whose worker is gone or whose deadline is reached, by sequence; those of `except` are left.
pub(crate) fn lost_claims(
    conn: &Connection,
    now: Timestamp,
    except: Option<Incarnation>,
    limit: usize,
) -> Result<Found, StoreError> {
    const DOING: &str = "find lost claims";
    bounded("limit of lost claims", limit, 1, MAX_PAGE)?;
    let mut members = Vec::new();
    {
        let mut statement = conn.prepare_cached(include_str!("sql/lost_claims.sql")).doing(DOING)?;
        let mut rows =
            statement.query(params![now.as_micros(), except.as_ref().map(Incarnation::as_bytes)]).doing(DOING)?;
        while let Some(row) = rows.next().doing(DOING)? {
            let token: [u8; 16] = row.get(0).doing(DOING)?;
            let blob = row.get_ref(1).and_then(|blob| Ok(blob.as_blob()?)).doing(DOING)?;
            members.extend(blob.as_chunks::<8>().0.iter().map(|seq| (i64::from_be_bytes(*seq), token)));
        }
    }
    members.sort_unstable();
    let (mut found, mut reader) = (Found::default(), EntryReader::default());
    for (seq, token) in members {
        if found.entries.len() == limit {
            break;
        }
        let held: bool = conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM dlo_entry WHERE seq = ?1 AND claim_token = ?2)")
            .and_then(|mut statement| statement.query_row(params![seq, token], |row| row.get(0)))
            .doing(DOING)?;
        if held {
            found.read(conn, &mut reader, seq)?;
        }
    }
    Ok(found)
}

/// Unclaimed live entries of a destination past `max_age` or `deliver_by`.
pub(crate) fn overdue(
    conn: &Connection,
    now: Timestamp,
    tenant: &TenantId,
    destination: &DestinationName,
    max_age: Duration,
    limit: usize,
) -> Result<Found, StoreError> {
    const DOING: &str = "find overdue entries";
    bounded("limit of overdue entries", limit, 1, MAX_PAGE)?;
    let by_age = now.before(max_age).as_micros();
    let mut seqs = Vec::new();
    for (sql, until) in [
        (include_str!("sql/overdue_fresh.sql"), by_age),
        (include_str!("sql/overdue_by_age.sql"), by_age),
        (include_str!("sql/overdue_by_deadline.sql"), now.as_micros()),
    ] {
        let mut statement = conn.prepare_cached(sql).doing(DOING)?;
        let rows = statement
            .query_map(params![tenant.as_str(), destination.as_str(), until, limit as i64], |row| row.get::<_, i64>(0))
            .doing(DOING)?;
        for seq in rows {
            seqs.push(seq.doing(DOING)?);
        }
    }
    seqs.sort_unstable();
    seqs.dedup();
    seqs.truncate(limit);
    let (mut found, mut reader) = (Found::default(), EntryReader::default());
    for seq in seqs {
        found.read(conn, &mut reader, seq)?;
    }
    Ok(found)
}

/// Drops old history and enqueue keys, oldest first; and with the history the workers that ended before it.
pub(crate) fn prune(turn: &mut Turn<'_>, request: PruneRequest) -> Result<Pruned, StoreError> {
    bounded("limit of a prune", request.limit, 1, MAX_PRUNE)?;
    prune_workers(turn.tx, turn.now.before(request.history), request.limit)?;
    let history = prune_history(turn.tx, turn.now.before(request.history), request.limit)?;
    let enqueue_keys = prune_enqueue_keys(turn.tx, turn.now.before(request.enqueue_keys), request.limit)?;
    let more = history == request.limit || enqueue_keys == request.limit;
    Ok(Pruned { history: history as u64, enqueue_keys: enqueue_keys as u64, more })
}

/// A history row as retention looks at it.
struct Looked {
    ended_seq: i64,
    tenant: String,
    entry: [u8; 16],
    attempts: i64,
    /// It ended long enough ago.
    past: bool,
    /// Its lineage has a dead letter, so it stays for ever.
    kept: bool,
}

fn prune_history(tx: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    const DOING: &str = "prune history";
    let from: i64 = tx
        .prepare_cached("SELECT value FROM dlo_meta WHERE name = 'history_pruned'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .doing(DOING)?;
    let rows: Vec<Looked> = {
        let mut statement = tx.prepare_cached(include_str!("sql/prune_history_look.sql")).doing(DOING)?;
        let rows = statement
            .query_map(params![from, before.as_micros(), (PRUNE_WINDOW + limit) as i64], |row| {
                Ok(Looked {
                    ended_seq: row.get(0)?,
                    tenant: row.get(1)?,
                    entry: row.get(2)?,
                    attempts: row.get(3)?,
                    past: row.get(4)?,
                    kept: row.get(5)?,
                })
            })
            .doing(DOING)?;
        rows.collect::<Result<_, _>>().doing(DOING)?
    };
    let (mut pruned, mut looked, mut in_front) = (0, from, true);
    for row in rows {
        if row.past && !row.kept {
            if pruned == limit {
                break;
            }
            drop_history(tx, &row)?;
            pruned += 1;
        }
        // A clock that went back may leave young rows before old ones: the mark stays before the first young one.
        in_front &= row.past || row.kept;
        if in_front {
            looked = row.ended_seq;
        }
    }
    if looked != from {
        // Sequence numbers of an emptied end come again, so the mark never lies beyond the last row.
        tx.prepare_cached(include_str!("sql/prune_history_mark.sql"))
            .and_then(|mut statement| statement.execute([looked]))
            .doing(DOING)?;
    }
    Ok(pruned)
}

fn drop_history(tx: &Connection, row: &Looked) -> Result<(), StoreError> {
    const DOING: &str = "prune history";
    tx.prepare_cached("DELETE FROM dlo_history WHERE ended_seq = ?1")
        .and_then(|mut statement| statement.execute([row.ended_seq]))
        .doing(DOING)?;
    if row.attempts > 0 {
        tx.prepare_cached("DELETE FROM dlo_attempt WHERE tenant = ?1 AND entry = ?2")
            .and_then(|mut statement| statement.execute(params![row.tenant, row.entry]))
            .doing(DOING)?;
    }
    Ok(())
}

fn prune_enqueue_keys(tx: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    tx.prepare_cached(include_str!("sql/prune_enqueue_keys.sql"))
        .and_then(|mut statement| {
            statement.execute(params![before.as_micros(), limit as i64, (PRUNE_WINDOW + limit) as i64])
        })
        .doing("prune enqueue keys")
}

fn prune_workers(tx: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    tx.prepare_cached(include_str!("sql/prune_workers.sql"))
        .and_then(|mut statement| statement.execute(params![before.as_micros(), limit as i64, WORKERS_KEPT as i64]))
        .doing("prune workers")
}
