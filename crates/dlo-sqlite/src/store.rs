//! The store: asynchronous verbs in front of the writer and the readers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dlo_core::{Entry, Incarnation, Timestamp};
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
    reader::{self, READERS, Reading},
    sweep::{self, Found},
    tidy::Tidy,
    turn::{Caches, Turn},
    writer::{Job, Shared, Weight, Writer},
};

/// Most verbs that wait for the writer, and for the readers; further ones wait before they are queued.
const QUEUE: usize = 1_024;

/// The store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    place: String,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    engine: Mutex<Engine>,
    jobs: Option<Sender<Box<dyn Job>>>,
    readings: Option<Sender<Reading>>,
    threads: Vec<JoinHandle<()>>,
}

/// The engine lock of this store and who registered last.
#[derive(Default)]
pub(crate) struct Engine {
    lock: Option<EngineLock>,
    pub(crate) incarnation: Option<Incarnation>,
}

impl SqliteStore {
    /// Opens a file, migrates it, and starts the threads of the store (one that writes, two that read).
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
        let (jobs, job_queue) = mpsc::channel();
        let (readings, reading_queue) = mpsc::channel();
        let reading_queue = Arc::new(Mutex::new(reading_queue));
        let mut store = Self {
            path,
            place: place.to_owned(),
            clock: clock.clone(),
            shared: shared.clone(),
            permits: Arc::new(Semaphore::new(QUEUE)),
            engine: Mutex::default(),
            jobs: Some(jobs),
            readings: Some(readings),
            threads: Vec::with_capacity(READERS + 1),
        };
        for _ in 0..READERS {
            let (conn, queue) = (open_reader(&options.path)?, reading_queue.clone());
            store.spawn("dlo-sqlite-read", move || reader::run(conn, queue))?;
        }
        let writer = Writer {
            conn,
            clock,
            random: options.random,
            place: store.place.clone(),
            busy_timeout: options.busy_timeout,
            shared,
            jobs: job_queue,
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
            let permit = self.permit().await?;
            let (reply, answer) = oneshot::channel();
            let verb =
                Verb { run, answer: None, reply, weight, makes_ready, place: self.place.clone(), _permit: permit };
            let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(Box::new(verb)).is_ok());
            if !sent {
                return Err(self.ended());
            }
            answer.await.unwrap_or_else(|_| Err(self.ended()))
        })
    }

    /// Queues a reading verb and waits for its answer: one snapshot, the database's time read once.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection, Timestamp) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreResult<'_, T> {
        Box::pin(async move {
            let permit = self.permit().await?;
            let (reply, answer) = oneshot::channel();
            let clock = self.clock.clone();
            let reading: Reading = Box::new(move |conn| {
                let _permit = permit;
                // Nobody is left to be told when the caller has gone.
                let _ = reply.send(snapshot(conn, |conn| run(conn, clock.now())));
            });
            let sent = self.readings.as_ref().is_some_and(|readings| readings.send(reading).is_ok());
            if !sent {
                return Err(self.ended());
            }
            answer.await.unwrap_or_else(|_| Err(self.ended())).map_err(|error| error.within(&self.place))
        })
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        self.permits.clone().acquire_owned().await.map_err(|_| self.ended())
    }

    pub(crate) fn add_hook(&self, hook: ChangeHook) {
        self.shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    fn ended(&self) -> StoreError {
        StoreError::new(StoreErrorKind::Unavailable, "a thread of the store has ended: open it again")
            .within(&self.place)
    }

    /// Reads what a sweep finds; what can't be read is quarantined by itself, in a transaction of its own.
    pub(crate) async fn sweep(
        &self,
        find: impl Fn(&Connection, Timestamp) -> Result<Found, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<Entry>, StoreError> {
        let look = find.clone();
        let found = self.read(move |conn, now| look(conn, now)).await?;
        if !found.unreadable.is_empty() {
            let rows = found.unreadable.len();
            self.write(Weight { rows, bytes: 0 }, false, move |turn| {
                let again = find(turn.tx, turn.now)?;
                sweep::quarantine_found(turn, &again)
            })
            .await?;
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
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.jobs = None;
        self.readings = None;
        let own = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // A hook may hold the last reference: its thread can't wait for itself.
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
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
