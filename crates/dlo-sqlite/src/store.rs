//! The store: asynchronous verbs in front of the writer and the readers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dlo_core::{Entry, Incarnation, Timestamp, reason};
use dlo_ports::{
    Clock, StoreError, StoreErrorKind,
    store::{ChangeHook, StoreResult},
};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    error::Doing,
    lock::EngineLock,
    open::{OpenOptions, open_reader, open_writer},
    polite::Manners,
    reader::{self, DRAIN_READERS, Reading, VIEW_READERS},
    sweep::{self, Found},
    tidy::Tidy,
    turn::{Caches, Turn},
    writer::{Job, Shared, Weight, Writer},
};

/// Most verbs in each queue; further ones wait before they are queued.
const QUEUE: usize = 1_024;

/// The store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    place: String,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    engine: Mutex<Engine>,
    /// `None` only while the store is dropped.
    queues: Option<Queues>,
    threads: Vec<JoinHandle<()>>,
}

/// What waits for the threads of the store. Each queue has its own bound, so that none keeps verbs out of another.
struct Queues {
    writes: Queue<Box<dyn Job>>,
    drain: Queue<Reading>,
    views: Queue<Reading>,
}

/// A bounded queue of verbs.
struct Queue<V> {
    sender: Sender<V>,
    permits: Arc<Semaphore>,
}

impl<V> Queue<V> {
    fn new() -> (Self, Receiver<V>) {
        let (sender, receiver) = mpsc::channel();
        (Self { sender, permits: Arc::new(Semaphore::new(QUEUE)) }, receiver)
    }

    /// A place in the queue. `None` if there is none any more.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.ok()
    }
}

/// The engine lock of this store and who registered last.
#[derive(Default)]
pub(crate) struct Engine {
    lock: Option<EngineLock>,
    pub(crate) incarnation: Option<Incarnation>,
}

impl SqliteStore {
    /// Opens a file, migrates it, and starts the threads of the store (one that writes, one that reads for
    /// workers, two that read for whoever looks).
    ///
    /// # Errors
    /// Every error names the file. `store.schema` when a newer version made it, `store.unavailable` when it is not
    /// there or can't be opened, `store.corrupt` when it is no database.
    pub fn open(options: OpenOptions) -> Result<Self, StoreError> {
        let place = options.path.display().to_string();
        Self::open_here(options, &place).map_err(|error| error.within(&place))
    }

    fn open_here(options: OpenOptions, place: &str) -> Result<Self, StoreError> {
        let conn = open_writer(&options)?;
        // The lock's name must be the same whatever way leads to the file.
        let path = options.path.canonicalize().unwrap_or_else(|_| options.path.clone());
        let clock = options.clock.clock();
        let shared = Arc::new(Shared {
            has_engine: AtomicBool::new(false),
            hooks: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let (writes, jobs) = Queue::new();
        let (drain, drain_readings) = Queue::new();
        let (views, view_readings) = Queue::new();
        let mut store = Self {
            path,
            place: place.to_owned(),
            clock: clock.clone(),
            shared: shared.clone(),
            engine: Mutex::default(),
            queues: Some(Queues { writes, drain, views }),
            threads: Vec::with_capacity(DRAIN_READERS + VIEW_READERS + 1),
        };
        for (name, count, readings) in
            [("dlo-sqlite-look", DRAIN_READERS, drain_readings), ("dlo-sqlite-view", VIEW_READERS, view_readings)]
        {
            let readings = Arc::new(Mutex::new(readings));
            for _ in 0..count {
                let (conn, readings) = (open_reader(&options.path)?, readings.clone());
                store.spawn(name, move || reader::run(conn, readings))?;
            }
        }
        let writer = Writer {
            conn,
            clock,
            random: options.random,
            place: store.place.clone(),
            busy_timeout: options.busy_timeout,
            shared,
            jobs,
            caches: Caches::default(),
            manners: Manners::default(),
            tidy: Tidy::default(),
            poisoned: None,
        };
        store.spawn("dlo-sqlite-write", move || writer.run())?;
        Ok(store)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
            StoreError::new(StoreErrorKind::Unavailable, format!("can't start thread `{name}`: {error}"))
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Queues a verb for the writer and waits for its commit.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        weight: Weight,
        makes_ready: bool,
        run: impl FnMut(&mut Turn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreResult<'_, T> {
        Box::pin(async move {
            let queue = self.queue(|queues| &queues.writes)?;
            let permit = queue.place().await.ok_or_else(|| self.ended())?;
            let (reply, answer) = oneshot::channel();
            let verb =
                Verb { run, answer: None, reply, weight, makes_ready, place: self.place.clone(), _permit: permit };
            queue.sender.send(Box::new(verb)).map_err(|_| self.ended())?;
            answer.await.unwrap_or_else(|_| Err(self.ended()))
        })
    }

    /// Queues a reading verb of whoever may look.
    pub(crate) fn view<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection, Timestamp) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreResult<'_, T> {
        self.read(|queues| &queues.views, run)
    }

    /// Queues a reading verb of workers.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection, Timestamp) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreResult<'_, T> {
        self.read(|queues| &queues.drain, run)
    }

