//! The write-ahead log goes into the file while the writer goes on: on a thread and a connection of its own. Left to the
//! writer, this is an eighth of its work, and a wait for the disk in the middle of it.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::open::open_reader;

/// Rows changed between two moves: about 5 MiB of small entries. Large payloads are not counted: when the log reaches
/// [`crate::open::WAL_PAGES`] in spite of all moves, the writer moves what is left itself, and the log begins anew.
const ROWS: u64 = 12_000;

/// The log of a file that is written.
#[derive(Default)]
pub(crate) struct Log {
    moved_at: u64,
    mover: Option<Mover>,
}

impl Log {
    /// Something was committed on the writer's connection.
    pub(crate) fn wrote(&mut self, conn: &Connection) {
        let changes = conn.total_changes();
        if changes.saturating_sub(self.moved_at) < ROWS {
            return;
        }
        self.moved_at = changes;
        if self.mover.is_none() {
            // Without a mover, which is no trouble that a verb would report, the writer moves the log.
            self.mover = conn.path().and_then(|path| Mover::start(Path::new(path)));
        }
        if let Some(mover) = &self.mover {
            mover.poke();
        }
    }
}

/// The thread.
struct Mover {
    pokes: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    fn start(path: &Path) -> Option<Self> {
        let conn = open_reader(path).ok()?;
        let (pokes, poked) = mpsc::sync_channel(1);
        let run = move || run(&conn, &poked);
        let thread = std::thread::Builder::new().name("dlo-sqlite-log".to_owned()).spawn(run).ok()?;
        Some(Self { pokes: Some(pokes), thread: Some(thread) })
    }

    /// Asks for a move; one that is asked for already is enough.
    fn poke(&self) {
        if let Some(pokes) = &self.pokes {
            let _ = pokes.try_send(());
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.pokes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(conn: &Connection, poked: &Receiver<()>) {
    while poked.recv().is_ok() {
        // Passive: it waits for nobody, and nobody waits for it. Trouble with the disk meets the next commit too.
        let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}
