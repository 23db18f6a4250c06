//! Payload bodies in their column: the seam where a codec that seals them stands.
//!
//! `key_id` names the codec key; the only one yet is [`PLAIN`]. A body under a key that this binary does not know is
//! unreadable, never guessed at.

use bytes::Bytes;
use dlo_core::{Envelope, Payload, dead_letter::Unreadable};
use dlo_ports::persisted::{self, StoredPayload};
use rusqlite::{Row, types::ValueRef};
use sha2::{Digest, Sha256};

/// Key id of a body that is stored as it is.
pub(crate) const PLAIN: &str = "none";

/// A payload as its columns hold it, but for its hash.
pub(crate) struct Stored<'a> {
    pub(crate) form: &'static str,
    pub(crate) size: i64,
    pub(crate) key_id: &'static str,
    pub(crate) bytes: Option<&'a [u8]>,
}

/// The columns of a payload.
pub(crate) fn store(payload: &Payload) -> Stored<'_> {
    Stored {
        form: persisted::payload_form(payload),
        size: i64::try_from(payload.size()).unwrap_or(i64::MAX),
        key_id: PLAIN,
        bytes: persisted::payload_bytes(payload).map(|bytes| &bytes[..]),
    }
}

/// Number of columns that [`read_envelope`] reads.
pub(crate) const COLUMNS: usize = 6;

/// Reads an envelope out of [`COLUMNS`] columns from `first`: meta schema, meta, payload form, sha256, key id, payload.
pub(crate) fn read_envelope(
    row: &Row<'_>,
    first: usize,
    id: dlo_core::EnvelopeId,
    tenant: dlo_core::TenantId,
) -> Result<Envelope, Unreadable> {
    use crate::rows::{number, text};
    let schema: u32 = number(row, first, "meta_schema").map_err(|_| Unreadable::Envelope)?;
    let meta = text(row, first + 1, "meta").map_err(|_| Unreadable::Envelope)?;
    let form = text(row, first + 2, "payload_form").map_err(|_| Unreadable::Payload)?;
    let bytes = open(row, first + 3)?;
    persisted::decode_envelope_meta(schema, meta, id, tenant, StoredPayload { form, bytes })
        .map_err(|_| Unreadable::Envelope)
}

/// The bytes of a body: columns sha256, key id, payload from `first`. A body that is not what was hashed when it was
/// saved is not given to anybody.
fn open(row: &Row<'_>, first: usize) -> Result<Option<Bytes>, Unreadable> {
    let column = |index| row.get_ref(first + index).map_err(|_| Unreadable::Payload);
    if column(1)? != ValueRef::Text(PLAIN.as_bytes()) {
        return Err(Unreadable::Payload);
    }
    match (column(0)?, column(2)?) {
        (ValueRef::Null, ValueRef::Null) => Ok(None),
        (ValueRef::Blob(hash), ValueRef::Blob(bytes)) if Sha256::digest(bytes)[..] == *hash => {
            Ok(Some(Bytes::copy_from_slice(bytes)))
        }
        _ => Err(Unreadable::Payload),
    }
}
