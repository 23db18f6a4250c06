//! Why an outbox could not be opened.

use dlo_office::OfficeError;
use dlo_ports::StoreError;

use crate::config::ConfigError;

/// An outbox could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The destinations that the builder was given were not applied.
    #[error(transparent)]
    Destinations(#[from] OfficeError),
}

impl OpenError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Destinations(error) => error.code(),
        }
    }
}
