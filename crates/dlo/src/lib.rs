//! Dead Letter Office for embedding. (API skeleton; see the modules. Coming next with these signatures:)
//!
//! - `Config::load(path: Option<&Path>, env: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Result<Config, ConfigError>`
//!   (`None`: `DLO_CONFIG`, else `./dlo.toml` if it is there, else defaults)
//! - `Config::default_toml() -> &'static str`, `Config::show(&self) -> &[Shown]`,
//!   `Config::check(&self, &Registry) -> Result<Vec<String>, ConfigError>` (settings by the emitters; warnings)
//! - `duration::{parse(&str) -> Result<Duration, DurationError>, format(Duration) -> String}` ("1h 30m")
//! - `cloudevents::parse_line(line: &[u8], intake: &Intake) -> Result<NewEntry, EventError>`,
//!   `Intake { tenant, tenant_from_event: bool, producer, destinations, not_before, deliver_by, env: &dyn Env }`
//! - `Outbox::engine(&self, options: EngineOptions) -> Result<dlo_engine::Engine, …>`,
//!   `Outbox::run_in_process(&self, options, shutdown: impl Future) -> …`, `Outbox::builder()`

pub mod config;
pub mod env;
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
