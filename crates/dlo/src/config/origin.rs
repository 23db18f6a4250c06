//! Where a value came from.

use core::fmt;
use std::path::PathBuf;

/// Where a value came from. Later ones win: default, file, environment, flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The file.
    File {
        /// Which.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// An environment variable.
    Env(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One value of the configuration, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Key, for example `engine.lease` or `destinations.billing.policy.page`.
    pub key: String,
    /// Value as it would stand in the file; empty if it is not set and has no default.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}
