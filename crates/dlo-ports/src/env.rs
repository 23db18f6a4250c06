//! The world as loops see it, so that a simulator can own it: time, sleep, randomness, spawning, emitters.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{Destination, Timestamp};

use crate::{BoxFuture, Emitter};

/// A source of time.
pub trait Clock: Send + Sync {
    /// Now. May go backwards; nothing here relies on more than what its caller checks.
    fn now(&self) -> Timestamp;
}

/// A process can't emit to a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitterError {
    /// No emitter of this kind is in the process: the destination is held, its entries are kept.
    #[error("no emitter of kind `{kind}` in this process: use a build or an embedding that has it")]
    UnknownKind {
        /// The kind that was asked for.
        kind: String,
    },
    /// The settings are not what this emitter takes.
    #[error("settings of emitter `{kind}` are not valid: {problem}")]
    Settings {
        /// The kind.
        kind: String,
        /// What is wrong and what would be right; never a secret.
        problem: String,
    },
}

/// Everything that a loop takes from outside.
pub trait Env: Clock {
    /// Sleeps.
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;
    /// Fills with randomness.
    fn random(&self, bytes: &mut [u8]);
    /// Runs a task until it ends.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// The emitter of a destination. Called once per destination version and process.
    fn emitter(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError>;
}
