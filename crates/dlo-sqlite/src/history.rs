//! History: ended generations that are not in quarantine, and the envelopes that nobody needs any more.

use dlo_core::{EntryState, Fence, Receipt, entry::Progress, text::Code};
use dlo_ports::StoreError;
use rusqlite::{CachedStatement, Connection, params};

use crate::{error::Doing, fence};

const DOING: &str = "end an entry";

/// Statements that end entries, prepared once per verb. Rows move by `INSERT … SELECT`, so that nothing of them passes
/// through here.
pub(crate) struct Endings<'c> {
    insert: CachedStatement<'c>,
    drop_entry: CachedStatement<'c>,
    drop_envelope: CachedStatement<'c>,
    count_envelope: CachedStatement<'c>,
}

/// How an entry ended.
pub(crate) struct End<'a> {
    pub(crate) state: EntryState,
    pub(crate) at: i64,
    pub(crate) receipt: Option<&'a Receipt>,
    pub(crate) progress: &'a Progress,
    pub(crate) fence: Option<Fence>,
}

impl<'c> Endings<'c> {
    pub(crate) fn prepare(tx: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self {
            insert: tx.prepare_cached(include_str!("sql/history_insert.sql")).doing(DOING)?,
            drop_entry: tx.prepare_cached("DELETE FROM dlo_entry WHERE seq = ?1").doing(DOING)?,
            drop_envelope: tx.prepare_cached(include_str!("sql/envelope_drop.sql")).doing(DOING)?,
            count_envelope: tx.prepare_cached(include_str!("sql/envelope_count_off.sql")).doing(DOING)?,
        })
    }

    /// Moves a live row to history, and lets go of its envelope.
    pub(crate) fn end(&mut self, seq: i64, envelope_ref: i64, end: &End<'_>) -> Result<(), StoreError> {
        let (token, version) = end.fence.map_or((None, None), fence::columns);
        let counters = end.progress.counters;
        self.insert
            .execute(params![
                seq,
                end.state.as_str(),
                end.at,
                end.receipt.map(|receipt| receipt.kind.as_str()),
                end.receipt.and_then(|receipt| receipt.id.as_ref()).map(Code::as_str),
                end.progress.attempts,
                counters.claims,
                counters.failed,
                counters.crashed,
                counters.deferred,
                counters.interrupted,
                token,
                version,
            ])
            .doing(DOING)?;
        self.drop_entry.execute([seq]).doing(DOING)?;
        if self.drop_envelope.execute([envelope_ref]).doing(DOING)? == 0 {
            self.count_envelope.execute([envelope_ref]).doing(DOING)?;
        }
        Ok(())
    }
}
