//! History: ended generations that are not in quarantine, and the envelopes that nobody needs any more.

use dlo_core::{EntryState, Fence, Receipt, entry::Progress, text::Code};
use dlo_ports::StoreError;
use rusqlite::{CachedStatement, Connection, params};

use crate::{error::Doing, fence, fence::Held, seqs::Seqs};

const DOING: &str = "end an entry";

/// Entries that end in one verb. Rows move by `INSERT … SELECT`, so that nothing of them passes through here; what is
/// left behind is dropped for all of them at once.
pub(crate) struct Endings<'c> {
    conn: &'c Connection,
    insert: CachedStatement<'c>,
    entries: Seqs,
    envelopes: Seqs,
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
    pub(crate) fn prepare(conn: &'c Connection) -> Result<Self, StoreError> {
        let insert = conn.prepare_cached(include_str!("sql/history_insert.sql")).doing(DOING)?;
        Ok(Self { conn, insert, entries: Seqs::default(), envelopes: Seqs::default() })
    }

    /// Copies a live row to history, if it is under the claim that is known of it. The row itself stays until
    /// [`Self::finish`].
    pub(crate) fn end(&mut self, held: &Held, end: &End<'_>) -> Result<bool, StoreError> {
        let (token, version) = end.fence.map_or((None, None), fence::columns);
        let counters = end.progress.counters;
        let copied = self
            .insert
            .execute(params![
                held.seq,
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
                held.claim,
            ])
            .doing(DOING)?;
        if copied == 1 {
            self.entries.add(held.seq);
            self.envelopes.add(held.envelope_ref);
        }
        Ok(copied == 1)
    }

    /// Drops the rows that were copied, and lets go of their envelopes. Entries of one destination carry different
    /// envelopes, so none is counted twice.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        let (entries, envelopes) = (core::mem::take(&mut self.entries), core::mem::take(&mut self.envelopes));
        if entries.is_empty() {
            return Ok(());
        }
        let run = |sql: &str, seqs: &Seqs| {
            self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute([seqs.as_json()])).doing(DOING)
        };
        run(include_str!("sql/entries_drop.sql"), &entries)?;
        if run(include_str!("sql/envelopes_drop.sql"), &envelopes)? < envelopes.len() {
            // Those that other entries carry too are still there.
            run(include_str!("sql/envelopes_count_off.sql"), &envelopes)?;
        }
        Ok(())
    }
}
