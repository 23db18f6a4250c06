//! Rows of `dlo_entry` as domain values, for every verb that reads them.

use core::str::FromStr;

use dlo_core::{
    Class, Counters, DestinationName, Entry, EntryId, EntryKey, EnvelopeId, Incarnation, Lane, OperationKey, Reason,
    Status, TenantId, Timestamp, Token,
    entry::{Claim, LastFailure, Progress},
    text::{Code, ErrorText},
};
use dlo_ports::{StoreError, StoreErrorKind};
use rusqlite::{Row, types::ValueRef};

/// Columns and joins of an entry in the order that [`EntryReader`] reads them; a `WHERE` over `e` goes behind it.
macro_rules! entry_select {
    ($rest:literal) => {
        concat!(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/entry_select.sql")), $rest)
    };
}
pub(crate) use entry_select;

/// Number of columns of [`entry_select!`]: where further ones begin.
pub(crate) const ENTRY_COLUMNS: usize = 41;

/// A column of a row holds what its schema does not allow. Names the column, never its content (I-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(pub(crate) &'static str);

impl From<Unreadable> for StoreError {
    fn from(Unreadable(column): Unreadable) -> Self {
        Self::new(
            StoreErrorKind::Corrupt,
            format!("column `{column}` of a stored row can't be read; run `dlo doctor` to find the row"),
        )
    }
}

/// Reads entries. Remembers the last tenant and destination, because the rows of a page share them.
#[derive(Default)]
pub(crate) struct EntryReader {
    tenant: Option<TenantId>,
    destination: Option<DestinationName>,
}

impl EntryReader {
    /// The entry of a row of [`entry_select!`].
    pub(crate) fn read(&mut self, row: &Row<'_>) -> Result<Entry, Unreadable> {
        let counters = |first: usize| -> Result<Counters, Unreadable> {
            Ok(Counters {
                claims: number(row, first, "claims")?,
                failed: number(row, first + 1, "failed")?,
                crashed: number(row, first + 2, "crashed")?,
                deferred: number(row, first + 3, "deferred")?,
                interrupted: number(row, first + 4, "interrupted")?,
            })
        };
        let key = self.read_key(row)?;
        Ok(Entry {
            key,
            seq: number(row, 0, "seq")?,
            envelope: EnvelopeId::from_bytes(bytes16(row, 34, "envelope")?),
            destination: self.read_destination(row)?,
            operation_key: parsed::<OperationKey>(row, 5, "operation_key")?,
            created: time(row, 6, "created")?,
            updated: time(row, 7, "updated")?,
            not_before: optional_time(row, 8, "not_before")?,
            deliver_by: optional_time(row, 9, "deliver_by")?,
            lane: Lane::from_number(integer(row, 10, "lane")?).ok_or(Unreadable("lane"))?,
            due: time(row, 11, "due")?,
            status: status(text(row, 12, "status")?)?,
            manual_review: flag(row, 13, "manual_review")?,
            version: number(row, 14, "version")?,
            first_claimed: optional_time(row, 26, "first_claimed")?,
            baseline: counters(20)?,
            progress: Progress {
                counters: counters(15)?,
                attempts: number(row, 25, "attempts")?,
                first_failed: optional_time(row, 27, "first_failed")?,
                last_failed: optional_time(row, 28, "last_failed")?,
                last_failure: last_failure(row, 29)?,
                unanswered: flag(row, 33, "unanswered")?,
            },
            claim: claim(row)?,
        })
    }

    /// The key alone, of a row that may be unreadable otherwise.
    pub(crate) fn read_key(&mut self, row: &Row<'_>) -> Result<EntryKey, Unreadable> {
        let name = text(row, 1, "tenant")?;
        let tenant = match &self.tenant {
            Some(tenant) if tenant.as_str() == name => tenant.clone(),
            _ => self.tenant.insert(TenantId::new(name).map_err(|_| Unreadable("tenant"))?).clone(),
        };
        Ok(EntryKey {
            tenant,
            entry: EntryId::from_bytes(bytes16(row, 2, "entry")?),
            generation: number(row, 3, "generation")?,
        })
    }

    fn read_destination(&mut self, row: &Row<'_>) -> Result<DestinationName, Unreadable> {
        let name = text(row, 4, "destination")?;
        match &self.destination {
            Some(destination) if destination.as_str() == name => Ok(destination.clone()),
            _ => {
                let read = DestinationName::new(name).map_err(|_| Unreadable("destination"))?;
                Ok(self.destination.insert(read).clone())
            }
        }
    }
}

fn claim(row: &Row<'_>) -> Result<Option<Claim>, Unreadable> {
    let Some(token) = optional_bytes16(row, 35, "claim_token")? else { return Ok(None) };
    Ok(Some(Claim {
        token: Token::from_bytes(token),
        send_mark: flag(row, 36, "send_mark")?,
        incarnation: Incarnation::from_bytes(bytes16(row, 37, "incarnation")?),
        claimed: time(row, 38, "claimed")?,
        deadline: time(row, 39, "deadline")?,
        sole_suspect: flag(row, 40, "sole_suspect")?,
    }))
}

/// The last failure out of four columns: class, reason, provider code, text.
pub(crate) fn last_failure(row: &Row<'_>, first: usize) -> Result<Option<LastFailure>, Unreadable> {
    let Some(class) = optional_text(row, first, "last_class")? else { return Ok(None) };
    Ok(Some(LastFailure {
        class: Class::from_str(class).map_err(|_| Unreadable("last_class"))?,
        reason: Reason::new(text(row, first + 1, "last_reason")?).map_err(|_| Unreadable("last_reason"))?,
        provider_code: optional_text(row, first + 2, "last_provider_code")?.map(Code::new),
        text: ErrorText::new(optional_text(row, first + 3, "last_text")?.unwrap_or_default()),
    }))
}

fn status(name: &str) -> Result<Status, Unreadable> {
    Status::ALL.into_iter().find(|status| status.as_str() == name).ok_or(Unreadable("status"))
}

fn value<'a>(row: &'a Row<'_>, index: usize, column: &'static str) -> Result<ValueRef<'a>, Unreadable> {
    row.get_ref(index).map_err(|_| Unreadable(column))
}

