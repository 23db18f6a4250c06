//! Dead letters.

use dlo_core::{
    Class, DeadLetter, DeadLetterId, DeadLetterState, EntryId, EntryKey, EnvelopeId, Reason, TenantId, Timestamp,
    entry::Counters,
    fingerprint::Fingerprint,
    text::{Code, ErrorText},
};
use dlo_ports::{
    StoreError,
    store::{DeadLetterFilter, DeadLetterView, EnvelopeView, Page, PageRequest},
};
use rusqlite::{Connection, Row, params};

use super::{
    attempts::attempts,
    envelopes::view_of_row,
    scan::{Filling, Scan, before, takes},
};
use crate::{
    error::Doing,
    rows::{
        Unreadable, bytes16, flag, integer, last_failure, number, optional_bytes16, optional_text, optional_time,
        parsed, text, time,
    },
};

macro_rules! dead_letter_select {
    ($rest:literal) => {
        concat!(include_str!("../sql/read/dead_letter_select.sql"), $rest)
    };
}

const NEWEST_FIRST: &str = dead_letter_select!("WHERE d.seq < ?1 ORDER BY d.seq DESC");
/// The members of one group, by the index of groups: others are not looked at.
pub(super) const OF_A_GROUP: &str = dead_letter_select!(
    "WHERE d.seq < ?1 AND d.tenant = ?2 AND d.destination = ?3 AND d.fingerprint = ?4 ORDER BY d.seq DESC"
);

/// A dead letter with what only a redrive asks of it.
pub(crate) struct QuarantineRow {
    /// The record.
    pub(crate) dead_letter: DeadLetter,
    /// Row of its envelope.
    pub(crate) envelope_ref: i64,
    /// Absolute deadline of the entry.
    pub(crate) deliver_by: Option<Timestamp>,
    envelope: Option<EnvelopeView>,
}

/// One dead letter by id.
pub(crate) fn quarantine_row(
    conn: &Connection,
    tenant: &TenantId,
    id: DeadLetterId,
) -> Result<Option<QuarantineRow>, StoreError> {
    let mut statement =
        conn.prepare_cached(dead_letter_select!("WHERE d.tenant = ?1 AND d.id = ?2")).doing("read a dead letter")?;
    let mut rows = statement.query(params![tenant.as_str(), id.as_bytes()]).doing("read a dead letter")?;
    match rows.next().doing("read a dead letter")? {
        Some(row) => Ok(Some(quarantine(row)?)),
        None => Ok(None),
    }
}

/// One dead letter with its attempts.
pub(crate) fn dead_letter(
    conn: &Connection,
    tenant: &TenantId,
    id: DeadLetterId,
) -> Result<Option<DeadLetterView>, StoreError> {
    let Some(row) = quarantine_row(conn, tenant, id)? else { return Ok(None) };
    let attempts = attempts(conn, tenant, row.dead_letter.key.entry)?;
    Ok(Some(DeadLetterView { dead_letter: row.dead_letter, envelope: row.envelope, attempts }))
}

/// Dead letters, newest first.
pub(crate) fn dead_letters(
    conn: &Connection,
    filter: &DeadLetterFilter,
    request: PageRequest,
) -> Result<Page<DeadLetter>, StoreError> {
    let mut page = Filling::new(request)?;
    let mut statement;
    let group = (&filter.tenant, &filter.destination, &filter.fingerprint);
    let mut rows = if let (Some(tenant), Some(destination), Some(fingerprint)) = group {
        statement = conn.prepare_cached(OF_A_GROUP).doing("list dead letters")?;
        statement.query(params![before(request), tenant.as_str(), destination.as_str(), fingerprint])
    } else {
        statement = conn.prepare_cached(NEWEST_FIRST).doing("list dead letters")?;
        statement.query([before(request)])
    }
    .doing("list dead letters")?;
    while let Some(row) = rows.next().doing("list dead letters")? {
        let seq = number(row, 0, "seq")?;
        let take = || if takes_row(filter, row)? { Ok(Some(quarantine(row)?.dead_letter)) } else { Ok(None) };
        if page.look(seq, take)? == Scan::Stop {
            break;
        }
    }
    Ok(page.finish())
}

fn takes_row(filter: &DeadLetterFilter, row: &Row<'_>) -> Result<bool, Unreadable> {
    Ok(takes(filter.tenant.as_ref().map(TenantId::as_str), text(row, 1, "tenant")?)
        && takes(filter.destination.as_ref().map(dlo_core::DestinationName::as_str), text(row, 5, "destination")?)
        && takes(filter.class.map(Class::as_str), text(row, 8, "class")?)
        && takes(filter.reason.as_ref().map(Reason::as_str), text(row, 9, "reason")?)
        && takes(filter.state.map(DeadLetterState::as_str), text(row, 31, "state")?)
        && match filter.fingerprint {
            None => true,
            Some(wanted) => wanted == bytes16(row, 29, "fingerprint")?,
        })
}

