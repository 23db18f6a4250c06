//! What the loops of one engine share.

use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlo_core::{DestinationName, EngineOptions, Incarnation, TenantId, Timestamp, Token, policy::DrainMode};
use dlo_ports::{BoxFuture, Env, Store, StoreError, store::Scope, store::StoreResult};
use tokio::sync::{Notify, Semaphore, watch};

use crate::{
    EngineError,
    clock::StoreClock,
    directory::{Directory, Found},
    handle::LaneStatus,
    metrics::Metrics,
    trouble::{Backoff, Remedy, Trouble},
};

/// Which destination a lane drains.
pub(crate) type LaneKey = (TenantId, DestinationName);

/// Where a run is; it only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Claiming and emitting.
    Running,
    /// Claims no more; emissions in flight have the shutdown grace.
    Draining,
    /// The grace is over: what is in flight is cut, and the last saves are made.
    Cut,
    /// Nothing is waited for any more.
    Ended,
}

impl Phase {
    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Cut => "cut",
            Self::Ended => "ended",
        }
    }
}

/// The end of the lease before there is one: later than any time, so that it is not over either.
const NO_LEASE: i64 = i64::MAX;

/// The place of a lane in the register of lanes.
pub(crate) struct Slot {
    /// What it drains.
    pub(crate) key: LaneKey,
    /// There may be new work.
    pub(crate) nudge: Notify,
    /// The same as a flag, so that a lane that is about to leave sees it.
    pub(crate) nudged: AtomicBool,
    /// For people.
    pub(crate) status: Mutex<LaneStatus>,
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) options: EngineOptions,
    pub(crate) incarnation: Incarnation,
    pub(crate) scope: Scope,
    pub(crate) phase: watch::Sender<Phase>,
    /// Wakes the look for work.
    pub(crate) wake: Arc<Notify>,
    /// Somebody asked the run to stop.
    pub(crate) stop: Notify,
    pub(crate) lanes: Mutex<BTreeMap<LaneKey, Arc<Slot>>>,
    /// A lane has left the register.
    pub(crate) lane_left: Notify,
    /// The look for work is wanted when a lane leaves.
    pub(crate) watch_lanes: AtomicBool,
    /// Database time of the next planned look for work, in microseconds.
    pub(crate) next_look: AtomicI64,
    clock: StoreClock,
    /// Database time at which this process's lease is over, as the latest renewal said, in microseconds.
    lease_until: AtomicI64,
    /// Claims that may have been saved although their answer was lost, with the database time at which they are over.
    pub(crate) orphans: Mutex<BTreeMap<Token, Timestamp>>,
    /// Destinations whose rows can't be read: which verb said so, and until when (database time) they are left alone.
    pub(crate) set_aside: Mutex<BTreeMap<LaneKey, (&'static str, Timestamp)>>,
    /// Destinations whose lane has left to wait for its pace, with the database time at which it may come back.
    pub(crate) paced: Mutex<BTreeMap<LaneKey, Timestamp>>,
    /// A destination with work found no free place for its lane.
    pub(crate) crowded: AtomicBool,
    pub(crate) directory: Directory,
    pub(crate) trouble: Arc<Trouble>,
    /// The only suspect in flight of this process.
    pub(crate) suspect: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    fatal: Mutex<Option<EngineError>>,
    failed: Notify,
}

