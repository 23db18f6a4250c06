//! What is wrong with a configuration: every problem at once, each with its place.

use core::fmt;
use std::path::PathBuf;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `dlo.toml:12:5`, `env DLO_STORE_PATH`, `flag --store`.
    pub place: String,
    /// Key, for example `engine.lease`; empty for a syntax error.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Way out, if there is more to say than the message does.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file can't be read.
    #[error("configuration file `{}` can't be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something in it, in the environment or in a flag is wrong.
    #[error("{}", list(problems))]
    Invalid {
        /// Everything that is wrong, in the order of the file.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Stable code; each has a page in `docs/errors/`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "config.unreadable",
            Self::Invalid { .. } => "config.invalid",
        }
    }

    /// All codes.
    pub const CODES: [&'static str; 2] = ["config.unreadable", "config.invalid"];
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