fn quarantine(row: &Row<'_>) -> Result<QuarantineRow, Unreadable> {
    let view = view_of_row(row, 35);
    let envelope = view.as_ref();
    let of_envelope = |field: fn(&EnvelopeView) -> &Option<String>| envelope.and_then(|view| field(view).clone());
    // An id of zeroes stands for an envelope whose row is gone: quarantine is shown anyway.
    let envelope_id = EnvelopeId::from_bytes(optional_bytes16(row, 35, "envelope")?.unwrap_or_default());
    let dead_letter = DeadLetter {
        id: DeadLetterId::from_bytes(bytes16(row, 2, "id")?),
        seq: number(row, 0, "seq")?,
        key: EntryKey {
            tenant: parsed(row, 1, "tenant")?,
            entry: EntryId::from_bytes(bytes16(row, 3, "entry")?),
            generation: number(row, 4, "generation")?,
        },
        destination: parsed(row, 5, "destination")?,
        destination_version: number(row, 6, "destination_version")?,
        envelope: envelope_id,
        event_type: envelope.map(|view| view.event_type.clone()),
        source_event_id: of_envelope(|view| &view.source_event_id),
        correlation_id: of_envelope(|view| &view.correlation_id),
        audit_residue_id: of_envelope(|view| &view.audit_residue_id),
        payload: envelope.map(|view| view.payload.clone()).unwrap_or_default(),
        operation_key: parsed(row, 7, "operation_key")?,
        class: parsed(row, 8, "class")?,
        reason: reason(row, 9, "reason")?,
        code: reason(row, 10, "code")?,
        message: ErrorText::new(text(row, 11, "message")?),
        rule: optional_text(row, 12, "rule")?.map(Code::new),
        last_failure: last_failure(row, 13)?,
        first_failed: optional_time(row, 17, "first_failed")?,
        last_failed: optional_time(row, 18, "last_failed")?,
        first_claimed: optional_time(row, 19, "first_claimed")?,
        opened: time(row, 20, "opened")?,
        attempts: number(row, 21, "attempts")?,
        counters: counters(row, 22)?,
        unanswered: flag(row, 27, "unanswered")?,
        fingerprint: Fingerprint {
            version: number(row, 28, "fingerprint_version")?,
            hash: bytes16(row, 29, "fingerprint")?,
            template: ErrorText::new(text(row, 30, "template")?),
        },
        state: dead_letter_state(text(row, 31, "state")?)?,
    };
    Ok(QuarantineRow {
        dead_letter,
        envelope_ref: integer(row, 33, "envelope_ref")?,
        deliver_by: optional_time(row, 32, "deliver_by")?,
        envelope: view,
    })
}

/// Five counter columns.
pub(super) fn counters(row: &Row<'_>, first: usize) -> Result<Counters, Unreadable> {
    Ok(Counters {
        claims: number(row, first, "claims")?,
        failed: number(row, first + 1, "failed")?,
        crashed: number(row, first + 2, "crashed")?,
        deferred: number(row, first + 3, "deferred")?,
        interrupted: number(row, first + 4, "interrupted")?,
    })
}

/// A reason code.
pub(super) fn reason(row: &Row<'_>, index: usize, column: &'static str) -> Result<Reason, Unreadable> {
    Reason::new(text(row, index, column)?).map_err(|_| Unreadable(column))
}

fn dead_letter_state(name: &str) -> Result<DeadLetterState, Unreadable> {
    DeadLetterState::ALL.into_iter().find(|state| state.as_str() == name).ok_or(Unreadable("state"))
}

/// Dead letters that can't be read: key as far as it can be read, and the column.
pub(crate) fn unreadable_dead_letters(
    conn: &Connection,
    limit: usize,
) -> Result<Vec<(String, &'static str)>, StoreError> {
    let mut statement = conn.prepare(dead_letter_select!("ORDER BY d.seq")).doing("read dead letters")?;
    let mut rows = statement.query([]).doing("read dead letters")?;
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next().doing("read dead letters")? {
        if unreadable.len() == limit {
            break;
        }
        if let Err(Unreadable(column)) = quarantine(row) {
            let tenant = text(row, 1, "tenant").unwrap_or("(unreadable)");
            let entry = bytes16(row, 3, "entry").map(EntryId::from_bytes);
            let entry = entry.map_or_else(|_| "(unreadable)".to_owned(), |entry| entry.to_string());
            unreadable.push((format!("{tenant}/{entry}"), column));
        }
    }
    Ok(unreadable)
}
