//! The one configuration file, `dlo.toml`, with what the environment and the command line put over it.

mod destination;
mod json;
mod load;
mod origin;
mod policy;
mod problem;
mod reader;
mod secrets;
mod setting;
mod text;

use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use dlo_core::{DestinationSpec, EngineOptions, TenantId};
use dlo_sqlite::Attach;

pub use load::{DEFAULT_FILE, DEFAULT_STORE, DEFAULT_WORKER, MAX_FILE_BYTES};
pub use origin::{Origin, Shown};
pub use problem::{ConfigError, Problem};

/// Where the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Which kind.
    pub kind: StoreKind,
    /// The file, absolute or from the working directory. A relative path in the file counts from the file's folder.
    pub path: PathBuf,
    /// Whose file it is.
    pub attach: Attach,
}

/// Kinds of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// One SQLite file.
    Sqlite,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged, to stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`) or filter directives by target.
    pub level: String,
    /// How.
    pub format: LogFormat,
}

/// Where a running engine's metrics go as OpenMetrics text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Address to serve them on, if any.
    pub listen: Option<SocketAddr>,
    /// File to write them to, if any.
    pub file: Option<PathBuf>,
    /// How often the file is written.
    pub interval: Duration,
}

/// Values put over file and environment by flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    values: Vec<(&'static str, &'static str, String)>,
}

impl Overrides {
    /// Puts `value` over the key (for example `store.path`); `flag` (for example `--store`) is shown as its origin.
    pub fn set(mut self, key: &'static str, flag: &'static str, value: impl Into<String>) -> Self {
        self.values.push((key, flag, value.into()));
        self
    }

    /// Flag and value that stand over a key; the last one wins.
    fn get(&self, key: &str) -> Option<(&'static str, &str)> {
        self.values.iter().rev().find(|(set, _, _)| *set == key).map(|(_, flag, value)| (*flag, value.as_str()))
    }
}

/// A valid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// Tenant of commands, and of destinations that name none.
    pub tenant: TenantId,
    /// Where the store is.
    pub store: StoreConfig,
    /// Options of `dlo run`.
    pub engine: EngineOptions,
    /// Destinations, in the order of the file; input to apply only.
    pub destinations: Vec<DestinationSpec>,
    /// What is logged.
    pub log: LogConfig,
    /// Where metrics go.
    pub metrics: MetricsConfig,
    shown: Vec<Shown>,
    /// Place of each destination in the file, for problems that its emitter finds.
    places: Vec<String>,
}

impl Config {
    /// A commented example file that states every default; what `dlo init` writes.
    pub const fn default_toml() -> &'static str {
        include_str!("default.toml")
    }

    /// Every key with its value and origin, in the order of the file. Values that a destination inherits from
    /// `[policy]` are not repeated.
    pub fn show(&self) -> &[Shown] {
        &self.shown
    }
}
