//! One entry with everything that is known of it.

use dlo_core::{
    DeadLetterId, DestinationName, Entry, EntryId, EntryKey, EntryState, OperationKey, Receipt, TenantId, Timestamp,
    entry::LastFailure, text::Code,
};
use dlo_ports::{
    StoreError,
    store::{Ended, EntrySummary, EntryView, EnvelopeView},
};
use rusqlite::{Connection, Row, params};

use super::{
    attempts::{attempts, last_failure_of},
    dead_letters::counters,
    destinations::is_held,
    entries::{ended_state, status_of_ended},
    envelopes::{EventNames, envelope_view, view_of_history},
};
use crate::{
    error::Doing,
    rows::{
        EntryReader, Unreadable, entry_select, last_failure, number, optional_bytes16, optional_integer, optional_text,
        parsed, text, time,
    },
};

/// An ended generation, with what its row says beyond the view.
struct EndedRow {
    view: Ended,
    seq: u64,
    destination: DestinationName,
    operation_key: OperationKey,
    created: Timestamp,
    attempts: u32,
    /// What history keeps of the envelope.
    envelope: Option<EnvelopeView>,
    envelope_ref: Option<i64>,
    last_failure: Option<LastFailure>,
}

/// One entry with all generations, attempts and dead letters. The caller's read transaction makes it one snapshot, so
/// an entry that moves meanwhile is seen before or after its move, never missed (I-18).
pub(crate) fn entry(
    conn: &Connection,
    now: Timestamp,
    tenant: &TenantId,
    id: EntryId,
) -> Result<Option<EntryView>, StoreError> {
    let live = live_row(conn, tenant, id)?;
    let ended = ended_rows(conn, tenant, id)?;
    let view = match (live, ended.last()) {
        (Some((entry, envelope_ref)), _) => {
            let held = entry.state(now) == EntryState::Ready && is_held(conn, tenant, &entry.destination)?;
            EntryView {
                summary: live_summary(&entry, now, held, EventNames::of_envelope(conn, tenant.as_str(), envelope_ref)?),
                operation_key: entry.operation_key.clone(),
                envelope: envelope_view(conn, tenant, envelope_ref)?,
                last_failure: entry.progress.last_failure.clone(),
                live: Some(entry),
                ended: Vec::new(),
                attempts: Vec::new(),
            }
        }
        (None, Some(latest)) => EntryView {
            summary: ended_summary(tenant, id, latest, latest_event(conn, tenant, latest)?),
            operation_key: latest.operation_key.clone(),
            envelope: ended_envelope(conn, tenant, &ended)?,
            last_failure: latest.last_failure.clone(),
            live: None,
            ended: Vec::new(),
            attempts: Vec::new(),
        },
        (None, None) => return Ok(None),
    };
    Ok(Some(EntryView {
        ended: ended.into_iter().map(|row| row.view).collect(),
        attempts: attempts(conn, tenant, id)?,
        ..view
    }))
}

