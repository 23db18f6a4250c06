//! The one error of the office.

use dlo_core::{DestinationName, OptionError, TenantId};
use dlo_ports::{StoreError, env::EmitterError};

/// Why an act did nothing, or not all of it. Each has a stable code and a page in `docs/errors/`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfficeError {
    /// The actor lacks the authority.
    #[error("`{actor}` may not `{act}` in tenant `{tenant}`: it needs the authority `{authority}` there")]
    Forbidden {
        /// Who.
        actor: String,
        /// What was tried.
        act: &'static str,
        /// Where.
        tenant: TenantId,
        /// What is missing.
        authority: &'static str,
    },
    /// A reason is required.
    #[error("`{act}` needs a reason that is not blank: say why, for whoever reads the audit events")]
    ReasonBlank {
        /// What was tried.
        act: &'static str,
    },
    /// The reason is longer than is kept.
    #[error("the reason has {seen} bytes: at most {limit} are kept")]
    ReasonTooLong {
        /// Bytes given.
        seen: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Nothing was named.
    #[error("`{act}` names no item: name at least one")]
    NoItems {
        /// What was tried.
        act: &'static str,
    },
    /// More items than one call may have.
    #[error("`{act}` names {seen} items: at most {limit} are allowed at once")]
    TooManyItems {
        /// What was tried.
        act: &'static str,
        /// How many were given.
        seen: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// An item is named twice.
    #[error("`{act}` names `{item}` twice: name each item once")]
    DuplicateItem {
        /// What was tried.
        act: &'static str,
        /// Which.
        item: String,
    },
    /// The pace is outside its bounds.
    #[error("pace of {seen} a minute is not allowed: 1 to {limit}")]
    PaceInvalid {
        /// What was given.
        seen: u32,
        /// Largest allowed.
        limit: u32,
    },
    /// An option of a destination breaks its rule.
    #[error("destination `{destination}`: {problem}")]
    PolicyInvalid {
        /// Which.
        destination: DestinationName,
        /// What is wrong.
        problem: OptionError,
    },
    /// Another field of a destination breaks its rule.
    #[error("destination `{destination}`: {field} {rule}")]
    DestinationInvalid {
        /// Which.
        destination: DestinationName,
        /// Field.
        field: &'static str,
        /// Rule and way out.
        rule: &'static str,
    },
    /// The emitter does not take the settings.
    #[error("destination `{destination}`: {problem}")]
    SettingsInvalid {
        /// Which.
        destination: DestinationName,
        /// What the emitter says.
        problem: EmitterError,
    },
    /// The store did nothing for what was left. What was done before stays; the same act may be repeated.
    #[error("the store failed after {done} of {total} items")]
    Store {
        /// Items of transactions that were committed.
        done: usize,
        /// Items asked for.
        total: usize,
        /// Why.
        #[source]
        source: StoreError,
    },
}

impl OfficeError {
    /// Stable code; a store's failure keeps the store's code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "office.forbidden",
            Self::ReasonBlank { .. } => "office.reason_blank",
            Self::ReasonTooLong { .. } => "office.reason_too_long",
            Self::NoItems { .. } => "office.no_items",
            Self::TooManyItems { .. } => "office.too_many_items",
            Self::DuplicateItem { .. } => "office.duplicate_item",
            Self::PaceInvalid { .. } => "office.pace_invalid",
            Self::PolicyInvalid { .. } => "office.policy_invalid",
            Self::DestinationInvalid { .. } => "office.destination_invalid",
            Self::SettingsInvalid { .. } => "office.settings_invalid",
            Self::Store { source, .. } => source.code(),
        }
    }

    /// All codes of the office's own.
    pub const CODES: [&'static str; 10] = [
        "office.forbidden",
        "office.reason_blank",
        "office.reason_too_long",
        "office.no_items",
        "office.too_many_items",
        "office.duplicate_item",
        "office.pace_invalid",
        "office.policy_invalid",
        "office.destination_invalid",
        "office.settings_invalid",
    ];
}
