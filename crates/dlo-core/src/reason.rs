//! Class and reason: why something failed, in five classes and stable dotted codes.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use crate::limits;

/// Failure class (C-007…C-011). The class decides *whether* a failure may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Not sent or not taken; expected to pass.
    Transient,
    /// The same input will fail again.
    Deterministic,
    /// Credential, permission, configuration of the destination.
    Configuration,
    /// It may already have happened.
    Ambiguous,
    /// No evidence.
    Unknown,
}

impl Class {
    /// All classes, in the order of the design.
    pub const ALL: [Self; 5] =
        [Self::Transient, Self::Deterministic, Self::Configuration, Self::Ambiguous, Self::Unknown];

    /// Stable lower-case name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Deterministic => "deterministic",
            Self::Configuration => "configuration",
            Self::Ambiguous => "ambiguous",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Class {
    type Err = crate::id::ParseIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|class| class.as_str() == text).ok_or_else(|| crate::id::ParseIdError {
            kind: "class",
            value: text.chars().take(128).collect(),
            rule: "transient, deterministic, configuration, ambiguous or unknown",
        })
    }
}

/// Stable dotted reason code beside the class, for example `http.too_many_requests` (C-027).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(Cow<'static, str>);

impl Reason {
    /// One of the product's own codes.
    pub const fn known(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }

    /// A custom code: 1 to 128 bytes of `a-z`, `0-9`, `_` and `.`.
    pub fn new(code: &str) -> Result<Self, crate::id::ParseIdError> {
        let valid = !code.is_empty()
            && code.len() <= limits::MAX_CODE_BYTES
            && code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.');
        if valid {
            Ok(Self(Cow::Owned(code.to_owned())))
        } else {
            Err(crate::id::ParseIdError {
                kind: "reason",
                value: code.chars().take(128).collect(),
                rule: "1 to 128 bytes of a-z, 0-9, `_`, `.`",
            })
        }
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$meta])* pub const $name: Reason = Reason::known($code);)*
        /// Every reason code of the product; each has a page in `docs/errors/`.
        pub const CODES: &[&str] = &[$($code),*];
    };
}