    /// Queues a reading verb and waits for its answer: one snapshot, the database's time read once.
    fn read<T: Send + 'static>(
        &self,
        choose: fn(&Queues) -> &Queue<Reading>,
        run: impl FnOnce(&Connection, Timestamp) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreResult<'_, T> {
        Box::pin(async move {
            let queue = self.queue(choose)?;
            let permit = queue.place().await.ok_or_else(|| self.ended())?;
            let (reply, answer) = oneshot::channel();
            let clock = self.clock.clone();
            let reading: Reading = Box::new(move |conn| {
                let _permit = permit;
                // Nobody is left to be told when the caller has gone.
                let _ = reply.send(snapshot(conn, |conn| run(conn, clock.now())));
            });
            queue.sender.send(reading).map_err(|_| self.ended())?;
            answer.await.unwrap_or_else(|_| Err(self.ended())).map_err(|error| error.within(&self.place))
        })
    }

    fn queue<V>(&self, choose: fn(&Queues) -> &Queue<V>) -> Result<&Queue<V>, StoreError> {
        self.queues.as_ref().map(choose).ok_or_else(|| self.ended())
    }

    pub(crate) fn add_hook(&self, hook: ChangeHook) {
        self.shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// A thread ends before the store is dropped only by a fault. No repetition of the call brings it back, so the kind
    /// is none that passes; whether a write that it had in hand was saved is not known.
    fn ended(&self) -> StoreError {
        StoreError::new(StoreErrorKind::Io, "a thread of the store ended because of a fault: open the store again")
            .within(&self.place)
    }

    /// Reads what a sweep finds; what can't be read is quarantined by itself, in a transaction of its own.
    pub(crate) async fn sweep(
        &self,
        find: impl Fn(&Connection, Timestamp) -> Result<Found, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<Entry>, StoreError> {
        let look = find.clone();
        let found = self.look(move |conn, now| look(conn, now)).await?;
        if !found.unreadable.is_empty() {
            let rows = found.unreadable.len();
            let quarantined = self
                .write(Weight { rows, bytes: 0 }, false, move |turn| {
                    let again = find(turn.tx, turn.now)?;
                    sweep::quarantine_found(turn, &again)
                })
                .await?;
            // A sweep answers with entries alone: who can't be read is told here, or to nobody.
            for (destination, key) in quarantined {
                tracing::warn!(
                    tenant = %key.tenant, destination = %destination, entry = %key.entry, generation = key.generation,
                    code = reason::ENTRY_UNREADABLE.as_str(), "entry can't be read and was quarantined"
                );
            }
        }
        Ok(found.entries)
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the engine lock if this store does not have it; true if it was taken now.
    pub(crate) fn take_lock(&self) -> Result<bool, StoreError> {
        let mut engine = self.engine();
        if engine.lock.is_some() {
            return Ok(false);
        }
        engine.lock = Some(EngineLock::take(&self.path).map_err(|error| error.within(&self.place))?);
        self.shared.has_engine.store(true, Ordering::Release);
        Ok(true)
    }

    pub(crate) fn drop_lock(&self) {
        let mut engine = self.engine();
        *engine = Engine::default();
        self.shared.has_engine.store(false, Ordering::Release);
    }
}

impl Drop for SqliteStore {
    /// The writer's connection is closed last and alone: SQLite then moves the whole log into the file and removes it,
    /// so that the file alone is the database. Connections that close at the same moment may each leave that to another.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        let writer = self.threads.pop();
        if let Some(Queues { writes, drain, views }) = self.queues.take() {
            drop((drain, views));
            self.threads.drain(..).for_each(join);
            drop(writes);
        }
        writer.into_iter().for_each(join);
    }
}

/// Waits for a thread. A hook may hold the last reference to the store: its thread can't wait for itself.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() {
        let _ = thread.join();
    }
}

/// Runs a reading verb in one read transaction.
fn snapshot<T>(conn: &Connection, run: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let tx = conn.unchecked_transaction().doing("start to read")?;
    let answer = run(&tx);
    tx.finish().doing("end reading")?;
    answer
}

/// A verb on its way to the writer.
struct Verb<F, T> {
    run: F,
    answer: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    weight: Weight,
    makes_ready: bool,
    place: String,
    _permit: OwnedSemaphorePermit,
}

impl<F, T> Job for Verb<F, T>
where
    F: FnMut(&mut Turn<'_>) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn weight(&self) -> Weight {
        self.weight
    }

    fn run(&mut self, turn: &mut Turn<'_>) -> Result<(), StoreError> {
        let answer = (self.run)(turn);
        let copy = answer.as_ref().err().map(|error| StoreError::new(error.kind(), error.to_string()));
        self.answer = Some(answer.map_err(|error| error.within(&self.place)));
        copy.map_or(Ok(()), Err)
    }

    fn makes_ready(&self) -> bool {
        self.makes_ready && matches!(self.answer, Some(Ok(_)))
    }

    fn answer(self: Box<Self>) {
        let answer = self.answer.expect("a verb is answered after it was run");
        // Nobody is left to be told when the caller has gone: what was committed stays.
        let _ = self.reply.send(answer);
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

#[cfg(test)]
mod tests;
