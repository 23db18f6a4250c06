//! Dead Letter Office for embedding: save first, deliver at least once, quarantine what fails.
//!
//! **What it is for.** [`Outbox`] is one opened store with the environment of this process: enqueue (in a transaction
//! of its own, or in the application's), drain in the application's process, look, and act as an operator. [`Config`]
//! is the file that the binary `dlo` works with, [`cloudevents`] reads its input. This crate is also the only place
//! where store, engine, office and emitters are wired to the real clock, randomness and runtime ([`mod@env`]).
//!
//! **What it must never do.** Decide anything: that is done in [`core`](mod@core). Promise exactly once: an entry is
//! delivered at least once, with the same operation key on every try. Take a secret out of a configuration file, or
//! show a payload byte (I-13).
//!
//! # An emitter of one's own
//!
//! ```
//! use dlo::Outbox;
//! use dlo::core::{Destination, DestinationSpec, Duplicates, EngineOptions, Outcome, Payload};
//! use dlo::engine::Until;
//! use dlo::ports::emitter::emit_each;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("outbox.db");
//! let outbox = Outbox::builder()
//!     .sqlite(file)
//!     .emitter("console", |_: &Destination| {
//!         Ok(emit_each(|emission| async move {
//!             println!("{} {}", emission.operation_key, emission.envelope.event_type);
//!             Outcome::Delivered { receipt: None }
//!         }))
//!     })
//!     .destination(DestinationSpec::new("orders".parse()?, "console", Duplicates::Tolerated))
//!     .open()
//!     .await?;
//!
//! let order = outbox.item("com.example.order.placed", Payload::json(r#"{"order": 1}"#));
//! outbox.enqueue(vec![order.to("orders".parse()?)]).await?;
//!
//! // An application that goes on runs `outbox.run_in_process(shutdown)` in a task of its own.
//! let engine = outbox.engine(EngineOptions::new("example".parse()?))?;
//! engine.run_until(Until::Empty, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Further examples, each run by a test: `own_emitter` (with a failure that goes to quarantine), `shared_file` (an
//! application that enqueues in its own transaction, in its own SQLite file), `receiver` (checks signatures).

mod builder;
pub mod cloudevents;
pub mod config;
pub mod duration;
pub mod env;
pub mod env_vars;
mod error;
mod outbox;
mod registry;

pub use dlo_core as core;
pub use dlo_engine as engine;
pub use dlo_office as office;
pub use dlo_ports as ports;
pub use dlo_sqlite as sqlite;
pub use dlo_webhook as webhook;
pub use rusqlite;

pub use builder::Builder;
pub use config::Config;
pub use env::ProcessEnv;
pub use error::OpenError;
pub use outbox::{OpenMode, Outbox};
pub use registry::{EmitterFactory, Registry};

/// Compiles the Rust of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
