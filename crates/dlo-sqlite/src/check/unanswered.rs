//! I-10: nothing waits for a blind repetition of a harmful effect.

use dlo_core::{DestinationName, Duplicates, TenantId, limits::MAX_PAGE};
use dlo_ports::{StoreError, persisted::decode_destination};
use rusqlite::{Connection, params};

use super::{Found, entry_id, number, text};
use crate::{catalog, error::Doing, read::destination_names};

const DOING: &str = "check unanswered sends";

/// An unclaimed live row whose last send has no answer waits at a destination that declared duplicates harmful all the
/// time since. Where the declaration was another one at that time, the row is legal and judged when it is claimed.
pub(super) fn check(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let names = destination_names(conn, None, after.as_ref(), MAX_PAGE)?;
        for (tenant, name) in &names {
            // What can't be read is another check's.
            let Ok(Some(destination)) = catalog::latest(conn, tenant, name) else { continue };
            if destination.spec.duplicates == Duplicates::Harmful {
                check_destination(conn, found, tenant, name)?;
            }
        }
        if names.len() < MAX_PAGE || found.room() == 0 {
            return Ok(());
        }
        after = names.last().cloned();
    }
}

fn check_destination(
    conn: &Connection,
    found: &mut Found,
    tenant: &TenantId,
    name: &DestinationName,
) -> Result<(), StoreError> {
    let mut statement = conn.prepare_cached(include_str!("../sql/check/unanswered.sql")).doing(DOING)?;
    let mut rows = statement.query(params![tenant.as_str(), name.as_str(), found.room() as i64]).doing(DOING)?;
    while let Some(row) = rows.next().doing(DOING)? {
        if was_harmless(conn, tenant, name, number(row, 3))? {
            continue;
        }
        let key = format!("{}/{}#{}", text(row, 0), entry_id(row, 1), number(row, 2));
        found.add("I-10", format!("{key} has an unanswered send and waits at {name}, where duplicates are harmful"));
    }
    Ok(())
}

/// Whether any version since `version` declared something else than harmful.
fn was_harmless(
    conn: &Connection,
    tenant: &TenantId,
    name: &DestinationName,
    version: i64,
) -> Result<bool, StoreError> {
    let mut statement = conn.prepare_cached(include_str!("../sql/check/versions_since.sql")).doing(DOING)?;
    let mut rows = statement.query(params![tenant.as_str(), name.as_str(), version]).doing(DOING)?;
    while let Some(row) = rows.next().doing(DOING)? {
        let schema = u32::try_from(number(row, 0)).unwrap_or(0);
        let spec = decode_destination(schema, &text(row, 1), tenant.clone(), name.clone());
        if spec.is_ok_and(|spec| spec.duplicates != Duplicates::Harmful) {
            return Ok(true);
        }
    }
    Ok(false)
}
