//! Ports of Dead Letter Office: what the loops and the office need of a store, of an emitter and of the world.
//!
//! **What it is for.** [`store`] has the verbs of a store, [`emitter`] the code that hands emissions to a provider,
//! [`env`](mod@env) time, randomness and spawning. The conformance suite (feature `conformance`) is what every store
//! must pass; a model store is its oracle.
//!
//! **What it must never do.** No begin or commit in any trait: *a verb is a transaction*. No verb takes one row where
//! it could take a batch, every list is keyset-paged and bounded, and every operator verb takes its audit event, so
//! that forgetting it is a type error (I-12).
//!
//! ```
//! use dlo_core::{Outcome, Receipt};
//! use dlo_ports::emitter::{Emission, emit_each};
//!
//! // An emitter of one's own: a function from one emission to its outcome.
//! let emitter = emit_each(|emission: Emission| async move {
//!     let id = Some(emission.operation_key.as_str().into());
//!     Outcome::Delivered { receipt: Some(Receipt { kind: "own".into(), id }) }
//! });
//! # let _ = emitter;
//! ```

pub mod act;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod emitter;
pub mod enqueue;
pub mod env;
pub mod error;
pub mod persisted;
pub mod store;
pub mod view;

use core::future::Future;
use core::pin::Pin;

pub use emitter::{Emission, Emitted, Emitter};
pub use env::{Clock, Env};
pub use error::{StoreError, StoreErrorKind};
pub use store::Store;

/// A boxed future: ports are used as `Arc<dyn …>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
