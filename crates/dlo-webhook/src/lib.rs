//! The webhook emitter: hands envelopes to an HTTP endpoint as signed CloudEvents, at least once.
//!
//! **What it is for.** [`WebhookFactory`] makes the emitter of a destination whose kind is [`KIND`]; [`validate`]
//! checks its settings when it is applied; [`verify`] is the receiver's side of the signature.
//!
//! **What it must never do.** Send a request twice by itself, follow a redirect, use a proxy, connect to an address
//! that was not checked, say "not sent" of a request that may have left, or let a secret, a payload byte or provider
//! text into an outcome (I-13). It judges nothing: whether a failure is retried is decided in `dlo-core`.
//!
//! ```
//! use std::sync::Arc;
//! use dlo_webhook::{WebhookFactory, validate};
//!
//! struct At(dlo_core::Timestamp);
//! impl dlo_ports::Clock for At {
//!     fn now(&self) -> dlo_core::Timestamp {
//!         self.0
//!     }
//! }
//!
//! validate(r#"{"url": "https://hooks.example.com/in", "secrets": ["env:HOOK_SECRET"]}"#)?;
//! let error = validate(r#"{"url": "https://169.254.169.254/"}"#).unwrap_err();
//! assert!(error.to_string().contains("denied range (link-local)"));
//!
//! let factory = WebhookFactory::new(Arc::new(At(dlo_core::Timestamp::EPOCH)));
//! # let _ = factory;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc = include_str!("../docs/settings.md")]
#![doc = include_str!("../docs/request.md")]

mod address;
mod client;
mod cloudevents;
mod emitter;
mod factory;
mod failure;
mod gate;
mod header;
mod ping;
mod resolve;
mod response;
mod secret;
mod settings;
mod sign;

pub use address::AllowPrivate;
pub use client::{POOL_IDLE, POOL_SIZE};
pub use cloudevents::{DEFAULT_SOURCE, STRUCTURED_TYPE};
pub use factory::{WebhookFactory, validate};
pub use ping::{PING_TYPE, ping};
pub use resolve::{Resolver, SystemResolver};
pub use response::{MAX_RECEIPT_BYTES, MAX_RETRY_AFTER, RECEIPT_HEADERS};
pub use secret::{EnvLookup, MAX_SECRET_BYTES, MIN_SECRET_BYTES, Secret, SecretError, SecretRef};
pub use settings::{
    DEFAULT_CONNECT_TIMEOUT, DEFAULT_RESPONSE_LIMIT, Disclose, Endpoint, MAX_CONNECT_TIMEOUT, MAX_RANGES,
    MAX_RESPONSE_LIMIT, MAX_SECRETS, MAX_STATIC_HEADERS, MAX_URL_BYTES, Mode, Settings, SettingsError,
};
pub use sign::{
    ID_HEADER, MAX_SIGNATURES, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER, VerifyError, sign, verify,
};

/// Kind name of this emitter in a destination.
pub const KIND: &str = "webhook";

/// All codes of this crate's errors.
pub const CODES: [&str; 6] = [
    SettingsError::CODE,
    SecretError::CODE,
    "webhook.signature_missing",
    "webhook.timestamp_invalid",
    "webhook.timestamp_outside_tolerance",
    "webhook.signature_mismatch",
];

/// Most bytes of a request's headers (32 KiB). Common servers refuse more, and a head of this size always fits the
/// client's write buffer, on which the proof that nothing was sent rests.
pub const MAX_HEADER_BYTES: usize = 32 * 1_024;
