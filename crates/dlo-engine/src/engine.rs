//! The engine: starts, runs its loops together, and ends in good order.

use core::convert::Infallible;
use core::future::Future;
use core::pin::pin;
use std::sync::Arc;

use dlo_core::{EngineOptions, OptionError};
use dlo_ports::{Env, Store, StoreErrorKind, store::WorkerStart};

use crate::{EngineError, Handle, Phase, discovery, events, heartbeat, limits, prune, shared::Shared, sweep};

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: only when it is stopped.
    Stopped,
    /// When nothing is due now and nothing is in hand; entries may wait for later.
    Idle,
    /// When no live entry is left but those of held destinations and those in manual review.
    Empty,
}

/// Why a run ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// [`Until`] was met.
    Done,
}

/// The engine of one process: drains, sweeps, recovers and prunes one store (S-01, S-02, P-01…P-09).
///
/// It delivers at least once: an entry is tried again with the same operation key until there is an outcome, except
/// where a duplicate does harm (I-10). Everything that it needs of the world comes through [`Env`].
pub struct Engine {
    shared: Arc<Shared>,
    pid: u32,
}

impl Engine {
    /// An engine over a store. Fails if an option has a value that its rule does not allow (P-03).
    pub fn new(store: Arc<dyn Store>, env: Arc<dyn Env>, options: EngineOptions) -> Result<Self, OptionError> {
        options.validate()?;
        Ok(Self { shared: Arc::new(Shared::new(store, env, options)), pid: std::process::id() })
    }

    /// A handle, before or during the run.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Runs until `shutdown` is ready, [`Handle::stop`] is called, or the store fails in a way that does not pass.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Ended, EngineError> {
        self.run_until(Until::Stopped, shutdown).await
    }

    /// The same, and ends by itself when `until` is met.
    pub async fn run_until(self, until: Until, shutdown: impl Future<Output = ()>) -> Result<Ended, EngineError> {
        let shared = self.shared;
        let _abandon = Abandon(&shared);
        let mut shutdown = pin!(shutdown);
        let mut beats = pin!(heartbeat::run(&shared));
        let ended = tokio::select! {
            biased;
            () = shutdown.as_mut() => Some(Ended::Stopped),
            () = shared.stop.notified() => Some(Ended::Stopped),
            () = shared.failure() => None,
            () = work(&shared, self.pid, until) => Some(Ended::Done),
            never = beats.as_mut() => match never {},
        };
        finish(&shared, ended, beats).await;
        match (shared.take_failure(), ended) {
            (None, Some(ended)) => {
                events::stopped(&shared.options.worker);
                Ok(ended)
            }
            (None, None) => Ok(Ended::Stopped),
            (Some(failure), _) => {
                events::failed(&shared.options.worker, &failure);
                Err(failure)
            }
        }
    }
}

/// Lanes are tasks of their own: they end with the run, also when it is dropped.
struct Abandon<'a>(&'a Shared);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.phase.send_replace(Phase::Ended);
    }
}

/// Starts, recovers, and runs the loops until `until` is met.
async fn work(shared: &Arc<Shared>, pid: u32, until: Until) {
    if start(shared, pid).await.is_none() {
        return core::future::pending().await;
    }
    tokio::select! {
        biased;
        () = discovery::run(shared, until) => {}
        () = sweep::run(shared) => {}
        () = prune::run(shared) => {}
    }
}

/// Registers the worker and decides what a lost one left behind.
async fn start(shared: &Arc<Shared>, pid: u32) -> Option<()> {
    let start = WorkerStart {
        worker: shared.options.worker.clone(),
        incarnation: shared.incarnation,
        mode: shared.options.mode,
        lease: shared.options.lease,
        pid,
    };
    let now = shared.insist("start_worker", || shared.store.start_worker(start.clone())).await?;
    shared.lease_given(now);
    events::started(&shared.options.worker, shared.incarnation, shared.options.lease);
    let wake = Arc::clone(&shared.wake);
    shared.store.on_change(Arc::new(move || wake.notify_one()));
    sweep::recover(shared).await
}

/// Ends in good order: no further claims, the grace for emissions in flight, the last saves, the end of the worker.
async fn finish(
    shared: &Shared,
    ended: Option<Ended>,
    mut beats: core::pin::Pin<&mut impl Future<Output = Infallible>>,
) {
    let cause = match ended {
        Some(Ended::Stopped) => "asked to stop",
        Some(Ended::Done) => "nothing left to do",
        None => "store failed",
    };
    events::stopping(&shared.options.worker, cause, shared.options.shutdown_grace);
    for (phase, span) in [(Phase::Draining, shared.options.shutdown_grace), (Phase::Cut, limits::LAST_SAVES)] {
        shared.phase.send_replace(phase);
        tokio::select! {
            biased;
            () = lanes_gone(shared) => break,
            never = beats.as_mut() => match never {},
            () = shared.env.sleep(span) => {}
        }
    }
    shared.phase.send_replace(Phase::Ended);
    stop_worker(shared).await;
}

async fn lanes_gone(shared: &Shared) {
    while shared.lane_count() > 0 {
        shared.lane_left.notified().await;
    }
}

/// Ends the worker, so that what it could not settle or give back is recovered at once by the next start. It is tried
/// once: without it, the next start or the end of the lease does the same. A store that fails for good ends the run as
/// failed even here, where nothing was left to do: whoever started it should know.
async fn stop_worker(shared: &Shared) {
    let stopped = tokio::select! {
        biased;
        stopped = shared.store.stop_worker(shared.incarnation) => stopped,
        () = shared.env.sleep(limits::LAST_SAVES) => return,
    };
    if let Err(error) = stopped
        && error.kind() != StoreErrorKind::Fenced
    {
        shared.store_failed("stop_worker", error);
    }
}
