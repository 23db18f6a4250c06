//! The engine of Dead Letter Office: drain, sweep, expire, prune.
//!
//! **What it is for.** [`Engine::run`] takes due entries from a [`Store`](dlo_ports::Store), gives them to emitters,
//! and saves what becomes of them; it holds destinations that fail, probes them and takes them up again; it recovers
//! what a lost worker left behind, ends entries past their age, and drops history past its time.
//!
//! A *lane* here is the task that drains one destination (not [`dlo_core::Lane`], the queue that an entry waits in).
//!
//! **What it must never do.** It decides nothing by itself: what an outcome means is said by
//! [`decide`](dlo_core::decide::decide), what it means for the destination by [`observe`](dlo_core::observe::observe).
//! It never records a failed save as a failed emission (trap D6), never charges a shutdown (trap D3), never emits to a
//! destination that declares duplicates harmful before a send mark is durable (I-10), and never writes content into a
//! log or a metric (I-13). Time, sleep, randomness, tasks and emitters come from [`Env`](dlo_ports::Env) alone.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use dlo_core::EngineOptions;
//! # use dlo_engine::{Engine, Until};
//! # async fn example(store: Arc<dyn dlo_ports::Store>, env: Arc<dyn dlo_ports::Env>) -> Result<(), Box<dyn std::error::Error>> {
//! let options = EngineOptions::new("worker-1".parse()?);
//! let engine = Engine::new(store, env, options)?;
//! let handle = engine.handle();
//! engine.run_until(Until::Empty, std::future::pending()).await?;
//! print!("{}", handle.status());
//! # Ok(())
//! # }
//! ```

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod account;
mod clock;
mod directory;
mod discovery;
mod engine;
mod error;
mod events;
mod handle;
mod heartbeat;
mod hold;
mod lane;
pub mod limits;
pub mod metrics;
mod openmetrics;
mod prune;
mod shared;
mod sweep;
mod trouble;
mod unreadable;

pub use engine::{Ended, Engine, Until};
pub use error::EngineError;
pub use handle::{Handle, LaneStatus, Status};
pub use metrics::Metrics;
pub use openmetrics::{CONTENT_TYPE, render_openmetrics};
pub use shared::Phase;