fn live_row(conn: &Connection, tenant: &TenantId, id: EntryId) -> Result<Option<(Entry, i64)>, StoreError> {
    let mut statement =
        conn.prepare_cached(entry_select!("WHERE e.tenant = ?1 AND e.entry = ?2")).doing("read an entry")?;
    let mut rows = statement.query(params![tenant.as_str(), id.as_bytes()]).doing("read an entry")?;
    let Some(row) = rows.next().doing("read an entry")? else { return Ok(None) };
    let entry = EntryReader::default().read(row)?;
    let envelope_ref = conn
        .prepare_cached("SELECT envelope_ref FROM dlo_entry WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row([entry.seq as i64], |row| row.get(0)))
        .doing("read an entry")?;
    Ok(Some((entry, envelope_ref)))
}

fn ended_rows(conn: &Connection, tenant: &TenantId, id: EntryId) -> Result<Vec<EndedRow>, StoreError> {
    let mut statement = conn.prepare_cached(include_str!("../sql/read/ended.sql")).doing("read ended generations")?;
    let mut rows = statement.query(params![tenant.as_str(), id.as_bytes()]).doing("read ended generations")?;
    let mut ended = Vec::new();
    while let Some(row) = rows.next().doing("read ended generations")? {
        let mut row = ended_row(row)?;
        if row.view.dead_letter.is_none() && row.attempts > 0 {
            row.last_failure = last_failure_of(conn, tenant.as_str(), id.as_bytes(), row.view.generation)?;
        }
        ended.push(row);
    }
    Ok(ended)
}

fn ended_row(row: &Row<'_>) -> Result<EndedRow, Unreadable> {
    let state = ended_state(text(row, 1, "state")?)?;
    let receipt_kind = optional_text(row, 3, "receipt_kind")?.map(Code::new);
    let receipt_id = optional_text(row, 4, "receipt_id")?.map(Code::new);
    let envelope_ref = optional_integer(row, 23, "envelope_ref")?;
    Ok(EndedRow {
        view: Ended {
            generation: number(row, 0, "generation")?,
            state,
            at: time(row, 2, "ended")?,
            receipt: receipt_kind.map(|kind| Receipt { kind, id: receipt_id }),
            dead_letter: optional_bytes16(row, 5, "id")?.map(DeadLetterId::from_bytes),
            counters: counters(row, 6)?,
        },
        seq: number(row, 11, "seq")?,
        destination: parsed(row, 12, "destination")?,
        operation_key: parsed(row, 13, "operation_key")?,
        created: time(row, 14, "created")?,
        attempts: number(row, 15, "attempts")?,
        envelope: if envelope_ref.is_none() { Some(view_of_history(row, 16)?) } else { None },
        envelope_ref,
        last_failure: last_failure(row, 24)?,
    })
}

/// The whole envelope as long as quarantine keeps it, else what history keeps.
fn ended_envelope(
    conn: &Connection,
    tenant: &TenantId,
    ended: &[EndedRow],
) -> Result<Option<EnvelopeView>, StoreError> {
    let kept = ended.iter().rev().find_map(|row| row.envelope_ref);
    let whole = kept.map(|envelope_ref| envelope_view(conn, tenant, envelope_ref)).transpose()?.flatten();
    Ok(whole.or_else(|| ended.last().and_then(|latest| latest.envelope.clone())))
}

/// What names the event of an ended generation, as a list says it: by its own row.
fn latest_event(conn: &Connection, tenant: &TenantId, latest: &EndedRow) -> Result<EventNames, StoreError> {
    match (latest.envelope_ref, &latest.envelope) {
        (Some(envelope_ref), _) => EventNames::of_envelope(conn, tenant.as_str(), envelope_ref),
        (None, Some(kept)) => Ok(EventNames {
            event_type: Some(kept.event_type.clone()).filter(|text| !text.is_empty()),
            source_event_id: kept.source_event_id.clone(),
        }),
        (None, None) => Ok(EventNames::default()),
    }
}

fn live_summary(entry: &Entry, now: Timestamp, held: bool, event: EventNames) -> EntrySummary {
    let state = entry.state(now);
    EntrySummary {
        key: entry.key.clone(),
        seq: entry.seq,
        destination: entry.destination.clone(),
        state,
        held,
        status: Some(entry.status),
        created: entry.created,
        due: (state == EntryState::Waiting).then_some(entry.due),
        attempts: entry.progress.attempts,
        last_failure: entry.progress.last_failure.as_ref().map(|last| (last.class, last.reason.clone())),
        event_type: event.event_type,
        source_event_id: event.source_event_id,
    }
}

fn ended_summary(tenant: &TenantId, entry: EntryId, latest: &EndedRow, event: EventNames) -> EntrySummary {
    let state = latest.view.state;
    EntrySummary {
        key: EntryKey { tenant: tenant.clone(), entry, generation: latest.view.generation },
        seq: latest.seq,
        destination: latest.destination.clone(),
        state,
        held: false,
        status: status_of_ended(state).flatten(),
        created: latest.created,
        due: None,
        attempts: latest.attempts,
        last_failure: latest.last_failure.as_ref().map(|last| (last.class, last.reason.clone())),
        event_type: event.event_type,
        source_event_id: event.source_event_id,
    }
}