/// An integer column.
pub(crate) fn integer(row: &Row<'_>, index: usize, column: &'static str) -> Result<i64, Unreadable> {
    optional_integer(row, index, column)?.ok_or(Unreadable(column))
}

/// An integer column that may be null.
pub(crate) fn optional_integer(row: &Row<'_>, index: usize, column: &'static str) -> Result<Option<i64>, Unreadable> {
    match value(row, index, column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Err(Unreadable(column)),
    }
}

/// An integer column in the range of `N`.
pub(crate) fn number<N: TryFrom<i64>>(row: &Row<'_>, index: usize, column: &'static str) -> Result<N, Unreadable> {
    N::try_from(integer(row, index, column)?).map_err(|_| Unreadable(column))
}

/// A 0/1 column.
pub(crate) fn flag(row: &Row<'_>, index: usize, column: &'static str) -> Result<bool, Unreadable> {
    match integer(row, index, column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Unreadable(column)),
    }
}

/// A time column.
pub(crate) fn time(row: &Row<'_>, index: usize, column: &'static str) -> Result<Timestamp, Unreadable> {
    integer(row, index, column).map(Timestamp::from_micros)
}

/// A time column that may be null.
pub(crate) fn optional_time(
    row: &Row<'_>,
    index: usize,
    column: &'static str,
) -> Result<Option<Timestamp>, Unreadable> {
    Ok(optional_integer(row, index, column)?.map(Timestamp::from_micros))
}

/// A text column.
pub(crate) fn text<'a>(row: &'a Row<'_>, index: usize, column: &'static str) -> Result<&'a str, Unreadable> {
    optional_text(row, index, column)?.ok_or(Unreadable(column))
}

/// A text column that may be null.
pub(crate) fn optional_text<'a>(
    row: &'a Row<'_>,
    index: usize,
    column: &'static str,
) -> Result<Option<&'a str>, Unreadable> {
    match value(row, index, column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => core::str::from_utf8(bytes).map(Some).map_err(|_| Unreadable(column)),
        _ => Err(Unreadable(column)),
    }
}

/// A text column that is a name, key or code.
pub(crate) fn parsed<T: FromStr>(row: &Row<'_>, index: usize, column: &'static str) -> Result<T, Unreadable> {
    text(row, index, column)?.parse().map_err(|_| Unreadable(column))
}

/// A column of 16 bytes: an id.
pub(crate) fn bytes16(row: &Row<'_>, index: usize, column: &'static str) -> Result<[u8; 16], Unreadable> {
    optional_bytes16(row, index, column)?.ok_or(Unreadable(column))
}

/// A column of 16 bytes that may be null.
pub(crate) fn optional_bytes16(
    row: &Row<'_>,
    index: usize,
    column: &'static str,
) -> Result<Option<[u8; 16]>, Unreadable> {
    match value(row, index, column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => bytes.try_into().map(Some).map_err(|_| Unreadable(column)),
        _ => Err(Unreadable(column)),
    }
}
