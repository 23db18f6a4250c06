//! Why a line is not a CloudEvent that can be enqueued.

use dlo_core::envelope::EnvelopeError;

/// A line can't be enqueued. Names the attribute and the rule, never what stands in the line (I-13).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// Longer than the bound.
    #[error("line has {seen} bytes: at most {limit} are allowed")]
    TooLong {
        /// Bytes seen.
        seen: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("line is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// First byte that is not, from 1.
        at: usize,
    },
    /// Not JSON.
    #[error("line is not one JSON object: the JSON ends or breaks at column {column}")]
    NotJson {
        /// Where, from 1.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("line is JSON but not an object: one CloudEvent a line is expected")]
    NotObject,
    /// More attributes than are taken.
    #[error("event has {seen} attributes: at most {limit} are allowed")]
    TooManyAttributes {
        /// Attributes seen.
        seen: usize,
        /// Attributes allowed.
        limit: usize,
    },
    /// A name that CloudEvents does not allow. It is not repeated: it may be content in the wrong place.
    #[error("attribute {position} has a name that is not 1 to 64 of a-z and 0-9")]
    AttributeName {
        /// Which attribute of the line, from 1.
        position: usize,
    },
    /// A name that comes twice.
    #[error("attribute `{attribute}` is there twice")]
    Twice {
        /// Which.
        attribute: String,
    },
    /// A required attribute is not there.
    #[error("attribute `{attribute}` is required and is not there")]
    Missing {
        /// Which.
        attribute: &'static str,
    },
    /// An attribute breaks its rule.
    #[error("attribute `{attribute}` {rule}")]
    Attribute {
        /// Which.
        attribute: String,
        /// The rule.
        rule: &'static str,
    },
    /// The envelope breaks a bound.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

impl EventError {
    pub(super) fn invalid(attribute: impl Into<String>, rule: &'static str) -> Self {
        Self::Attribute { attribute: attribute.into(), rule }
    }

    /// Stable code; each has a page in `docs/errors/`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "event.too_long",
            Self::NotUtf8 { .. } => "event.not_utf8",
            Self::NotJson { .. } => "event.not_json",
            Self::NotObject => "event.not_object",
            Self::TooManyAttributes { .. } => "event.too_many_attributes",
            Self::AttributeName { .. } => "event.attribute_name",
            Self::Twice { .. } => "event.attribute_twice",
            Self::Missing { .. } => "event.attribute_missing",
            Self::Attribute { .. } => "event.attribute_invalid",
            Self::Envelope(_) => "enqueue.envelope_invalid",
        }
    }

    /// All codes of this reader's own.
    pub const CODES: [&'static str; 9] = [
        "event.too_long",
        "event.not_utf8",
        "event.not_json",
        "event.not_object",
        "event.too_many_attributes",
        "event.attribute_name",
        "event.attribute_twice",
        "event.attribute_missing",
        "event.attribute_invalid",
    ];
}
