//! Typed identifiers. No two kinds can be mixed, and each has one text form.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::{Timestamp, limits};

/// A text was not a valid identifier or name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{value}` is not valid: {rule}")]
pub struct ParseIdError {
    /// What was being read, for example `tenant`.
    pub kind: &'static str,
    /// The text that was given, cut to 128 characters; identifiers are never secrets.
    pub value: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

fn parse_error(kind: &'static str, value: &str, rule: &'static str) -> ParseIdError {
    ParseIdError { kind, value: value.chars().take(128).collect(), rule }
}

macro_rules! name {
    ($(#[$meta:meta])* $type:ident, $kind:literal, $max:expr, $check:expr, $rule:literal) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Checks and takes a text. Surrounding white space is not trimmed: it is refused.
            pub fn new(text: &str) -> Result<Self, ParseIdError> {
                let ok: fn(&str) -> bool = $check;
                if text.is_empty() || text.len() > $max || !ok(text) {
                    return Err(parse_error($kind, text, $rule));
                }
                Ok(Self(Arc::from(text)))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }
    };
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_printable(text: &str) -> bool {
    text.trim() == text && !text.chars().any(char::is_control)
}

fn is_visible_ascii(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic())
}

name!(
    /// The owner of data; first column of every key; isolation boundary.
    TenantId, "tenant", limits::MAX_NAME_BYTES, is_name,
    "1 to 64 bytes of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit"
);
name!(
    /// Name of a destination within its tenant.
    DestinationName, "destination", limits::MAX_NAME_BYTES, is_name,
    "1 to 64 bytes of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit"
);
name!(
    /// Identity that enqueues.
    ProducerId, "producer", limits::MAX_NAME_BYTES, is_name,
    "1 to 64 bytes of a-z, 0-9, `.`, `_`, `-`, starting with a letter or digit"
);
name!(
    /// Identity of a worker (not unique over time; see [`Incarnation`]).
    WorkerId, "worker", limits::MAX_KEY_BYTES, is_printable,
    "1 to 255 bytes without control characters or surrounding space"
);
name!(
    /// Key that dedupes enqueue within (tenant, producer).
    EnqueueKey, "enqueue key", limits::MAX_ENQUEUE_KEY_BYTES, is_printable,
    "1 to 1024 bytes without control characters or surrounding space"
);
name!(
    /// Key given to the provider, fixed before the first try and kept over retry and redrive (I-11).
    OperationKey, "operation key", limits::MAX_KEY_BYTES, is_visible_ascii,
    "1 to 255 visible ASCII characters without spaces"
);

impl TenantId {
    /// The tenant where nobody cares: `default`.
    pub fn default_tenant() -> Self {
        Self(Arc::from("default"))
    }
}

impl ProducerId {
    /// The producer where nobody says: `default`.
    pub fn default_producer() -> Self {
        Self(Arc::from("default"))
    }
}

macro_rules! uuid_id {
    ($(#[$meta:meta])* $type:ident, $kind:literal, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Uuid);

        impl $type {
            /// Text prefix of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// A time-ordered id (UUIDv7) from a time and ten random bytes; both come from the caller.
            pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(now.as_micros() / 1_000).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
            }

            /// From the stored 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The 16 bytes that are stored.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl FromStr for $type {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.strip_prefix(concat!($prefix, "_"))
                    .filter(|hex| hex.len() == 32)
                    .and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or_else(|| parse_error($kind, text, concat!("`", $prefix, "_` and 32 hexadecimal digits")))
            }
        }
    };
}

uuid_id!(
    /// Stable id of an outbox entry (S-05); the unique row key of its tenant.
    EntryId, "entry id", "ent"
);
uuid_id!(
    /// Stable id of an envelope; shared by the entries of a fan-out.
    EnvelopeId, "envelope id", "env"
);
uuid_id!(
    /// Id of a dead letter (quarantine record).
    DeadLetterId, "dead letter id", "dl"
);
uuid_id!(
    /// Id of an audit event.
    AuditId, "audit id", "aud"
);
uuid_id!(
    /// Id of a redrive.
    RedriveId, "redrive id", "rdv"
);
uuid_id!(
    /// One start of one worker process; a reused worker name never revives an old claim.
    Incarnation, "incarnation", "inc"
);
uuid_id!(
    /// Opaque fence of a claim: every change by a worker names it (I-04).
    Token, "claim token", "clm"
);

impl EntryId {
    /// Length of the text form, in bytes.
    pub const TEXT_BYTES: usize = 36;

    /// The text form, written into a buffer: for whoever writes many of them.
    pub fn text(self, buffer: &mut [u8; Self::TEXT_BYTES]) -> &str {
        let (prefix, hex) = buffer.split_at_mut(Self::PREFIX.len() + 1);
        prefix.copy_from_slice(b"ent_");
        self.0.simple().encode_lower(hex);
        core::str::from_utf8(buffer).expect("a prefix and hexadecimal digits are ASCII")
    }

    /// The operation key of an entry whose producer gave none: its own text form.
    pub fn operation_key(self) -> OperationKey {
        OperationKey(Arc::from(self.text(&mut [0; Self::TEXT_BYTES])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_do_not_mix() {
        let id = EntryId::new(Timestamp::from_micros(1_700_000_000_000_000), [7; 10]);
        assert_eq!(id.to_string().parse::<EntryId>(), Ok(id));
        assert_eq!(id.text(&mut [0; EntryId::TEXT_BYTES]), id.to_string());
        assert!(id.to_string().parse::<EnvelopeId>().is_err());
    }

    #[test]
    fn names_refuse_bad_input_and_say_why() {
        for bad in ["", "A", " a", "a b", "-a", &"x".repeat(65)] {
            let error = TenantId::new(bad).expect_err("must be refused");
            assert!(error.to_string().contains("tenant"), "{error}");
        }
        assert!(OperationKey::new("a b").is_err());
        assert!(EnqueueKey::new("source\u{0}id").is_err());
    }

    #[test]
    fn v7_ids_sort_by_time() {
        let early = EntryId::new(Timestamp::from_micros(1_000_000), [255; 10]);
        let late = EntryId::new(Timestamp::from_micros(2_000_000), [0; 10]);
        assert!(early < late);
    }
}