codes! {
    /// Dead-lettered: the allowance is used up.
    MAX_RETRY_ATTEMPTS_EXCEEDED = "outbox.max_retry_attempts_exceeded";
    /// Dead-lettered: older than `max_age`, or past `deliver_by`.
    MAX_AGE_EXCEEDED = "outbox.max_age_exceeded";
    /// Dead-lettered: the last send is unanswered and may not be repeated.
    OUTCOME_AMBIGUOUS = "outbox.outcome_ambiguous";
    /// Dead-lettered: the worker crashed while this entry was the only suspect, too often.
    WORKER_LOST = "outbox.worker_lost";
    /// Dead-lettered: the stored row could not be read.
    ENTRY_UNREADABLE = "outbox.entry_unreadable";
    /// An entry was dead-lettered by a person out of manual review.
    DEAD_LETTERED_BY_OPERATOR = "outbox.dead_lettered_by_operator";
    /// The process has no emitter of this kind: the destination is held.
    EMITTER_UNKNOWN = "outbox.emitter_unknown";
    /// A claim ended without an outcome, no send mark.
    CLAIM_EXPIRED = "outbox.claim_expired";
    /// A claim ended without an outcome after the send mark.
    CLAIM_EXPIRED_AFTER_SEND = "outbox.claim_expired_after_send";
    /// The emitter returned an error without evidence, or its future failed.
    EMISSION_EXCEPTION = "emission.exception";
    /// The emitter panicked.
    EMISSION_PANIC = "emission.panic";
    /// The emitter answered for fewer emissions than it was given.
    EMISSION_NO_ANSWER = "emission.no_answer";
    /// The emitter did not answer before the deadline.
    EMISSION_DEADLINE = "emission.deadline_exceeded";
    /// A shutdown cut the emission after its grace.
    EMISSION_INTERRUPTED = "emission.interrupted";
    /// The emitter answered Pending.
    EMISSION_PENDING = "emission.pending";
    /// The emitter answered Deferred without a reason.
    EMISSION_DEFERRED = "emission.deferred";
    /// The emitter answered Failed without a reason.
    EMISSION_FAILED = "emission.failed";
    /// The emitter answered RetryableFailure without a reason.
    EMISSION_RETRYABLE = "emission.retryable";
    /// The emitter answered Ambiguous without a reason.
    EMISSION_AMBIGUOUS = "emission.ambiguous";
    /// The provider says that it dead-lettered it.
    EMISSION_DEAD_LETTERED = "emission.deadlettered";
    /// The address could not be resolved.
    DNS_FAILED = "transport.dns";
    /// The connection could not be made.
    CONNECT_FAILED = "transport.connect";
    /// The TLS handshake was cut or timed out.
    TLS_HANDSHAKE_CUT = "transport.tls_handshake";
    /// The peer's certificate is not accepted.
    TLS_CERTIFICATE = "transport.tls_certificate";
    /// Timed out before the first byte was sent.
    TIMEOUT_BEFORE_SEND = "transport.timeout_before_send";
    /// Timed out after the first byte was sent.
    TIMEOUT_AFTER_SEND = "transport.timeout_after_send";
    /// The connection was cut after the first byte was sent.
    CUT_AFTER_SEND = "transport.cut_after_send";
    /// The answer was not understood (protocol error, or larger than the bound).
    ANSWER_UNREADABLE = "transport.answer_unreadable";
    /// The address is in a denied range.
    ADDRESS_DENIED = "transport.address_denied";
    /// The request could not be built from the envelope.
    REQUEST_INVALID = "transport.request_invalid";
    /// A secret that the destination names can't be read.
    CREDENTIAL_UNAVAILABLE = "transport.credential_unavailable";
    /// 3xx: redirects are refused.
    HTTP_REDIRECT = "http.redirect_refused";
    /// 400.
    HTTP_BAD_REQUEST = "http.bad_request";
    /// 401, 407.
    HTTP_UNAUTHORIZED = "http.unauthorized";
    /// 402.
    HTTP_PAYMENT_REQUIRED = "http.payment_required";
    /// 403.
    HTTP_FORBIDDEN = "http.forbidden";
    /// 404.
    HTTP_NOT_FOUND = "http.not_found";
    /// 408.
    HTTP_REQUEST_TIMEOUT = "http.request_timeout";
    /// 409.
    HTTP_CONFLICT = "http.conflict";
    /// 410.
    HTTP_GONE = "http.gone";
    /// 412, 428.
    HTTP_PRECONDITION = "http.precondition_failed";
    /// 413.
    HTTP_TOO_LARGE = "http.payload_too_large";
    /// 415.
    HTTP_MEDIA_TYPE = "http.unsupported_media_type";
    /// 422.
    HTTP_UNPROCESSABLE = "http.unprocessable";
    /// 451.
    HTTP_LEGAL = "http.unavailable_for_legal_reasons";
    /// 429.
    HTTP_TOO_MANY_REQUESTS = "http.too_many_requests";
    /// Another 4xx.
    HTTP_CLIENT_ERROR = "http.client_error";
    /// 500.
    HTTP_SERVER_ERROR = "http.server_error";
    /// 501, 505.
    HTTP_NOT_IMPLEMENTED = "http.not_implemented";
    /// 502.
    HTTP_BAD_GATEWAY = "http.bad_gateway";
    /// 503, 529.
    HTTP_UNAVAILABLE = "http.unavailable";
    /// 504.
    HTTP_GATEWAY_TIMEOUT = "http.gateway_timeout";
    /// A status that no rule names.
    HTTP_UNEXPECTED = "http.unexpected_status";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_codes_are_valid_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for code in CODES {
            Reason::new(code).expect("valid code");
            assert!(seen.insert(code), "{code} twice");
        }
    }
}
