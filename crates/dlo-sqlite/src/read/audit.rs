//! Audit events and the ledger of redrives.

use dlo_core::{AuditId, DeadLetterId, EntryId, EntryKey, RedriveId, TenantId, text::ActText};
use dlo_ports::{
    StoreError,
    store::{AuditView, LedgerRow, Page, PageRequest},
};
use rusqlite::{Connection, Row, params};

use super::scan::{Filling, Scan, before, takes};
use crate::{
    error::Doing,
    rows::{Unreadable, bytes16, number, optional_bytes16, optional_integer, optional_text, parsed, text, time},
};

/// Audit events, newest first.
pub(crate) fn audit_events(
    conn: &Connection,
    tenant: Option<&TenantId>,
    request: PageRequest,
) -> Result<Page<AuditView>, StoreError> {
    let mut page = Filling::new(request)?;
    let mut statement = conn.prepare_cached(include_str!("../sql/read/audit_events.sql")).doing("list audit events")?;
    let mut rows = statement.query([before(request)]).doing("list audit events")?;
    while let Some(row) = rows.next().doing("list audit events")? {
        let take = || {
            if takes(tenant.map(TenantId::as_str), text(row, 2, "tenant")?) {
                Ok(Some(audit_event(row)?))
            } else {
                Ok(None)
            }
        };
        if page.look(number(row, 0, "seq")?, take)? == Scan::Stop {
            break;
        }
    }
    Ok(page.finish())
}

fn audit_event(row: &Row<'_>) -> Result<AuditView, Unreadable> {
    Ok(AuditView {
        seq: number(row, 0, "seq")?,
        id: AuditId::from_bytes(bytes16(row, 1, "id")?),
        tenant: parsed(row, 2, "tenant")?,
        at: time(row, 3, "at")?,
        actor: text(row, 4, "actor")?.to_owned(),
        strength: text(row, 5, "strength")?.to_owned(),
        act: text(row, 6, "act")?.to_owned(),
        target: text(row, 7, "target")?.to_owned(),
        reason: optional_text(row, 8, "reason")?.map(ActText::new),
        detail_json: text(row, 9, "detail")?.to_owned(),
    })
}

/// The ledger of redrives of a tenant, newest first.
pub(crate) fn redrive_ledger(
    conn: &Connection,
    tenant: &TenantId,
    request: PageRequest,
) -> Result<Page<LedgerRow>, StoreError> {
    let mut page = Filling::new(request)?;
    let mut statement = conn.prepare_cached(include_str!("../sql/read/redrive_ledger.sql")).doing("list redrives")?;
    let mut rows = statement.query(params![before(request)]).doing("list redrives")?;
    while let Some(row) = rows.next().doing("list redrives")? {
        let take = || {
            if takes(Some(tenant.as_str()), text(row, 1, "tenant")?) {
                Ok(Some(ledger_row(row, tenant)?))
            } else {
                Ok(None)
            }
        };
        if page.look(number(row, 0, "seq")?, take)? == Scan::Stop {
            break;
        }
    }
    Ok(page.finish())
}

fn ledger_row(row: &Row<'_>, tenant: &TenantId) -> Result<LedgerRow, Unreadable> {
    let entry = optional_bytes16(row, 6, "entry")?.map(EntryId::from_bytes);
    let generation = optional_integer(row, 7, "generation")?.map(u32::try_from).transpose();
    let generation = generation.map_err(|_| Unreadable("generation"))?;
    Ok(LedgerRow {
        seq: number(row, 0, "seq")?,
        redrive: RedriveId::from_bytes(bytes16(row, 2, "redrive")?),
        dead_letter: DeadLetterId::from_bytes(bytes16(row, 3, "dead_letter")?),
        result: text(row, 4, "result")?.to_owned(),
        code: optional_text(row, 5, "code")?.map(str::to_owned),
        key: entry.zip(generation).map(|(entry, generation)| EntryKey { tenant: tenant.clone(), entry, generation }),
        at: time(row, 8, "at")?,
        audit: AuditId::from_bytes(bytes16(row, 9, "audit")?),
    })
}
