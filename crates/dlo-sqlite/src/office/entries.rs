//! Acts on live entries: cancel, retry now, and out of manual review into quarantine.

use std::collections::BTreeMap;

use dlo_core::{
    AuditEvent, DeadLetterDraft, DestinationName, EntryId, EntryState, TenantId, Timestamp, limits::MAX_PAGE,
};
use dlo_ports::{
    StoreError,
    store::{ActResult, EntryAct},
};
use rusqlite::{OptionalExtension, Transaction, params};

use super::audit::record;
use crate::{
    catalog,
    error::{Doing, bounded, corrupt},
    quarantine::{self, Ending},
    sequence,
    totals::{self, Totals},
};

/// Acts on live entries; results in order.
pub(crate) fn act_on_entries(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    acts: &[(EntryId, EntryAct)],
    audit: &AuditEvent,
) -> Result<Vec<ActResult>, StoreError> {
    bounded("number of entries to act on", acts.len(), 0, MAX_PAGE)?;
    record(tx, now, audit)?;
    let mut office = Acts { tx, now, tenant, totals: BTreeMap::new() };
    let results = acts.iter().map(|(entry, act)| office.act(*entry, act)).collect::<Result<_, _>>()?;
    for (destination, totals) in office.totals {
        totals.save(tx, tenant.as_str(), &destination)?;
    }
    Ok(results)
}

/// What an act has to know of a live row.
struct Live {
    seq: i64,
    destination: String,
    envelope_ref: i64,
    due: i64,
    manual_review: bool,
    claimed: bool,
}

struct Acts<'a> {
    tx: &'a Transaction<'a>,
    now: Timestamp,
    tenant: &'a TenantId,
    totals: BTreeMap<String, Totals>,
}

