//! Groups of dead letters by fingerprint: a query, until folded totals replace it.

use dlo_core::{Class, DeadLetterState, Reason, TenantId, fingerprint::Fingerprint, limits::MAX_PAGE, text::ErrorText};
use dlo_ports::{
    StoreError,
    store::{DeadLetterFilter, Group},
};
use rusqlite::{Connection, Row, params};

use super::dead_letters::reason;
use crate::{
    error::{Doing, bounded},
    rows::{Unreadable, bytes16, number, parsed, text, time},
};

/// Groups, most numerous first, ties by (tenant, destination, fingerprint).
pub(crate) fn groups(conn: &Connection, filter: &DeadLetterFilter, limit: usize) -> Result<Vec<Group>, StoreError> {
    bounded("limit of groups", limit, 1, MAX_PAGE)?;
    let mut statement = conn.prepare_cached(include_str!("../sql/read/groups.sql")).doing("group dead letters")?;
    let mut rows = statement
        .query(params![
            filter.tenant.as_ref().map(TenantId::as_str),
            filter.destination.as_ref().map(dlo_core::DestinationName::as_str),
            filter.class.map(Class::as_str),
            filter.reason.as_ref().map(Reason::as_str),
            filter.state.map(DeadLetterState::as_str),
            limit as i64,
            filter.fingerprint,
        ])
        .doing("group dead letters")?;
    let mut groups = Vec::new();
    while let Some(row) = rows.next().doing("group dead letters")? {
        groups.push(group(row)?);
    }
    Ok(groups)
}

fn group(row: &Row<'_>) -> Result<Group, Unreadable> {
    Ok(Group {
        tenant: parsed(row, 0, "tenant")?,
        destination: parsed(row, 1, "destination")?,
        fingerprint: Fingerprint {
            version: number(row, 2, "fingerprint_version")?,
            hash: bytes16(row, 3, "fingerprint")?,
            template: ErrorText::new(text(row, 4, "template")?),
        },
        class: parsed(row, 5, "class")?,
        reason: reason(row, 6, "reason")?,
        count: number(row, 7, "count")?,
        open: number(row, 8, "open")?,
        first: time(row, 9, "opened")?,
        last: time(row, 10, "opened")?,
    })
}
