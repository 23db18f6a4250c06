//! The real world behind [`Env`]: the system clock, tokio, the operating system's randomness. The only place of the
//! product that touches them; everything else takes them as arguments, so that a simulator can own them.
#![allow(clippy::disallowed_methods)]

use core::time::Duration;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dlo_core::{Destination, Timestamp};
use dlo_ports::{BoxFuture, Clock, Emitter, Env, StoreError, StoreErrorKind, env::EmitterError};
use dlo_sqlite::{Random, system_random};

use crate::Registry;

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.after(since_epoch)
    }
}

/// The environment of a process. Sleeping and spawning need a tokio runtime with time.
#[derive(Clone)]
pub struct ProcessEnv {
    registry: Registry,
    random: Random,
}

impl ProcessEnv {
    /// An environment with these emitters.
    pub fn new(registry: Registry) -> Self {
        Self { registry, random: system_random() }
    }
}

impl Clock for ProcessEnv {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
}

impl Env for ProcessEnv {
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn random(&self, bytes: &mut [u8]) {
        (self.random)(bytes);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn emitter(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        self.registry.build(destination)
    }
}

/// Runs what blocks beside the tasks of the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let ended =
        |error| StoreError::new(StoreErrorKind::Unavailable, "the task that opens it has ended").with_source(error);
    tokio::task::spawn_blocking(run).await.map_err(|error: tokio::task::JoinError| ended(error))?
}
