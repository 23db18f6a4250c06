//! Rows read as the verbs read them: what can't be read, and what one live row shows by itself.

use std::collections::BTreeSet;

use dlo_core::{dead_letter::PayloadSummary, invariant::check_entry, reason};
use dlo_ports::{StoreError, persisted::decode_envelope_view};
use rusqlite::Connection;

use super::{Found, entry_id, envelope_id, number, text};
use crate::{
    error::Doing,
    read::unreadable_dead_letters,
    rows::{EntryReader, entry_select},
};

const DOING: &str = "check rows";

/// Every live row, dead letter and envelope can be read; live rows keep their counters and claims in order.
pub(super) fn check(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    live(conn, found)?;
    for (key, column) in unreadable_dead_letters(conn, found.room())? {
        found.add("I-01", format!("dead letter of {key}: column `{column}` can't be read"));
    }
    envelopes(conn, found)
}

fn live(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    let mut statement = conn.prepare(entry_select!("ORDER BY e.seq")).doing(DOING)?;
    let mut rows = statement.query([]).doing(DOING)?;
    let mut reader = EntryReader::default();
    while let Some(row) = rows.next().doing(DOING)? {
        match reader.read(row) {
            Ok(entry) => {
                for breach in check_entry(&entry) {
                    if !found.add(breach.invariant, format!("{}: {}", entry.key, breach.what)) {
                        return Ok(());
                    }
                }
            }
            // Missing envelopes and claims have rules of their own.
            Err(unreadable) if matches!(unreadable.0, "envelope" | "incarnation") => {}
            Err(unreadable) => {
                let key = format!("{}/{}#{}", text(row, 1), entry_id(row, 2), number(row, 3));
                if !found.add("I-01", format!("{key}: column `{}` can't be read", unreadable.0)) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Envelopes that somebody still needs can be read, unless quarantine already says that they can't.
fn envelopes(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    let known = known_unreadable(conn)?;
    let mut statement = conn.prepare(include_str!("../sql/check/envelopes.sql")).doing(DOING)?;
    let mut rows = statement.query([]).doing(DOING)?;
    while let Some(row) = rows.next().doing(DOING)? {
        let readable = row.get_ref(4).is_ok_and(|meta| {
            let schema = u32::try_from(number(row, 3)).unwrap_or(0);
            let id = dlo_core::EnvelopeId::from_bytes(row.get(2).unwrap_or_default());
            let meta = meta.as_str().unwrap_or_default();
            decode_envelope_view(schema, meta, id, PayloadSummary::default()).is_ok()
        });
        if readable || known.contains(&number(row, 0)) {
            continue;
        }
        let name = format!("{}/{}", text(row, 1), envelope_id(row, 2));
        if !found.add("I-01", format!("envelope {name} can't be read (schema {})", number(row, 3))) {
            break;
        }
    }
    Ok(())
}

fn known_unreadable(conn: &Connection) -> Result<BTreeSet<i64>, StoreError> {
    let mut statement = conn.prepare("SELECT envelope_ref FROM dlo_dead_letter WHERE reason = ?1").doing(DOING)?;
    let refs = statement
        .query_map([reason::ENTRY_UNREADABLE.as_str()], |row| row.get(0))
        .and_then(Iterator::collect)
        .doing(DOING)?;
    Ok(refs)
}
