//! Readers: threads with a read-only connection each. One verb reads one snapshot.
//!
//! Workers' looks have a thread of their own, so that no list, figure or check that takes long keeps an engine from its
//! work.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

/// Threads for what workers look for.
pub(crate) const DRAIN_READERS: usize = 1;
/// Threads for whoever may look.
pub(crate) const VIEW_READERS: usize = 2;

/// A reading verb that waits for its turn.
pub(crate) type Reading = Box<dyn FnOnce(&Connection) + Send>;

/// Runs reading verbs until the store is dropped.
pub(crate) fn run(conn: Connection, queue: Arc<Mutex<Receiver<Reading>>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(reading) = next else { return };
        reading(&conn);
    }
}