impl Acts<'_> {
    fn act(&mut self, entry: EntryId, act: &EntryAct) -> Result<ActResult, StoreError> {
        let Some(live) = self.live(entry)? else {
            return Ok(self.ended_state(entry)?.map_or(ActResult::Missing, ActResult::WrongState));
        };
        if live.claimed {
            return Ok(ActResult::WrongState(EntryState::Claimed.as_str()));
        }
        match act {
            EntryAct::Cancel => self.cancel(&live)?,
            EntryAct::RetryNow { due } if live.manual_review => self.retry_reviewed(&live, *due)?,
            EntryAct::RetryNow { due } if live.due <= due.as_micros() => return Ok(ActResult::Unchanged),
            EntryAct::RetryNow { due } => self.retry_waiting(&live, *due)?,
            EntryAct::DeadLetter(draft) if live.manual_review => self.give_up(&live, draft)?,
            EntryAct::DeadLetter(_) => {
                let state = if live.due <= self.now.as_micros() { EntryState::Ready } else { EntryState::Waiting };
                return Ok(ActResult::WrongState(state.as_str()));
            }
        }
        Ok(ActResult::Done)
    }

    fn live(&self, entry: EntryId) -> Result<Option<Live>, StoreError> {
        self.tx
            .prepare_cached(include_str!("../sql/office/entry_live.sql"))
            .and_then(|mut statement| {
                statement.query_row(params![self.tenant.as_str(), entry.as_bytes()], |row| {
                    Ok(Live {
                        seq: row.get(0)?,
                        destination: row.get(1)?,
                        envelope_ref: row.get(2)?,
                        due: row.get(3)?,
                        manual_review: row.get(4)?,
                        claimed: row.get(5)?,
                    })
                })
            })
            .optional()
            .doing("look up an entry")
    }

    /// State of the latest generation of an entry that has no live row.
    fn ended_state(&self, entry: EntryId) -> Result<Option<&'static str>, StoreError> {
        let name: Option<String> = self
            .tx
            .prepare_cached(include_str!("../sql/office/entry_ended_state.sql"))
            .and_then(|mut statement| {
                statement.query_row(params![self.tenant.as_str(), entry.as_bytes()], |row| row.get(0))
            })
            .optional()
            .doing("look up an ended entry")?;
        let Some(name) = name else { return Ok(None) };
        let state = EntryState::ALL.into_iter().find(|state| state.as_str() == name);
        state.map(|state| Some(state.as_str())).ok_or_else(|| corrupt("state of an ended entry is not one of ours"))
    }

    fn cancel(&mut self, live: &Live) -> Result<(), StoreError> {
        self.tx
            .prepare_cached(include_str!("../sql/office/history_cancelled.sql"))
            .and_then(|mut statement| statement.execute(params![live.seq, self.now.as_micros()]))
            .doing("move a cancelled entry to history")?;
        self.drop_live(live)?;
        release_envelope(self.tx, live.envelope_ref)?;
        self.leave_review(live);
        let totals = self.totals_of(live);
        totals.add(totals::LIVE, -1);
        totals.add(totals::CANCELLED, 1);
        Ok(())
    }

    fn retry_waiting(&self, live: &Live, due: Timestamp) -> Result<(), StoreError> {
        self.tx
            .prepare_cached(include_str!("../sql/office/entry_due.sql"))
            .and_then(|mut statement| statement.execute(params![live.seq, due.as_micros(), self.now.as_micros()]))
            .doing("make an entry due")?;
        Ok(())
    }

    /// Out of manual review the row moves to the next generation, with a sequence number of its own: to its
    /// destination it is a new entry, and it stands behind what came before.
    fn retry_reviewed(&mut self, live: &Live, due: Timestamp) -> Result<(), StoreError> {
        let seq = sequence::take(self.tx, 1)?;
        self.tx
            .prepare_cached(include_str!("../sql/office/entry_next_generation.sql"))
            .and_then(|mut statement| statement.execute(params![live.seq, seq, due.as_micros(), self.now.as_micros()]))
            .doing("start a generation out of manual review")?;
        self.leave_review(live);
        let totals = self.totals_of(live);
        totals.add(totals::ENQUEUED, 1);
        totals.add(totals::REVIEW_RETRIED, 1);
        Ok(())
    }

    fn give_up(&mut self, live: &Live, draft: &DeadLetterDraft) -> Result<(), StoreError> {
        let destination = DestinationName::new(&live.destination)
            .map_err(|_| corrupt("a stored entry has a destination name that is not one"))?;
        // No fence: a worker that comes back is told that the generation has ended.
        let ending = Ending {
            seq: live.seq,
            draft,
            destination_version: catalog::latest_version(self.tx, self.tenant, &destination)?.unwrap_or(0),
            now: self.now.as_micros(),
            fence: None,
        };
        quarantine::open(self.tx, &ending, None)?;
        self.leave_review(live);
        self.totals_of(live).dead_letter(draft.class, &draft.reason);
        Ok(())
    }

    fn drop_live(&self, live: &Live) -> Result<(), StoreError> {
        self.tx
            .prepare_cached("DELETE FROM dlo_entry WHERE seq = ?1")
            .and_then(|mut statement| statement.execute([live.seq]))
            .doing("end a live entry")?;
        Ok(())
    }

    fn leave_review(&mut self, live: &Live) {
        self.totals_of(live).add(totals::MANUAL_REVIEW, -i64::from(live.manual_review));
    }

    fn totals_of(&mut self, live: &Live) -> &mut Totals {
        self.totals.entry(live.destination.clone()).or_default()
    }
}

/// One live entry or dead letter less needs the envelope; the last one takes the body along.
fn release_envelope(tx: &Transaction<'_>, envelope_ref: i64) -> Result<(), StoreError> {
    let refs: Option<i64> = tx
        .prepare_cached("UPDATE dlo_envelope SET refs = refs - 1 WHERE id = ?1 RETURNING refs")
        .and_then(|mut statement| statement.query_row([envelope_ref], |row| row.get(0)))
        .optional()
        .doing("release an envelope")?;
    if refs.is_some_and(|refs| refs <= 0) {
        tx.prepare_cached("DELETE FROM dlo_envelope WHERE id = ?1")
            .and_then(|mut statement| statement.execute([envelope_ref]))
            .doing("drop an envelope that nothing needs")?;
    }
    Ok(())
}
