//! The real world behind [`Env`]: the system clock, tokio, the operating system's randomness. The only place of the
//! product that touches them; everything else takes them as arguments, so that a simulator can own them.

use core::time::Duration;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dlo_core::{Destination, Timestamp};
use dlo_ports::{BoxFuture, Clock, Emitter, Env, env::EmitterError};

use crate::Registry;

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the one place that reads the system's clock
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::EPOCH.after(since_epoch)
    }
}

/// The environment of a process.
#[derive(Clone, Default)]
pub struct ProcessEnv {
    registry: Registry,
}

impl ProcessEnv {
    /// An environment with these emitters.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }
}

impl Clock for ProcessEnv {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
}

impl Env for ProcessEnv {
    #[allow(clippy::disallowed_methods)] // the one place that sleeps
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { tokio::time::sleep(span).await })
    }

    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system's random source works once the system has started");
    }

    #[allow(clippy::disallowed_methods)] // the one place that spawns
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn emitter(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        self.registry.build(destination)
    }
}
