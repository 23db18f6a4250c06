//! Recorded attempts of a lineage.

use dlo_core::{
    Attempt, Class, EntryId, Phase, Reason, TenantId, Token,
    entry::LastFailure,
    text::{Code, ErrorText},
};
use dlo_ports::StoreError;
use rusqlite::{Connection, Row, params};

use crate::{
    error::Doing,
    rows::{Unreadable, flag, last_failure, number, optional_bytes16, optional_integer, optional_text, text, time},
};

/// Attempts over the lineage, oldest first.
pub(super) fn attempts(conn: &Connection, tenant: &TenantId, entry: EntryId) -> Result<Vec<Attempt>, StoreError> {
    let mut statement = conn.prepare_cached(include_str!("../sql/read/attempts.sql")).doing("read attempts")?;
    let mut rows = statement.query(params![tenant.as_str(), entry.as_bytes()]).doing("read attempts")?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next().doing("read attempts")? {
        attempts.push(attempt(row)?);
    }
    Ok(attempts)
}

/// The latest failure of one generation: history does not repeat what the attempts say.
pub(super) fn last_failure_of(
    conn: &Connection,
    tenant: &str,
    entry: &[u8; 16],
    generation: u32,
) -> Result<Option<LastFailure>, StoreError> {
    let mut statement =
        conn.prepare_cached(include_str!("../sql/read/last_failure.sql")).doing("read the last failure")?;
    let mut rows = statement.query(params![tenant, entry, generation]).doing("read the last failure")?;
    match rows.next().doing("read the last failure")? {
        Some(row) => Ok(last_failure(row, 0)?),
        None => Ok(None),
    }
}

fn attempt(row: &Row<'_>) -> Result<Attempt, Unreadable> {
    let code =
        |index, column| -> Result<Option<Code>, Unreadable> { Ok(optional_text(row, index, column)?.map(Code::new)) };
    let class =
        optional_text(row, 5, "class")?.map(str::parse::<Class>).transpose().map_err(|_| Unreadable("class"))?;
    let reason = optional_text(row, 6, "reason")?.map(Reason::new).transpose().map_err(|_| Unreadable("reason"))?;
    let http_status = optional_integer(row, 9, "http_status")?.map(u16::try_from);
    Ok(Attempt {
        number: number(row, 0, "number")?,
        generation: number(row, 1, "generation")?,
        started: time(row, 2, "started")?,
        finished: time(row, 3, "finished")?,
        outcome: Code::new(text(row, 4, "outcome")?),
        class,
        reason,
        rule: code(7, "rule")?,
        phase: phase(text(row, 8, "phase")?)?,
        http_status: http_status.transpose().map_err(|_| Unreadable("http_status"))?,
        provider_code: code(10, "provider_code")?,
        text: ErrorText::new(text(row, 11, "text")?),
        charged: flag(row, 12, "charged")?,
        token: optional_bytes16(row, 13, "token")?.map(Token::from_bytes),
        destination_version: number(row, 14, "destination_version")?,
    })
}

fn phase(name: &str) -> Result<Phase, Unreadable> {
    [Phase::NotSent, Phase::Sent, Phase::Answered, Phase::Unknown]
        .into_iter()
        .find(|phase| phase.as_str() == name)
        .ok_or(Unreadable("phase"))
}
