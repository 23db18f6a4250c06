//! The versioned JSON shapes that stores keep in their rows, shared so that no two stores can drift.
//!
//! Every text is stored beside the number of its shape (`*_SCHEMA`). A reader that meets a number it does not know
//! refuses the row and says that a newer binary wrote it; it never guesses. Inside one schema the fields are fixed:
//! an unknown field is refused too, because a binary that ignored it would drop it with the next save. So a change of
//! shape is a new number, a new fixture in `fixtures/`, and a reader for each number ever released.
//!
//! Errors name the shape, the place and the rule, never content (I-13).

mod destination;
mod envelope;
mod health;
#[cfg(test)]
mod tests;

pub use destination::{DESTINATION_SCHEMA, decode_destination, encode_destination};
pub use envelope::{
    ENVELOPE_META_SCHEMA, PAYLOAD_FORMS, StoredPayload, decode_envelope_meta, decode_envelope_view,
    encode_envelope_meta, payload_bytes, payload_form,
};
pub use health::{HEALTH_SCHEMA, decode_health, encode_health};

use crate::{StoreError, StoreErrorKind};

/// A stored text that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersistedError {
    /// A newer binary wrote it.
    #[error(
        "stored {what} has schema {seen} and this binary knows up to {known}: a newer binary wrote it; upgrade this one"
    )]
    Newer {
        /// Which shape.
        what: &'static str,
        /// Schema of the row.
        seen: u32,
        /// Latest schema that this binary knows.
        known: u32,
    },
    /// It is not what its schema says.
    #[error("stored {what} is not valid for its schema: {rule}")]
    Malformed {
        /// Which shape.
        what: &'static str,
        /// The rule that it breaks and where; never content.
        rule: String,
    },
}

impl PersistedError {
    /// Stable code: `store.schema` or `store.corrupt`.
    pub const fn code(&self) -> &'static str {
        self.kind().code()
    }

    /// The kind that a store's error has for it.
    pub const fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Newer { .. } => StoreErrorKind::Schema,
            Self::Malformed { .. } => StoreErrorKind::Corrupt,
        }
    }

    fn malformed(what: &'static str, rule: impl Into<String>) -> Self {
        Self::Malformed { what, rule: rule.into() }
    }
}

impl From<PersistedError> for StoreError {
    fn from(error: PersistedError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Refuses every schema but the known one. Schema 0 was never written.
fn check_schema(what: &'static str, seen: u32, known: u32) -> Result<(), PersistedError> {
    match seen {
        0 => Err(PersistedError::malformed(what, "schema 0 was never written")),
        _ if seen > known => Err(PersistedError::Newer { what, seen, known }),
        _ => Ok(()),
    }
}

fn read<'a, T: serde::Deserialize<'a>>(what: &'static str, json: &'a str) -> Result<T, PersistedError> {
    serde_json::from_str(json).map_err(|error| {
        // The message of the parser may quote a value: only its kind and its place are kept.
        let rule = match error.classify() {
            serde_json::error::Category::Eof => "the JSON ends early",
            serde_json::error::Category::Data => "a field is missing, unknown or of another type",
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is not JSON",
        };
        PersistedError::malformed(what, format!("{rule} (line {}, column {})", error.line(), error.column()))
    })
}

fn write(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("rows of texts, numbers and maps with text keys always serialise")
}
