//! Enqueue inside an application's own transaction: its change and the entry are saved together, or neither is.

use dlo_core::{NewEntry, Timestamp};
use dlo_ports::{StoreError, store::EnqueueAnswer};
use rusqlite::Transaction;

use crate::{
    batch::Batch,
    enqueue::enqueue,
    error::Doing,
    turn::{Caches, Turn},
};

/// Saves items in the caller's transaction; one answer each, in order. The `dlo_…` tables live in the caller's file
/// ([`crate::migrate`]).
///
/// Start the transaction with `BEGIN IMMEDIATE`: a deferred one that has read before it enqueues fails with
/// `SQLITE_BUSY` at once when another process has written in between, whatever its busy timeout is. Nothing is saved
/// until the caller commits, and a rollback takes the items with it. The engine notices the commit within about 20 ms.
///
/// # Errors
/// As for [`dlo_ports::store::EnqueueStore::enqueue`]. After an error nothing of the call is left in the transaction,
/// and the caller may go on or roll back. After `store.disk_full` and `store.io` SQLite may have rolled back all of the
/// caller's transaction (`tx.is_autocommit()` is then true). What is refused, existing or in conflict is an answer and
/// no error.
pub fn enqueue_in(
    tx: &Transaction<'_>,
    items: &[NewEntry],
    now: Timestamp,
    random: &dyn Fn(&mut [u8]),
) -> Result<Vec<EnqueueAnswer>, StoreError> {
    const DOING: &str = "enqueue in a transaction of the application";
    tx.execute_batch("SAVEPOINT dlo_enqueue").doing(DOING)?;
    let mut caches = Caches::default();
    let answers = enqueue(&mut Turn { tx, now, random, caches: &mut caches }, &Batch::new(items));
    let end = if answers.is_ok() { "RELEASE dlo_enqueue" } else { "ROLLBACK TO dlo_enqueue; RELEASE dlo_enqueue" };
    let ended = tx.execute_batch(end).doing(DOING);
    let answers = answers?;
    ended?;
    Ok(answers)
}
