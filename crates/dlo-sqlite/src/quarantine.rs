//! Opening dead letters: always by `INSERT … SELECT` out of the entry's row, so that nothing in the row can make it
//! fail (I-09, traps D10, D11).

use dlo_core::{
    DeadLetterDraft, DeadLetterId, DestinationName, EntryId, EntryKey, Fence, TenantId,
    dead_letter::{Unreadable, unreadable},
    entry::Progress,
    text::Code,
};
use dlo_ports::StoreError;
use rusqlite::{Connection, params};

use crate::{
    error::Doing,
    fence::{self, ClaimEnds, micros},
    totals::{self, Totals},
    turn::Turn,
};

const DOING: &str = "quarantine an entry";

/// Which row becomes a dead letter, and what is known about its end.
pub(crate) struct Ending<'a> {
    pub(crate) seq: i64,
    pub(crate) draft: &'a DeadLetterDraft,
    pub(crate) destination_version: u64,
    pub(crate) now: i64,
    pub(crate) fence: Option<Fence>,
}

/// Opens the dead letter of a row with the progress that a transition says, or else as it stands, and drops the row.
/// Totals are the caller's.
pub(crate) fn open(tx: &Connection, ending: &Ending<'_>, progress: Option<&Progress>) -> Result<(), StoreError> {
    let draft = ending.draft;
    let (token, version) = ending.fence.map_or((None, None), fence::columns);
    let counters = progress.map(|progress| progress.counters).unwrap_or_default();
    let failure = progress.and_then(|progress| progress.last_failure.as_ref());
    tx.prepare_cached(include_str!("sql/dead_letter_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                ending.seq,
                draft.id.as_bytes(),
                ending.destination_version as i64,
                draft.class.as_str(),
                draft.reason.as_str(),
                draft.code.as_str(),
                draft.message.as_str(),
                draft.rule.as_ref().map(Code::as_str),
                ending.now,
                draft.fingerprint.version,
                draft.fingerprint.hash,
                draft.fingerprint.template.as_str(),
                token,
                version,
                progress.is_some(),
                counters.claims,
                counters.failed,
                counters.crashed,
                counters.deferred,
                counters.interrupted,
                progress.map(|progress| progress.attempts),
                micros(progress.and_then(|progress| progress.first_failed)),
                micros(progress.and_then(|progress| progress.last_failed)),
                failure.map(|failure| failure.class.as_str()),
                failure.map(|failure| failure.reason.as_str()),
                failure.and_then(|failure| failure.provider_code.as_ref()).map(Code::as_str),
                failure.map(|failure| failure.text.as_str()),
                progress.map(|progress| progress.unanswered),
            ])
        })
        .doing(DOING)?;
    drop_entry(tx, ending.seq)
}

fn drop_entry(tx: &Connection, seq: i64) -> Result<(), StoreError> {
    tx.prepare_cached("DELETE FROM dlo_entry WHERE seq = ?1")
        .and_then(|mut statement| statement.execute([seq]))
        .doing(DOING)?;
    Ok(())
}

/// Quarantines rows that can't be read, each by itself (trap D10); the answer has their keys as far as they can be read.
pub(crate) fn quarantine_unreadable(
    turn: &mut Turn<'_>,
    tenant: &TenantId,
    destination: &DestinationName,
    rows: &[(i64, Unreadable)],
) -> Result<Vec<EntryKey>, StoreError> {
    let mut keys = Vec::with_capacity(rows.len());
    if rows.is_empty() {
        return Ok(keys);
    }
    let version = crate::catalog::latest_version(turn.tx, tenant, destination)?.unwrap_or(0);
    let (mut sums, mut claims) = (Totals::default(), ClaimEnds::default());
    for (seq, problem) in rows {
        let (key, claim, manual_review) = remains(turn.tx, tenant, *seq)?;
        let draft = unreadable(DeadLetterId::new(turn.now, turn.random10()), destination, *problem);
        let ending =
            Ending { seq: *seq, draft: &draft, destination_version: version, now: turn.now.as_micros(), fence: None };
        open(turn.tx, &ending, None)?;
        sums.dead_letter(draft.class, &draft.reason);
        if manual_review {
            sums.add(totals::MANUAL_REVIEW, -1);
        }
        if let Some(token) = claim {
            claims.add(token);
        }
        keys.push(key);
    }
    claims.save(turn.tx)?;
    sums.save(turn.tx, tenant.as_str(), destination.as_str())?;
    Ok(keys)
}

/// What can be said of a row that can't be read.
fn remains(tx: &Connection, tenant: &TenantId, seq: i64) -> Result<(EntryKey, Option<[u8; 16]>, bool), StoreError> {
    tx.prepare_cached("SELECT entry, generation, claim_token, manual_review FROM dlo_entry WHERE seq = ?1")
        .and_then(|mut statement| {
            statement.query_row([seq], |row| {
                let entry = row.get(0).unwrap_or_default();
                let generation: i64 = row.get(1)?;
                let key = EntryKey {
                    tenant: tenant.clone(),
                    entry: EntryId::from_bytes(entry),
                    generation: u32::try_from(generation).unwrap_or(u32::MAX),
                };
                Ok((key, row.get(2).unwrap_or_default(), row.get(3).unwrap_or_default()))
            })
        })
        .doing(DOING)
}
