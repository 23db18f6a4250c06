//! Signatures of Standard Webhooks 1.0: made here for the receiver, checked by the receiver.

use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dlo_core::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::secret::Secret;

/// Header with the message id: the operation key, the same on every try.
pub const ID_HEADER: &str = "webhook-id";
/// Header with the time of this try, in whole seconds since the Unix epoch.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// Header with the signatures, one a secret, separated by spaces.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// Most signatures that [`verify`] looks at; more is somebody else's work for us.
pub const MAX_SIGNATURES: usize = 32;

fn mac(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("HMAC takes a key of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

/// The value of [`SIGNATURE_HEADER`]: `v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`, for each secret.
///
/// While a secret is being replaced both are given, so that a receiver with either one can verify.
pub fn sign(secrets: &[Secret], id: &str, timestamp: i64, body: &[u8]) -> String {
    let timestamp = timestamp.to_string();
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("v1,{}", STANDARD.encode(mac(secret, id, &timestamp, body).finalize().into_bytes())))
        .collect();
    signatures.join(" ")
}

/// The three headers that a receiver needs for [`verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedHeaders<'a> {
    /// Value of [`ID_HEADER`].
    pub id: &'a str,
    /// Value of [`TIMESTAMP_HEADER`].
    pub timestamp: &'a str,
    /// Value of [`SIGNATURE_HEADER`].
    pub signature: &'a str,
}

impl<'a> SignedHeaders<'a> {
    /// Takes them from whatever holds the request's headers.
    ///
    /// # Errors
    /// [`VerifyError::MissingHeader`] names the first that is not there.
    pub fn find(header: impl Fn(&'static str) -> Option<&'a str>) -> Result<Self, VerifyError> {
        let need = |name| header(name).ok_or(VerifyError::MissingHeader { name });
        Ok(Self { id: need(ID_HEADER)?, timestamp: need(TIMESTAMP_HEADER)?, signature: need(SIGNATURE_HEADER)? })
    }
}

/// Why a request is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A header is missing.
    #[error("header `{name}` is missing: only a signed request can be verified")]
    MissingHeader {
        /// Its name.
        name: &'static str,
    },
    /// The timestamp is not a whole number of seconds.
    #[error("header `webhook-timestamp` must be whole seconds since the Unix epoch")]
    BadTimestamp,
    /// The timestamp is too far from now: a replay, or clocks that disagree.
    #[error("header `webhook-timestamp` is {apart} s from now, more than the tolerance of {tolerance} s")]
    OutsideTolerance {
        /// Seconds between it and now.
        apart: u64,
        /// Seconds allowed.
        tolerance: u64,
    },
    /// No signature fits any secret.
    #[error("no `v1` signature in `webhook-signature` fits: wrong secret, or the body or headers were changed")]
    NoMatch,
}

impl VerifyError {
    /// Stable dotted code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingHeader { .. } => "webhook.signature_missing",
            Self::BadTimestamp => "webhook.timestamp_invalid",
            Self::OutsideTolerance { .. } => "webhook.timestamp_outside_tolerance",
            Self::NoMatch => "webhook.signature_mismatch",
        }
    }
}

/// The receiver's check: any signature that fits any of `secrets`, within `tolerance` of `now` (300 s is usual).
///
/// `body` must be the bytes as they arrived, not parsed and written again. Comparison is in constant time. A request
/// that passes may still be a repetition: delivery is at least once, so keep `headers.id` and drop what was seen.
///
/// ```
/// use core::time::Duration;
/// use dlo_webhook::{Secret, SignedHeaders, sign, verify};
///
/// let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let body = br#"{"test": 2432232314}"#;
/// // What arrives:
/// let signature = sign(&[secret.clone()], "msg_1", 1_614_265_330, body);
/// let request = [("webhook-id", "msg_1"), ("webhook-timestamp", "1614265330"), ("webhook-signature", &*signature)];
///
/// let headers = SignedHeaders::find(|name| request.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))?;
/// let now = dlo_core::Timestamp::from_micros(1_614_265_340_000_000);
/// verify(&[secret], &headers, body, now, Duration::from_secs(300))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`VerifyError`]; answer 401 and nothing more.
pub fn verify(
    secrets: &[Secret],
    headers: &SignedHeaders<'_>,
    body: &[u8],
    now: Timestamp,
    tolerance: Duration,
) -> Result<(), VerifyError> {
    let digits = !headers.timestamp.is_empty() && headers.timestamp.bytes().all(|b| b.is_ascii_digit());
    let sent: i64 = headers.timestamp.parse().ok().filter(|_| digits).ok_or(VerifyError::BadTimestamp)?;
    let apart = now.as_micros().div_euclid(1_000_000).abs_diff(sent);
    if apart > tolerance.as_secs() {
        return Err(VerifyError::OutsideTolerance { apart, tolerance: tolerance.as_secs() });
    }
    let given = headers.signature.split(' ').take(MAX_SIGNATURES).filter_map(|part| part.strip_prefix("v1,"));
    for signature in given.filter_map(|encoded| STANDARD.decode(encoded).ok()) {
        for secret in secrets {
            if mac(secret, headers.id, headers.timestamp, body).verify_slice(&signature).is_ok() {
                return Ok(());
            }
        }
    }
    Err(VerifyError::NoMatch)
}
