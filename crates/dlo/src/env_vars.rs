//! Every environment variable that the product reads, each with what it does.
#![doc = include_str!("../docs/environment.md")]

/// One variable that stands over a key of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// The key that it stands over; empty if it stands for none.
    pub key: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// Path of the configuration file, if no flag names one.
pub const CONFIG: EnvVar =
    EnvVar { name: "DLO_CONFIG", key: "", doc: "path of the configuration file, if no flag names one" };
/// Tenant of commands, and of destinations that name none.
pub const TENANT: EnvVar =
    EnvVar { name: "DLO_TENANT", key: "tenant", doc: "tenant of commands, and of destinations that name none" };
/// Path of the store's file.
pub const STORE_PATH: EnvVar = EnvVar { name: "DLO_STORE_PATH", key: "store.path", doc: "path of the store's file" };
/// Name of the worker.
pub const ENGINE_WORKER: EnvVar = EnvVar { name: "DLO_ENGINE_WORKER", key: "engine.worker", doc: "name of the worker" };
/// Level, or filter directives by target.
pub const LOG_LEVEL: EnvVar =
    EnvVar { name: "DLO_LOG_LEVEL", key: "log.level", doc: "level, or filter directives by target" };
/// How log lines look.
pub const LOG_FORMAT: EnvVar =
    EnvVar { name: "DLO_LOG_FORMAT", key: "log.format", doc: "how log lines look: `text` or `json`" };
/// Address to serve metrics on.
pub const METRICS_LISTEN: EnvVar =
    EnvVar { name: "DLO_METRICS_LISTEN", key: "metrics.listen", doc: "address to serve metrics on" };
/// File to write metrics to.
pub const METRICS_FILE: EnvVar =
    EnvVar { name: "DLO_METRICS_FILE", key: "metrics.file", doc: "file to write metrics to" };

/// All of them.
pub const ALL: [EnvVar; 8] =
    [CONFIG, TENANT, STORE_PATH, ENGINE_WORKER, LOG_LEVEL, LOG_FORMAT, METRICS_LISTEN, METRICS_FILE];
