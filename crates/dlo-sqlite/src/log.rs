//! The write-ahead log goes into the file while the writer goes on: on a thread and a connection of its own. Left to the
//! writer, this is an eighth of its work, and a wait for the disk in the middle of it.
//!
//! The log begins anew only when all of it has been moved, so a mover that is slower than the writer would let it grow
//! without end: past [`LOG_BYTES`] the writer waits for the mover.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::open::{WAL_BYTES, open_reader};

/// Rows changed between two moves: about 5 MiB of small entries. Large payloads are not counted: when the log reaches
/// [`crate::open::WAL_PAGES`] in spite of all moves, the writer moves what is left itself, and the log begins anew.
const ROWS: u64 = 12_000;

/// Size of the log from which the writer waits for the mover. Above [`WAL_BYTES`], to which a log that begins anew is
/// cut, so that a smaller log never makes anybody wait.
const LOG_BYTES: u64 = WAL_BYTES as u64 + WAIT_STEP;

/// While a reader keeps the log from beginning anew, the writer waits again only after this much more.
const WAIT_STEP: u64 = 16 * 1_024 * 1_024;

/// The log of a file that is written.
pub(crate) struct Log {
    moved_at: u64,
    wait_from: u64,
    file: Option<PathBuf>,
    mover: Option<Mover>,
}

impl Default for Log {
    fn default() -> Self {
        Self { moved_at: 0, wait_from: LOG_BYTES, file: None, mover: None }
    }
}

impl Log {
    /// Something was committed on the writer's connection.
    pub(crate) fn wrote(&mut self, conn: &Connection) {
        let bytes = self.bytes(conn);
        if bytes < LOG_BYTES {
            self.wait_from = LOG_BYTES;
        }
        let changes = conn.total_changes();
        let behind = bytes >= self.wait_from;
        if !behind && changes.saturating_sub(self.moved_at) < ROWS {
            return;
        }
        self.moved_at = changes;
        if self.mover.is_none() {
            // Without a mover, which is no trouble that a verb would report, the writer moves the log.
            self.mover = conn.path().and_then(|path| Mover::start(Path::new(path)));
        }
        let Some(mover) = &self.mover else { return };
        if behind {
            self.wait_from = bytes + WAIT_STEP;
            mover.wait();
        } else {
            mover.poke();
        }
    }

    fn bytes(&mut self, conn: &Connection) -> u64 {
        if self.file.is_none() {
            self.file = conn.path().map(|path| PathBuf::from(format!("{path}-wal")));
        }
        self.file.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0, |metadata| metadata.len())
    }
}

/// What the mover is asked for.
enum Ask {
    Move,
    MoveAndTell(SyncSender<()>),
}

/// The thread.
struct Mover {
    asks: Option<SyncSender<Ask>>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    fn start(path: &Path) -> Option<Self> {
        let conn = open_reader(path).ok()?;
        let (asks, asked) = mpsc::sync_channel(1);
        let run = move || run(&conn, &asked);
        let thread = std::thread::Builder::new().name("dlo-sqlite-log".to_owned()).spawn(run).ok()?;
        Some(Self { asks: Some(asks), thread: Some(thread) })
    }

    /// Asks for a move; one that is asked for already is enough.
    fn poke(&self) {
        if let Some(asks) = &self.asks {
            let _ = asks.try_send(Ask::Move);
        }
    }

    /// Waits for a move that begins after now: nobody writes meanwhile, so it moves everything that no reader keeps.
    fn wait(&self) {
        let (tell, told) = mpsc::sync_channel(1);
        if self.asks.as_ref().is_some_and(|asks| asks.send(Ask::MoveAndTell(tell)).is_ok()) {
            let _ = told.recv();
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(conn: &Connection, asked: &Receiver<Ask>) {
    while let Ok(ask) = asked.recv() {
        // Passive: it waits for nobody, and nobody waits for it. Trouble with the disk meets the next commit too.
        let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Ask::MoveAndTell(tell) = ask {
            let _ = tell.send(());
        }
    }
}
