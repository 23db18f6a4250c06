//! Claims against the rows that they hold.

use std::collections::BTreeMap;

use dlo_core::Token;
use dlo_ports::StoreError;
use rusqlite::Connection;

use super::{Found, number, text};
use crate::error::Doing;

const DOING: &str = "check claims";

/// A claim counts the rows that it holds, and holds no row outside its page (I-03, I-04).
pub(super) fn check(conn: &Connection, found: &mut Found) -> Result<(), StoreError> {
    let holders = holders(conn)?;
    let mut statement = conn.prepare("SELECT token, tenant, destination, open, members FROM dlo_claim").doing(DOING)?;
    let mut rows = statement.query([]).doing(DOING)?;
    while let Some(row) = rows.next().doing(DOING)? {
        let Ok(token) = row.get::<_, [u8; 16]>(0) else { continue };
        let open = number(row, 3);
        let held = holders.get(&token).copied().unwrap_or(0);
        let members: Vec<u8> = row.get(4).unwrap_or_default();
        let in_page = members_held(conn, &token, &members)?;
        let name = format!("claim {} on {}/{}", Token::from_bytes(token), text(row, 1), text(row, 2));
        if open != held && !found.add("I-03", format!("{name} counts {open} open rows and holds {held}")) {
            break;
        }
        if in_page != held && !found.add("I-04", format!("{name} holds {held} rows and {in_page} are of its page")) {
            break;
        }
    }
    Ok(())
}

/// How many live rows each claim holds.
fn holders(conn: &Connection) -> Result<BTreeMap<[u8; 16], i64>, StoreError> {
    let mut statement = conn.prepare(include_str!("../sql/check/claim_holders.sql")).doing(DOING)?;
    let mut rows = statement.query([]).doing(DOING)?;
    let mut holders = BTreeMap::new();
    while let Some(row) = rows.next().doing(DOING)? {
        if let Ok(token) = row.get(0) {
            holders.insert(token, number(row, 1));
        }
    }
    Ok(holders)
}

/// How many members of a page the claim still holds.
fn members_held(conn: &Connection, token: &[u8; 16], members: &[u8]) -> Result<i64, StoreError> {
    let mut statement = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM dlo_entry WHERE seq = ?1 AND claim_token = ?2)")
        .doing(DOING)?;
    let mut held = 0;
    for member in members.as_chunks::<8>().0 {
        held += statement
            .query_row(rusqlite::params![i64::from_be_bytes(*member), token], |row| row.get::<_, i64>(0))
            .doing(DOING)?;
    }
    Ok(held)
}
