//! Checks of the invariants that a database alone can show (`dlo doctor`).
//!
//! Most are one query each that finds what must not exist ([`rules`]); the others read rows as the verbs do. The work
//! is linear in the tables with an index look-up per row, what is found is bounded, and a violation names ids and
//! states, never content.

mod claims;
mod rows;
mod rules;
#[cfg(test)]
mod tests;
mod unanswered;

use dlo_core::{AuditId, DeadLetterId, EntryId, EnvelopeId, RedriveId, Token, limits::MAX_PAGE};
use dlo_ports::{StoreError, store::Violation};
use rusqlite::{Connection, Row, types::ValueRef};

use crate::error::{Doing, bounded};

/// At most `limit` violations, in the order of the checks.
pub(crate) fn check(conn: &Connection, limit: usize) -> Result<Vec<Violation>, StoreError> {
    bounded("limit of violations", limit, 1, MAX_PAGE)?;
    let mut found = Found { limit, violations: Vec::new() };
    file(conn, &mut found)?;
    rules::check(conn, &mut found)?;
    claims::check(conn, &mut found)?;
    rows::check(conn, &mut found)?;
    unanswered::check(conn, &mut found)?;
    Ok(found.violations)
}

/// What was found so far.
struct Found {
    limit: usize,
    violations: Vec<Violation>,
}

impl Found {
    fn room(&self) -> usize {
        self.limit - self.violations.len()
    }

    /// Adds a violation; false when there is no room for another.
    fn add(&mut self, invariant: &'static str, what: String) -> bool {
        if self.room() > 0 {
            self.violations.push(Violation { invariant, what });
        }
        self.room() > 0
    }
}

/// SQLite's own check of pages, cells and constraints. It names tables and indexes, never content.
fn file(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    let mut statement = conn.prepare(&format!("PRAGMA quick_check({})", found.limit)).doing("check the file")?;
    let mut rows = statement.query([]).doing("check the file")?;
    while let Some(row) = rows.next().doing("check the file")? {
        let line = text(row, 0);
        if line != "ok" && !found.add("I-01", format!("the file is damaged: {line}")) {
            break;
        }
    }
    Ok(())
}

/// A text column of a row that may be damaged.
fn text(row: &Row<'_>, index: usize) -> String {
    match row.get_ref(index) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => "(unreadable)".to_owned(),
    }
}

/// An integer column of a row that may be damaged.
fn number(row: &Row<'_>, index: usize) -> i64 {
    row.get(index).unwrap_or(-1)
}

macro_rules! id_columns {
    ($($name:ident = $type:ident;)*) => {
        $(
            fn $name(row: &Row<'_>, index: usize) -> String {
                row.get(index).map_or_else(|_| "(unreadable id)".to_owned(), |id| $type::from_bytes(id).to_string())
            }
        )*
    };
}

id_columns! {
    entry_id = EntryId;
    envelope_id = EnvelopeId;
    dead_letter_id = DeadLetterId;
    redrive_id = RedriveId;
    audit_id = AuditId;
    token = Token;
}
