//! History: ended generations that are not in quarantine, and the envelopes that nobody needs any more.

use dlo_core::{Counters, EntryKey, EntryState, Fence, Receipt};
use dlo_ports::StoreError;
use rusqlite::{
    CachedStatement, Connection, Row, params,
    types::{ToSqlOutput, ValueRef},
};

use crate::{error::Doing, fence};

const DOING: &str = "end an entry";

/// Statements that end an entry, prepared once per verb.
pub(crate) struct Endings<'c> {
    drop_envelope: CachedStatement<'c>,
    count_envelope: CachedStatement<'c>,
    insert: CachedStatement<'c>,
}

/// What is known of an entry whose row was just deleted.
pub(crate) struct Gone<'a> {
    pub(crate) key: &'a EntryKey,
    pub(crate) seq: i64,
    pub(crate) envelope_ref: i64,
    pub(crate) destination: &'a str,
    pub(crate) operation_key: &'a str,
    pub(crate) created: i64,
}

/// How it ended.
pub(crate) struct End<'a> {
    pub(crate) state: EntryState,
    pub(crate) at: i64,
    pub(crate) receipt: Option<&'a Receipt>,
    pub(crate) attempts: u32,
    pub(crate) counters: Counters,
    pub(crate) fence: Option<Fence>,
}

impl<'c> Endings<'c> {
    pub(crate) fn prepare(tx: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self {
            drop_envelope: tx.prepare_cached(include_str!("sql/envelope_drop.sql")).doing(DOING)?,
            count_envelope: tx.prepare_cached(include_str!("sql/envelope_count_off.sql")).doing(DOING)?,
            insert: tx.prepare_cached(include_str!("sql/history_insert.sql")).doing(DOING)?,
        })
    }

    /// Writes the history row of an entry whose live row is gone, and lets go of its envelope.
    pub(crate) fn end(&mut self, gone: &Gone<'_>, end: &End<'_>) -> Result<(), StoreError> {
        let insert = &mut self.insert;
        {
            let mut rows = self.drop_envelope.query([gone.envelope_ref]).doing(DOING)?;
            if let Some(row) = rows.next().doing(DOING)? {
                return write(insert, gone, end, Some(row));
            }
        }
        let mut rows = self.count_envelope.query([gone.envelope_ref]).doing(DOING)?;
        // Without an envelope row (damage) the end is recorded all the same.
        let row = rows.next().doing(DOING)?;
        write(insert, gone, end, row)
    }
}

fn write(
    insert: &mut CachedStatement<'_>,
    gone: &Gone<'_>,
    end: &End<'_>,
    envelope: Option<&Row<'_>>,
) -> Result<(), StoreError> {
    let column = |index: usize| {
        let value = match (envelope, index) {
            (Some(row), _) => row.get_ref(index).doing(DOING)?,
            (None, 0) => ValueRef::Blob(&[0; 16]),
            (None, 1) => ValueRef::Text(b""),
            (None, 5) => ValueRef::Integer(0),
            (None, _) => ValueRef::Null,
        };
        Ok::<_, StoreError>(ToSqlOutput::Borrowed(value))
    };
    let (token, version) = end.fence.map_or((None, None), fence::columns);
    let counters = end.counters;
    insert
        .execute(params![
            gone.key.tenant.as_str(),
            gone.key.entry.as_bytes(),
            gone.key.generation,
            gone.seq,
            gone.destination,
            end.state.as_str(),
            gone.operation_key,
            gone.created,
            end.at,
            column(0)?,
            column(1)?,
            column(2)?,
            column(3)?,
            column(4)?,
            column(5)?,
            column(6)?,
            end.receipt.map(|receipt| receipt.kind.as_str()),
            end.receipt.and_then(|receipt| receipt.id.as_ref()).map(dlo_core::text::Code::as_str),
            end.attempts,
            counters.claims,
            counters.failed,
            counters.crashed,
            counters.deferred,
            counters.interrupted,
            token,
            version,
        ])
        .doing(DOING)?;
    Ok(())
}
