//! The writer: one thread, one connection, group commit.
//!
//! What is queued goes into one transaction; answers are given after its commit. A verb that fails before it wrote
//! anything is answered and spoils nothing; one that fails midway rolls the group back, and its verbs run again one by
//! one. A transaction that can't even start refuses the whole group, so that nobody waits twice; a file system that
//! failed is never written to again. Nothing is written while nothing is asked.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dlo_ports::{Clock, StoreError, StoreErrorKind, store::ChangeHook};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{
    error::Doing,
    polite::{Manners, pause},
    tidy::Tidy,
    turn::{Caches, Random, Turn},
};

/// Most rows that one group is expected to write; a verb of more is a group of its own.
const GROUP_ROWS: usize = 2_000;
/// Most payload bytes of one group: 4 MiB.
const GROUP_BYTES: usize = 4 * 1_024 * 1_024;
/// How often the lock is tried while another process writes. SQLite's own waits grow to 100 ms, and would hardly ever meet
/// the gaps of a host that writes without a pause.
const BUSY_POLL: Duration = Duration::from_millis(1);
/// How often changes by other processes are looked for while an engine is registered.
const WATCH: Duration = Duration::from_millis(20);

/// How large a verb is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// A verb that waits for its turn.
pub(crate) trait Job: Send {
    /// How large it is.
    fn weight(&self) -> Weight;
    /// Runs it and keeps its answer; a copy of its error if it failed. May be run again.
    fn run(&mut self, turn: &mut Turn<'_>) -> Result<(), StoreError>;
    /// Whether what it did may have made work ready.
    fn makes_ready(&self) -> bool;
    /// Gives its kept answer.
    fn answer(self: Box<Self>);
    /// Answers with another error: nothing was saved.
    fn fail(self: Box<Self>, error: StoreError);
}

/// What the writer shares with its store.
pub(crate) struct Shared {
    /// An engine of this process is registered: changes by others must be noticed.
    pub(crate) has_engine: AtomicBool,
    pub(crate) hooks: Mutex<Vec<ChangeHook>>,
    pub(crate) closing: AtomicBool,
}

impl Shared {
    fn call_hooks(&self) {
        let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for hook in hooks {
            hook();
        }
    }
}

/// The writer thread's state.
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
    pub(crate) place: String,
    pub(crate) busy_timeout: Duration,
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: Receiver<Box<dyn Job>>,
    pub(crate) caches: Caches,
    pub(crate) manners: Manners,
    pub(crate) tidy: Tidy,
    /// Why nothing is written any more, once the file system failed.
    pub(crate) poisoned: Option<String>,
}

/// How one try at a group ended.
enum Tried {
    Committed,
    /// A verb failed after it had written something: all is rolled back.
    Spoiled(StoreError),
    /// No commit.
    NotCommitted(StoreError),
    /// No transaction: nothing that concerns one verb rather than another.
    NotBegun(StoreError),
}

impl Writer {
    /// Runs until the store is dropped.
    pub(crate) fn run(mut self) {
        let mut carried = None;
        loop {
            let first = match carried.take() {
                Some(job) => job,
                None => match self.wait() {
                    Some(job) => job,
                    None => break,
                },
            };
            let mut group = vec![first];
            carried = self.gather(&mut group);
            self.commit(group);
        }
        // The mover of the log has a connection, too: it goes before the writer's.
        self.tidy = Tidy::default();
    }

