//! Figures of every destination. Nothing of history or quarantine is scanned: totals were counted with the changes.

use dlo_core::{DestinationName, TenantId, Timestamp, limits::MAX_PAGE};
use dlo_ports::{
    StoreError,
    store::{DeadLetterTotal, DestinationStats, Stats},
};
use rusqlite::{Connection, params};

use super::{
    dead_letters::reason,
    destinations::{depth, is_held, names, total},
};
use crate::{
    error::Doing,
    rows::{number, parsed},
    totals,
};

/// Depth, age and totals of every destination.
pub(crate) fn stats(conn: &Connection, now: Timestamp) -> Result<Stats, StoreError> {
    let mut destinations = Vec::new();
    let mut after = None;
    loop {
        let page = names(conn, None, after.as_ref(), MAX_PAGE)?;
        for (tenant, name) in &page {
            destinations.push(destination_stats(conn, now, tenant, name)?);
        }
        after = page.last().cloned();
        if page.len() < MAX_PAGE {
            break;
        }
    }
    Ok(Stats { now, destinations, dead_letters: dead_letter_totals(conn)? })
}

fn destination_stats(
    conn: &Connection,
    now: Timestamp,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<DestinationStats, StoreError> {
    let of = |total_name| total(conn, tenant.as_str(), name.as_str(), total_name);
    let oldest_due: Option<i64> = conn
        .prepare_cached(include_str!("../sql/read/oldest_due.sql"))
        .and_then(|mut statement| {
            statement.query_row(params![tenant.as_str(), name.as_str(), now.as_micros()], |row| row.get(0))
        })
        .doing("read the oldest due entry")?;
    Ok(DestinationStats {
        tenant: tenant.clone(),
        destination: name.clone(),
        depth: depth(conn, now, tenant, name)?,
        oldest_due: oldest_due.map(Timestamp::from_micros),
        held: is_held(conn, tenant, name)?,
        enqueued_total: of(totals::ENQUEUED)?,
        delivered_total: of(totals::DELIVERED)?,
        cancelled_total: of(totals::CANCELLED)?,
        failed_attempts_total: of(totals::FAILED_ATTEMPTS)?,
    })
}

fn dead_letter_totals(conn: &Connection) -> Result<Vec<DeadLetterTotal>, StoreError> {
    let mut statement =
        conn.prepare_cached(include_str!("../sql/read/dead_letter_totals.sql")).doing("read dead-letter totals")?;
    let mut rows = statement.query([]).doing("read dead-letter totals")?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().doing("read dead-letter totals")? {
        all.push(DeadLetterTotal {
            tenant: parsed(row, 0, "tenant")?,
            destination: parsed(row, 1, "destination")?,
            class: parsed(row, 2, "class")?,
            reason: reason(row, 3, "reason")?,
            total: number(row, 4, "value")?,
        });
    }
    // Classes have an order of their own, which is not the one of their names.
    all.sort();
    Ok(all)
}
