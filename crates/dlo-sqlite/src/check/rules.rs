//! One query for each thing that must not exist.

use dlo_ports::StoreError;
use rusqlite::{Connection, Row};

use super::{Found, audit_id, dead_letter_id, entry_id, envelope_id, number, redrive_id, text, token};
use crate::error::Doing;

/// A query that finds what breaks an invariant, and the sentence about a row of it.
pub(super) struct Rule {
    invariant: &'static str,
    pub(super) sql: &'static str,
    what: fn(&Row<'_>) -> String,
}

macro_rules! rule {
    ($invariant:literal, $file:literal, $what:expr) => {
        Rule { invariant: $invariant, sql: include_str!(concat!("../sql/check/", $file, ".sql")), what: $what }
    };
}

/// Key of a generation out of three columns from `first`.
fn key(row: &Row<'_>) -> String {
    format!("{}/{}#{}", text(row, 0), entry_id(row, 1), number(row, 2))
}

pub(super) const RULES: &[Rule] = &[
    rule!("I-01", "vanished_attempts", |row| {
        format!("entry {}/{} has attempts and is in no state: its rows vanished", text(row, 0), entry_id(row, 1))
    }),
    rule!("I-01", "vanished_generations", |row| {
        let key = format!("{}/{}", text(row, 0), entry_id(row, 2));
        format!("entry {key} was redriven from {} and its next generation vanished", dead_letter_id(row, 1))
    }),
    rule!("I-01", "live_and_ended", |row| {
        format!("{} lives although generation {} is {}", key(row), number(row, 3), text(row, 4))
    }),
    rule!("I-01", "history_not_last", |row| {
        format!("{} is {} and generation {} came after it", key(row), text(row, 3), number(row, 4))
    }),
    rule!("I-01", "envelope_missing", |row| format!("{} ({}) has no envelope", key(row), text(row, 3))),
    rule!("I-01", "envelope_refs", |row| {
        let name = format!("{}/{}", text(row, 0), envelope_id(row, 1));
        format!("envelope {name} counts {} uses and has {}", number(row, 2), number(row, 3))
    }),
    rule!("I-01", "totals", |row| {
        let name = format!("`{}` {} {}", text(row, 2), text(row, 3), text(row, 4));
        let name = name.trim_end();
        let of = format!("{}/{}", text(row, 0), text(row, 1));
        format!("total {name} of destination {of} is {} and {} rows are there", number(row, 5), number(row, 6))
    }),
    rule!("I-01", "conservation", |row| {
        let of = format!("{}/{}", text(row, 0), text(row, 1));
        format!("destination {of} got {} generations and {} are accounted for", number(row, 2), number(row, 3))
    }),
    rule!("I-01", "set_aside_and_claimed", |row| format!("{} is claimed and in manual review", key(row))),
    rule!("I-03", "ended_twice", |row| format!("{} is {} and dead_lettered", key(row), text(row, 3))),
    rule!("I-03", "claim_missing", |row| format!("{} is held by {}, which does not exist", key(row), token(row, 3))),
    rule!("I-07", "counters_shrunk", |row| {
        format!("{} counted more than its later generation {}", key(row), number(row, 3))
    }),
    rule!("I-11", "operation_keys", |row| {
        format!("{} and its later generation {} have different operation keys", key(row), number(row, 3))
    }),
    rule!("I-12", "ledger_without_audit", |row| {
        let item = format!("{} of {}/{}", redrive_id(row, 1), text(row, 0), dead_letter_id(row, 2));
        format!("redrive {item} names the audit event {}, which does not exist", audit_id(row, 3))
    }),
    rule!("I-14", "vanished_dead_letters", |row| {
        let name = format!("{}/{}", text(row, 0), dead_letter_id(row, 1));
        format!("dead letter {name} vanished: redrive {} is in the ledger", redrive_id(row, 2))
    }),
    rule!("I-15", "redriven_twice", |row| {
        format!("dead letter {}/{} was released {} times", text(row, 0), dead_letter_id(row, 1), number(row, 2))
    }),
    rule!("I-15", "redriven_state", |row| {
        let name = format!("{}/{}", text(row, 0), dead_letter_id(row, 1));
        format!("dead letter {name} is {}, and the ledger says otherwise", text(row, 2))
    }),
    rule!("I-12", "gaps_audit_event", |row| {
        format!("audit events {} to {} vanished", number(row, 0), number(row, 1))
    }),
    rule!("I-12", "gaps_redrive_item", |row| {
        format!("ledger rows {} to {} vanished", number(row, 0), number(row, 1))
    }),
    rule!("I-14", "gaps_dead_letter", |row| {
        format!("dead letters with sequence {} to {} vanished", number(row, 0), number(row, 1))
    }),
];

/// Runs every rule as long as there is room for a violation.
pub(super) fn check(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    for rule in RULES {
        let mut statement = conn.prepare(rule.sql).doing("check an invariant")?;
        let mut rows = statement.query([found.room() as i64]).doing("check an invariant")?;
        while let Some(row) = rows.next().doing("check an invariant")? {
            found.add(rule.invariant, (rule.what)(row));
        }
    }
    Ok(())
}
