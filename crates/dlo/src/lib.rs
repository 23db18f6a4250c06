//! Dead Letter Office for embedding. (API skeleton; see the modules. Coming next with these signatures:)
//!
//! - `Outbox::engine(&self, options: EngineOptions) -> Result<dlo_engine::Engine, …>`,
//!   `Outbox::run_in_process(&self, options, shutdown: impl Future) -> …`, `Outbox::builder()`

pub mod cloudevents;
pub mod config;
pub mod duration;
pub mod env;
pub mod env_vars;
mod error;
mod outbox;
mod registry;

pub use dlo_core as core;
pub use dlo_office as office;
pub use dlo_ports as ports;
pub use dlo_webhook as webhook;

pub use config::Config;
pub use env::ProcessEnv;
pub use error::OpenError;
pub use outbox::{OpenMode, Outbox};
pub use registry::{EmitterFactory, Registry};
