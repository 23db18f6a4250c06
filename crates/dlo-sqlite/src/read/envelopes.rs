//! What is shown of envelopes, without their payload bytes (I-13).

use dlo_core::{EnvelopeId, TenantId, dead_letter::PayloadSummary};
use dlo_ports::{StoreError, persisted::decode_envelope_view, store::EnvelopeView};
use rusqlite::{Connection, Row, params, types::ValueRef};

use crate::{
    error::Doing,
    payload::read_envelope,
    rows::{Unreadable, bytes16, number, optional_text, text},
};

/// The view of an envelope by its row; `None` if it is gone or can't be read.
pub(super) fn envelope_view(
    conn: &Connection,
    tenant: &TenantId,
    envelope_ref: i64,
) -> Result<Option<EnvelopeView>, StoreError> {
    let mut statement = conn.prepare_cached(include_str!("../sql/read/envelope_view.sql")).doing("read an envelope")?;
    let mut rows = statement.query(params![envelope_ref, tenant.as_str()]).doing("read an envelope")?;
    let row = rows.next().doing("read an envelope")?;
    Ok(row.and_then(|row| view_of_row(row, 0)))
}

/// What names an event: its CloudEvents `type`, and the `id` that the producer gave it.
#[derive(Default)]
pub(super) struct EventNames {
    pub(super) event_type: Option<String>,
    pub(super) source_event_id: Option<String>,
}

impl EventNames {
    /// Out of the row of an envelope; nothing if that is gone.
    pub(super) fn of_envelope(conn: &Connection, tenant: &str, envelope_ref: i64) -> Result<Self, StoreError> {
        let mut statement = conn.prepare_cached(include_str!("../sql/read/event.sql")).doing("read an envelope")?;
        let mut rows = statement.query(params![envelope_ref, tenant]).doing("read an envelope")?;
        let row = rows.next().doing("read an envelope")?;
        Ok(row.map(|row| Self::of_row(row, 0)).unwrap_or_default())
    }

    /// Out of two columns: event_type, source_event_id. What can't be read is absent, so that its entry is listed still.
    pub(super) fn of_row(row: &Row<'_>, first: usize) -> Self {
        let name = |index, column| optional_text(row, index, column).ok().flatten().map(str::to_owned);
        Self {
            // History says '' of an envelope that was gone when its entry ended.
            event_type: name(first, "event_type").filter(|text| !text.is_empty()),
            source_event_id: name(first + 1, "source_event_id"),
        }
    }
}

/// The view out of five columns: envelope, meta_schema, meta, payload_size, payload_sha256; `None` if it is unreadable.
pub(super) fn view_of_row(row: &Row<'_>, first: usize) -> Option<EnvelopeView> {
    let read = || -> Result<_, Unreadable> {
        let id = EnvelopeId::from_bytes(bytes16(row, first, "envelope")?);
        let schema = number(row, first + 1, "meta_schema")?;
        let summary = PayloadSummary {
            content_type: None,
            size: number(row, first + 3, "payload_size")?,
            sha256: sha256(row, first + 4)?,
        };
        Ok((schema, text(row, first + 2, "meta")?, id, summary))
    };
    let (schema, meta, id, summary) = read().ok()?;
    decode_envelope_view(schema, meta, id, summary).ok()
}

/// What history keeps of an envelope whose body is gone, out of seven columns: envelope, event_type, source_event_id,
/// correlation_id, content_type, payload_size, payload_sha256.
pub(super) fn view_of_history(row: &Row<'_>, first: usize) -> Result<EnvelopeView, Unreadable> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(EnvelopeView {
        id: EnvelopeId::from_bytes(bytes16(row, first, "envelope")?),
        event_type: text(row, first + 1, "event_type")?.to_owned(),
        source: None,
        source_event_id: owned(optional_text(row, first + 2, "source_event_id")?),
        subject: None,
        occurred: None,
        correlation_id: owned(optional_text(row, first + 3, "correlation_id")?),
        audit_residue_id: None,
        payload: PayloadSummary {
            content_type: owned(optional_text(row, first + 4, "content_type")?),
            size: number(row, first + 5, "payload_size")?,
            sha256: sha256(row, first + 6)?,
        },
    })
}

fn sha256(row: &Row<'_>, index: usize) -> Result<Option<[u8; 32]>, Unreadable> {
    match row.get_ref(index) {
        Ok(ValueRef::Null) => Ok(None),
        Ok(ValueRef::Blob(bytes)) => bytes.try_into().map(Some).map_err(|_| Unreadable("payload_sha256")),
        _ => Err(Unreadable("payload_sha256")),
    }
}

/// Whether an envelope, its payload included, could be given to an emitter.
pub(crate) fn envelope_is_readable(
    conn: &Connection,
    tenant: &TenantId,
    envelope_ref: i64,
) -> Result<bool, StoreError> {
    let mut statement =
        conn.prepare_cached(include_str!("../sql/read/envelope_whole.sql")).doing("read an envelope")?;
    let mut rows = statement.query(params![envelope_ref, tenant.as_str()]).doing("read an envelope")?;
    let Some(row) = rows.next().doing("read an envelope")? else { return Ok(false) };
    let Ok(id) = bytes16(row, 0, "envelope") else { return Ok(false) };
    Ok(read_envelope(row, 1, EnvelopeId::from_bytes(id), tenant.clone()).is_ok())
}
