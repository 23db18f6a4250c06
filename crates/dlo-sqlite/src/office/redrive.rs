//! Redrive: a new generation of what was dead-lettered, and its ledger.

use std::collections::BTreeMap;

use dlo_core::{
    AuditEvent, DeadLetterId, EntryKey, RedriveId, TenantId, Timestamp,
    dead_letter::{RedriveRefusal, redrive_refusal},
    limits::MAX_REDRIVE_ITEMS,
};
use dlo_ports::{StoreError, store::RedriveResult};
use rusqlite::{OptionalExtension, Transaction, params};

use super::audit::record;
use crate::{
    catalog,
    error::{Doing, bounded, corrupt},
    read::{QuarantineRow, envelope_is_readable, quarantine_row},
    sequence,
    totals::{self, Totals},
};

/// Redrives dead letters by id; every item gets a ledger row, whatever became of it.
pub(crate) fn redrive(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    redrive: RedriveId,
    items: &[DeadLetterId],
    audit: &AuditEvent,
) -> Result<Vec<RedriveResult>, StoreError> {
    bounded("number of dead letters to redrive", items.len(), 0, MAX_REDRIVE_ITEMS)?;
    record(tx, now, audit)?;
    let mut totals = BTreeMap::new();
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let result = redrive_one(tx, now, tenant, *item, &mut totals)?;
        enter_in_ledger(tx, now, tenant, redrive, *item, audit, &result)?;
        results.push(result);
    }
    for (destination, totals) in totals {
        totals.save(tx, tenant.as_str(), &destination)?;
    }
    Ok(results)
}

fn redrive_one(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    item: DeadLetterId,
    totals: &mut BTreeMap<String, Totals>,
) -> Result<RedriveResult, StoreError> {
    let Some(row) = quarantine_row(tx, tenant, item)? else { return Ok(RedriveResult::Missing) };
    if let Some(refusal) = refusal(tx, now, tenant, &row)? {
        return Ok(RedriveResult::Refused(refusal));
    }
    let key = start_generation(tx, now, &row)?;
    let totals = totals.entry(row.dead_letter.destination.to_string()).or_default();
    totals.add(totals::LIVE, 1);
    totals.add(totals::ENQUEUED, 1);
    totals.add(totals::DEAD_LETTERS_OPEN, -1);
    Ok(RedriveResult::Redriven { key })
}

fn refusal(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    row: &QuarantineRow,
) -> Result<Option<RedriveRefusal>, StoreError> {
    let alive: Option<u32> = tx
        .prepare_cached("SELECT generation FROM dlo_entry WHERE tenant = ?1 AND entry = ?2")
        .and_then(|mut statement| {
            statement.query_row(params![tenant.as_str(), row.dead_letter.key.entry.as_bytes()], |row| row.get(0))
        })
        .optional()
        .doing("look for a live generation")?;
    let destination = catalog::latest(tx, tenant, &row.dead_letter.destination)?;
    let readable = envelope_is_readable(tx, tenant, row.envelope_ref)?;
    Ok(redrive_refusal(&row.dead_letter, destination.as_ref(), row.deliver_by, alive, readable, now))
}

/// Moves an open dead letter to redriven and starts the next generation of its entry. Both or neither: the state is
/// part of the condition, and the unique indexes on live entries and on the ledger stand behind it (I-15).
fn start_generation(tx: &Transaction<'_>, now: Timestamp, row: &QuarantineRow) -> Result<EntryKey, StoreError> {
    let dead_letter = &row.dead_letter;
    let released = tx
        .prepare_cached("UPDATE dlo_dead_letter SET state = 'redriven' WHERE seq = ?1 AND state = 'open'")
        .and_then(|mut statement| statement.execute([dead_letter.seq as i64]))
        .doing("release a dead letter")?;
    if released != 1 {
        return Err(corrupt("an open dead letter could not be released"));
    }
    let seq = sequence::take(tx, 1)?;
    tx.prepare_cached(include_str!("../sql/office/entry_redriven.sql"))
        .and_then(|mut statement| statement.execute(params![dead_letter.seq as i64, seq, now.as_micros()]))
        .doing("start a generation of a dead letter")?;
    tx.prepare_cached("UPDATE dlo_envelope SET refs = refs + 1 WHERE id = ?1")
        .and_then(|mut statement| statement.execute([row.envelope_ref]))
        .doing("keep the envelope of a redriven entry")?;
    Ok(EntryKey { generation: dead_letter.key.generation + 1, ..dead_letter.key.clone() })
}

fn enter_in_ledger(
    tx: &Transaction<'_>,
    now: Timestamp,
    tenant: &TenantId,
    redrive: RedriveId,
    dead_letter: DeadLetterId,
    audit: &AuditEvent,
    result: &RedriveResult,
) -> Result<(), StoreError> {
    let (name, code, key) = match result {
        RedriveResult::Redriven { key } => ("redriven", None, Some(key)),
        RedriveResult::Refused(refusal) => ("refused", Some(refusal.code()), None),
        RedriveResult::Missing => ("missing", None, None),
    };
    tx.prepare_cached(include_str!("../sql/office/ledger_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                redrive.as_bytes(),
                dead_letter.as_bytes(),
                name,
                code,
                key.map(|key| *key.entry.as_bytes()),
                key.map(|key| key.generation),
                now.as_micros(),
                audit.id.as_bytes(),
            ])
        })
        .doing("enter a redrive in the ledger")?;
    Ok(())
}
