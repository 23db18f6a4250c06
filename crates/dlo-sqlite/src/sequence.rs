//! The database sequence of generations.

use dlo_ports::StoreError;
use rusqlite::Connection;

use crate::error::Doing;

/// Takes `count` numbers; the answer is the first of them.
pub(crate) fn take(tx: &Connection, count: usize) -> Result<i64, StoreError> {
    tx.prepare_cached("UPDATE dlo_sequence SET next = next + ?1 WHERE name = 'entry' RETURNING next - ?1")
        .and_then(|mut statement| statement.query_row([count as i64], |row| row.get(0)))
        .doing("take sequence numbers")
}