    /// The next job; looks after the file and for changes by others in the meantime. `None` when the store is dropped.
    fn wait(&mut self) -> Option<Box<dyn Job>> {
        loop {
            let watching = self.shared.has_engine.load(Ordering::Acquire);
            let span = if watching { Some(WATCH) } else { self.tidy.wait() };
            let received = match span {
                Some(span) => self.jobs.recv_timeout(span),
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.look_for_others();
                    if self.poisoned.is_none() {
                        self.tidy.turn(&self.conn, self.manners.since_others());
                    }
                }
            }
        }
    }

    /// Takes what else is queued, as far as it fits into the group; the answer is one that did not fit.
    fn gather(&self, group: &mut Vec<Box<dyn Job>>) -> Option<Box<dyn Job>> {
        let mut sum = group[0].weight();
        while let Ok(job) = self.jobs.try_recv() {
            let weight = job.weight();
            sum = Weight { rows: sum.rows + weight.rows, bytes: sum.bytes + weight.bytes };
            if sum.rows > GROUP_ROWS || sum.bytes > GROUP_BYTES {
                return Some(job);
            }
            group.push(job);
        }
        None
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Job>>) {
        self.look_for_others();
        let started = Instant::now();
        match self.attempt(&mut group) {
            Tried::Spoiled(_) | Tried::NotCommitted(_) if group.len() > 1 && self.poisoned.is_none() => {
                self.commit_one_by_one(group);
            }
            tried => self.end(group, tried),
        }
        let span = pause(self.manners.since_others(), started.elapsed());
        if !span.is_zero() {
            std::thread::sleep(span);
        }
    }

    fn commit_one_by_one(&mut self, group: Vec<Box<dyn Job>>) {
        let mut jobs = group.into_iter();
        while let Some(job) = jobs.next() {
            let mut alone = vec![job];
            let tried = self.attempt(&mut alone);
            if matches!(tried, Tried::NotBegun(_)) {
                alone.extend(jobs);
                return self.end(alone, tried);
            }
            self.end(alone, tried);
        }
    }

    /// Answers a group that is not tried again.
    fn end(&mut self, group: Vec<Box<dyn Job>>, tried: Tried) {
        match tried {
            Tried::Committed => self.answer(group),
            // A verb that was alone has its own error, which says most.
            Tried::Spoiled(_) if group.len() == 1 => answer_all(group),
            Tried::Spoiled(error) | Tried::NotCommitted(error) | Tried::NotBegun(error) => self.refuse(group, &error),
        }
    }

    fn answer(&mut self, group: Vec<Box<dyn Job>>) {
        self.tidy.wrote(&self.conn);
        // Hooks first: who has its answer may rely on it that the others were told.
        if group.iter().any(|job| job.makes_ready()) {
            self.shared.call_hooks();
        }
        answer_all(group);
    }

    fn refuse(&self, group: Vec<Box<dyn Job>>, error: &StoreError) {
        for job in group {
            job.fail(StoreError::new(error.kind(), error.to_string()).within(&self.place));
        }
    }

    fn attempt(&mut self, group: &mut [Box<dyn Job>]) -> Tried {
        if let Some(cause) = &self.poisoned {
            return Tried::NotBegun(StoreError::new(StoreErrorKind::Io, cause.clone()));
        }
        let tried = self.try_group(group);
        if let Tried::Spoiled(error) | Tried::NotCommitted(error) | Tried::NotBegun(error) = &tried {
            // What was read in a transaction that is gone may never have been.
            self.caches.clear();
            if error.kind() == StoreErrorKind::Io {
                // The pages of a failed write or sync may be lost without a further error, so nothing is built on them.
                self.poisoned = Some(format!("{error}; nothing more is written through this store: open it again"));
            }
        }
        tried
    }

    fn try_group(&mut self, group: &mut [Box<dyn Job>]) -> Tried {
        let tx = match begin(&mut self.conn, &self.shared, self.busy_timeout, &mut self.manners) {
            Ok(tx) => tx,
            Err(error) => return Tried::NotBegun(error),
        };
        for job in group {
            let before = tx.total_changes();
            let now = self.clock.now();
            let mut turn = Turn { tx: &tx, now, random: &*self.random, caches: &mut self.caches };
            if let Err(error) = job.run(&mut turn)
                && (spoils(error.kind()) || tx.total_changes() != before)
            {
                return Tried::Spoiled(error);
            }
        }
        match tx.commit().doing("commit") {
            Ok(()) => Tried::Committed,
            Err(error) => Tried::NotCommitted(error),
        }
    }

    /// Notes commits by others, and tells those who want to know.
    fn look_for_others(&mut self) {
        if self.manners.look(&self.conn) && self.shared.has_engine.load(Ordering::Acquire) {
            self.shared.call_hooks();
        }
    }
}

fn answer_all(group: Vec<Box<dyn Job>>) {
    for job in group {
        job.answer();
    }
}

/// Whether an error of that kind says that the transaction itself can't be trusted, although nothing was written.
fn spoils(kind: StoreErrorKind) -> bool {
    !matches!(kind, StoreErrorKind::Invalid | StoreErrorKind::Fenced | StoreErrorKind::Schema | StoreErrorKind::Corrupt)
}

/// Starts a transaction; waits while another process writes, up to the bound.
fn begin<'c>(
    conn: &'c mut Connection,
    shared: &Shared,
    bound: Duration,
    manners: &mut Manners,
) -> Result<Transaction<'c>, StoreError> {
    let started = Instant::now();
    loop {
        match Transaction::new_unchecked(conn, TransactionBehavior::Immediate).doing("start a transaction") {
            Ok(tx) => return Ok(tx),
            Err(error) if error.kind() == StoreErrorKind::Busy => {
                manners.met_others();
                let waited = started.elapsed();
                if waited + BUSY_POLL > bound || shared.closing.load(Ordering::Acquire) {
                    return Err(StoreError::new(
                        StoreErrorKind::Busy,
                        format!(
                            "another process has been writing for {} ms: end its long transaction",
                            waited.as_millis()
                        ),
                    ));
                }
                std::thread::sleep(BUSY_POLL);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
