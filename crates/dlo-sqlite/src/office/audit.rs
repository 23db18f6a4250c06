//! The audit event of an act.

use dlo_core::{AuditEvent, Timestamp};
use dlo_ports::StoreError;
use rusqlite::{Transaction, params};

use crate::error::{Doing, invalid};

/// Saves an audit event in the transaction of its act (I-12).
pub(super) fn record(tx: &Transaction<'_>, now: Timestamp, audit: &AuditEvent) -> Result<(), StoreError> {
    let detail = serde_json::to_string(&audit.detail)
        .map_err(|error| invalid(format!("detail of act `{}` can't be written: {error}", audit.act)))?;
    tx.prepare_cached(include_str!("../sql/office/audit_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                audit.tenant.as_str(),
                audit.id.as_bytes(),
                now.as_micros(),
                audit.actor.name,
                audit.actor.strength.as_str(),
                audit.act,
                audit.target,
                audit.reason.as_ref().map(dlo_core::text::ActText::as_str),
                detail,
            ])
        })
        .doing("save an audit event")?;
    Ok(())
}