/// Locks; a panic of another holder leaves counters and registers usable.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store verb as a future that owns what it needs.
pub(crate) fn owned<T: Send + 'static>(
    store: &Arc<dyn Store>,
    verb: impl for<'a> FnOnce(&'a dyn Store) -> StoreResult<'a, T> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    let store = Arc::clone(store);
    Box::pin(async move { verb(&*store).await })
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn Store>, env: Arc<dyn Env>, options: EngineOptions) -> Self {
        let scope = Scope { tenants: options.tenants.clone(), destinations: options.destinations.clone() };
        let mut random = [0; 10];
        env.random(&mut random);
        let incarnation = Incarnation::new(env.now(), random);
        Self {
            store,
            env,
            options,
            incarnation,
            scope,
            phase: watch::Sender::new(Phase::Running),
            wake: Arc::new(Notify::new()),
            stop: Notify::new(),
            lanes: Mutex::default(),
            lane_left: Notify::new(),
            watch_lanes: AtomicBool::new(false),
            next_look: AtomicI64::new(i64::MAX),
            clock: StoreClock::default(),
            lease_until: AtomicI64::new(NO_LEASE),
            orphans: Mutex::default(),
            set_aside: Mutex::default(),
            paced: Mutex::default(),
            crowded: AtomicBool::new(false),
            directory: Directory::default(),
            trouble: Arc::default(),
            suspect: Arc::new(Semaphore::new(1)),
            metrics: Arc::default(),
            fatal: Mutex::default(),
            failed: Notify::new(),
        }
    }

    /// The database's time (I-06).
    pub(crate) fn now(&self) -> Timestamp {
        self.database_time(self.env.now())
    }

    /// The database's time at that time of the engine's clock.
    pub(crate) fn database_time(&self, here: Timestamp) -> Timestamp {
        self.clock.at(here)
    }

    /// The database answered with its time.
    pub(crate) fn clock_told(&self, there: Timestamp) {
        self.clock.answered(there, self.env.now());
    }

    /// Renews the lease once.
    pub(crate) fn renew(&self) -> StoreResult<'_, ()> {
        Box::pin(async move {
            let now = self.store.heartbeat(self.incarnation, self.options.lease).await?;
            self.lease_given(now);
            Ok(())
        })
    }

    /// The store gave or renewed the lease at that time of its clock.
    pub(crate) fn lease_given(&self, now: Timestamp) {
        self.clock_told(now);
        let until = match self.options.mode {
            DrainMode::Claim => now.after(self.options.lease),
            DrainMode::Plain => Timestamp::MAX,
        };
        self.lease_until.store(until.as_micros(), Ordering::Release);
    }

    /// Whether the store has ever given this process a lease.
    pub(crate) fn has_lease(&self) -> bool {
        self.lease_until.load(Ordering::Acquire) != NO_LEASE
    }

    /// Whether the lease may be over, so that others may have taken what this process holds.
    pub(crate) fn lease_may_be_over(&self) -> bool {
        self.lease_until.load(Ordering::Acquire) <= self.now().as_micros()
    }

    /// A fresh claim token.
    pub(crate) fn token(&self) -> Token {
        let mut random = [0; 10];
        self.env.random(&mut random);
        Token::new(self.env.now(), random)
    }

    /// Reads a destination and makes its emitter if needed.
    pub(crate) fn load<'a>(&'a self, key: &'a LaneKey) -> StoreResult<'a, Found> {
        Box::pin(self.directory.load(&*self.store, |destination| self.env.emitter(destination), key))
    }

    /// Takes note of a store error.
    pub(crate) fn store_failed(&self, verb: &'static str, error: StoreError) -> Remedy {
        self.metrics.store_error(error.code());
        let remedy = self.trouble.failed(verb, &error);
        if remedy == Remedy::End {
            self.end_with(EngineError::Store { verb, source: error });
        }
        remedy
    }

    /// Calls a verb until it works. `None` when the run is ending instead.
    pub(crate) async fn insist<'a, T>(
        &'a self,
        verb: &'static str,
        call: impl Fn() -> StoreResult<'a, T>,
    ) -> Option<T> {
        let mut backoff = Backoff::default();
        loop {
            match call().await {
                Ok(answer) => {
                    self.trouble.worked(verb);
                    return Some(answer);
                }
                Err(error) => {
                    if self.store_failed(verb, error) == Remedy::End || *self.phase.borrow() >= Phase::Cut {
                        return None;
                    }
                    self.env.sleep(backoff.next()).await;
                }
            }
        }
    }

    /// Ends the run with the first error that is reported.
    pub(crate) fn end_with(&self, error: EngineError) {
        locked(&self.fatal).get_or_insert(error);
        self.failed.notify_one();
    }

    /// Waits for an error that ends the run.
    pub(crate) async fn failure(&self) {
        self.failed.notified().await;
    }

    /// The error that ended the run.
    pub(crate) fn take_failure(&self) -> Option<EngineError> {
        locked(&self.fatal).take()
    }

    /// An entry becomes due at that time: look for work no later.
    pub(crate) fn expect_due(&self, due: Timestamp) {
        if due.as_micros() < self.next_look.load(Ordering::Acquire) {
            self.wake.notify_one();
        }
    }

    /// Lanes at work.
    pub(crate) fn lane_count(&self) -> usize {
        locked(&self.lanes).len()
    }
}
