//! What an emitter answers for one emission, and the evidence that it gives.

use core::time::Duration;

use crate::{Class, Reason, Timestamp, text::Code, text::ErrorText};

/// How far a request got before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// No byte of the request can have left.
    NotSent,
    /// The first byte may have left, and no answer came.
    Sent,
    /// An answer came.
    Answered,
    /// The emitter can't say.
    Unknown,
}

impl Phase {
    /// Stable lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Unknown => "unknown",
        }
    }
}

/// Kinds of transport failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportKind {
    /// Name resolution failed.
    Dns,
    /// Connection refused, unreachable, reset before use.
    Connect,
    /// Handshake cut or failed for a passing cause.
    TlsHandshake,
    /// The peer's certificate, or ours, is refused.
    TlsCertificate,
    /// No answer in time.
    Timeout,
    /// The connection ended without an answer.
    Cut,
    /// An answer came that can't be read or is larger than its bound.
    AnswerUnreadable,
    /// The address is in a denied range (SSRF).
    AddressDenied,
    /// The request can't be built from this envelope.
    RequestInvalid,
    /// A named secret can't be read.
    CredentialUnavailable,
}

/// Evidence of a failure, before it is classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// An HTTP answer that is not a success.
    Http {
        /// Status code.
        status: u16,
    },
    /// No usable answer.
    Transport {
        /// What failed.
        kind: TransportKind,
        /// How far it got.
        phase: Phase,
    },
    /// An emitter's own judgement, with its own reason.
    Custom {
        /// Its class, if it can tell.
        class: Option<Class>,
        /// Its reason code.
        reason: Reason,
        /// How far it got.
        phase: Phase,
    },
    /// Nothing is known.
    Nothing,
}

/// Why an emission did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The evidence.
    pub observed: Observed,
    /// The provider's own code, if it gave one; never body text.
    pub provider_code: Option<Code>,
    /// How long the provider asks to wait (a minimum, capped by `retry_after_cap`).
    pub retry_after: Option<Duration>,
    /// Text composed by us from status, reason and error kind: no byte of a body or header (I-13).
    pub text: ErrorText,
}

impl Failure {
    /// A failure of that evidence, with its text.
    pub fn new(observed: Observed, text: impl AsRef<str>) -> Self {
        Self { observed, provider_code: None, retry_after: None, text: ErrorText::new(text) }
    }

    /// A failure with the emitter's own class and reason.
    pub fn custom(class: Class, reason: Reason, phase: Phase, text: impl AsRef<str>) -> Self {
        Self::new(Observed::Custom { class: Some(class), reason, phase }, text)
    }
}

/// A provider's proof that it took the thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Kind of receipt: `provider`, `status`, `reconciled`.
    pub kind: Code,
    /// Provider's record id, if it gave one.
    pub id: Option<Code>,
}

/// What an emitter answers for one emission (S-03 vocabulary plus Ambiguous).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted.
    Delivered {
        /// Proof, if the provider gives one.
        receipt: Option<Receipt>,
    },
    /// Taken note of, but not done: ask again after the deferred delay. Nothing is charged.
    Pending,
    /// Put off by the provider or by policy. Nothing is charged.
    Deferred {
        /// Not before this time, if it said so.
        until: Option<Timestamp>,
    },
    /// Failed; retryability is not implied.
    Failed(Failure),
    /// Failed, and the emitter knows that a retry may succeed: counts as evidence of transient.
    RetryableFailure(Failure),
    /// The provider says that it dead-lettered it.
    DeadLettered(Failure),
    /// Sent, and there is no authoritative answer.
    Ambiguous(Failure),
}

impl Outcome {
    /// Stable name, as stored in attempts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Pending => "pending",
            Self::Deferred { .. } => "deferred",
            Self::Failed(_) => "failed",
            Self::RetryableFailure(_) => "retryable_failure",
            Self::DeadLettered(_) => "dead_lettered",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}
