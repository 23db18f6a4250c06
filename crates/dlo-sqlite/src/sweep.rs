//! Sweeps: lost claims, overdue entries, retention ([`prune`]).

mod prune;

use core::time::Duration;

use dlo_core::{
    DestinationName, Entry, EntryKey, Incarnation, TenantId, Timestamp, dead_letter::Unreadable, limits::MAX_PAGE,
};
use dlo_ports::StoreError;
use rusqlite::{Connection, params};

use crate::{
    error::{Doing, bounded},
    quarantine::quarantine_unreadable,
    rows::{EntryReader, entry_select},
    turn::Turn,
};

pub(crate) use prune::{Cursors, prune};

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

/// Quarantines what a sweep could not read (trap D10), and says what. Rows under names that are none are left to
/// `dlo doctor`.
pub(crate) fn quarantine_found(
    turn: &mut Turn<'_>,
    found: &Found,
) -> Result<Vec<(DestinationName, EntryKey)>, StoreError> {
    let mut quarantined = Vec::with_capacity(found.unreadable.len());
    for row in &found.unreadable {
        let (Ok(tenant), Ok(destination)) = (TenantId::new(&row.tenant), DestinationName::new(&row.destination)) else {
            continue;
        };
        let keys = quarantine_unreadable(turn, &tenant, &destination, &[(row.seq, row.problem)])?;
        quarantined.extend(keys.into_iter().map(|key| (destination.clone(), key)));
    }
    Ok(quarantined)
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
