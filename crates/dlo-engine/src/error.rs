//! Why a run of the engine ended with an error.

use dlo_core::{DestinationName, OptionError, TenantId};
use dlo_ports::StoreError;

/// A run ended, and not because somebody asked for it. Nothing is lost: what was claimed is recovered by the next
/// start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// An option has a value that its rule does not allow (P-03).
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The store failed in a way that does not pass by itself, or has given the work to another engine.
    #[error("engine stopped: store verb `{verb}` failed: {source}")]
    Store {
        /// Which verb.
        verb: &'static str,
        /// The store's own error.
        source: StoreError,
    },
    /// The task that drained a destination panicked: a defect in the engine or in a destructor of an emitter.
    #[error("engine stopped: the task that drained `{tenant}/{destination}` panicked: report this as a defect")]
    LanePanicked {
        /// Tenant.
        tenant: TenantId,
        /// Destination.
        destination: DestinationName,
    },
}

impl EngineError {
    /// Stable code; each has a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Options(_) => "engine.options_invalid",
            Self::Store { source, .. } => source.code(),
            Self::LanePanicked { .. } => "engine.lane_panicked",
        }
    }

    /// Codes of the engine itself; store errors have their own.
    pub const CODES: [&'static str; 2] = ["engine.options_invalid", "engine.lane_panicked"];
}
