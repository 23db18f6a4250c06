//! Attempts of a lineage.

use dlo_core::{Attempt, EntryKey, limits::MAX_ATTEMPTS_KEPT, text::Code};
use dlo_ports::StoreError;
use rusqlite::{Connection, params};

use crate::error::Doing;

const DOING: &str = "record an attempt";

/// Keeps an attempt, and of its generation the first and the newest.
pub(crate) fn record(tx: &Connection, key: &EntryKey, attempt: &Attempt) -> Result<(), StoreError> {
    tx.prepare_cached(include_str!("sql/attempt_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                key.tenant.as_str(),
                key.entry.as_bytes(),
                attempt.number,
                attempt.generation,
                attempt.started.as_micros(),
                attempt.finished.as_micros(),
                attempt.outcome.as_str(),
                attempt.class.map(dlo_core::Class::as_str),
                attempt.reason.as_ref().map(dlo_core::Reason::as_str),
                attempt.rule.as_ref().map(Code::as_str),
                attempt.phase.as_str(),
                attempt.http_status,
                attempt.provider_code.as_ref().map(Code::as_str),
                attempt.text.as_str(),
                attempt.charged,
                attempt.token.as_ref().map(dlo_core::Token::as_bytes),
                attempt.destination_version as i64,
            ])
        })
        .doing(DOING)?;
    // A generation can't have more attempts than the lineage has numbers.
    if attempt.number as usize > MAX_ATTEMPTS_KEPT {
        tx.prepare_cached(include_str!("sql/attempt_trim.sql"))
            .and_then(|mut statement| {
                statement.execute(params![
                    key.tenant.as_str(),
                    key.entry.as_bytes(),
                    attempt.generation,
                    MAX_ATTEMPTS_KEPT as i64
                ])
            })
            .doing(DOING)?;
    }
    Ok(())
}
