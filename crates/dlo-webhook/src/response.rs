//! What is taken from a response: its status, when to come back, a receipt. Nothing else is kept.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use dlo_core::{Failure, Observed, Outcome, Receipt, Timestamp};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use zeroize::Zeroizing;

/// Response headers that may hold the provider's record id; the first that is well formed is the receipt's id.
pub const RECEIPT_HEADERS: [&str; 3] = ["webhook-receipt", "x-request-id", "request-id"];
/// Longest receipt id, in bytes. It is provider text, so only `A-Z a-z 0-9 . _ : -` are taken.
pub const MAX_RECEIPT_BYTES: usize = 128;
/// Longest `Retry-After` that is passed on (366 days); the policy's own cap is far below.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(366 * 24);

/// Fewest bytes that an id and a secret must share to be called an echo.
const MIN_ECHO_BYTES: usize = 6;

/// The outcome that a response stands for. What its status means is decided in `dlo-core`.
pub(crate) fn outcome(
    status: StatusCode,
    headers: &HeaderMap,
    now: Timestamp,
    sent_secrets: &[Zeroizing<Vec<u8>>],
) -> Outcome {
    if status.is_success() {
        return Outcome::Delivered { receipt: Some(receipt(headers, sent_secrets)) };
    }
    let text = match status.canonical_reason() {
        Some(reason) => format!("HTTP {} ({})", status.as_u16(), reason.to_lowercase()),
        None => format!("HTTP {}", status.as_u16()),
    };
    let mut failure = Failure::new(Observed::Http { status: status.as_u16() }, text);
    failure.retry_after = retry_after(headers, now);
    Outcome::Failed(failure)
}

fn receipt(headers: &HeaderMap, sent_secrets: &[Zeroizing<Vec<u8>>]) -> Receipt {
    let id = RECEIPT_HEADERS
        .iter()
        .filter_map(|name| headers.get(*name)?.to_str().ok())
        .find(|id| is_receipt_id(id) && !sent_secrets.iter().any(|secret| is_echo(id.as_bytes(), secret)));
    match id {
        Some(id) => Receipt { kind: "provider".into(), id: Some(id.into()) },
        None => Receipt { kind: "status".into(), id: None },
    }
}

fn is_receipt_id(text: &str) -> bool {
    (1..=MAX_RECEIPT_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

/// Whether a provider gave a secret of ours, or a part of it, back as its id.
fn is_echo(id: &[u8], secret: &[u8]) -> bool {
    let holds = |outer: &[u8], inner: &[u8]| {
        inner.len() >= MIN_ECHO_BYTES && outer.windows(inner.len()).any(|window| window == inner)
    };
    // `Bearer TOKEN`: the token alone would be the echo.
    holds(secret, id) || secret.split(|b| *b == b' ').any(|part| holds(id, part))
}

/// `Retry-After` in whole seconds or as an HTTP date; what is neither is ignored.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let date: SystemTime = httpdate::parse_http_date(text).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::EPOCH.after(since_epoch).since(now).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(value: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().expect("a header value"));
        let now = "2026-11-30T12:00:00Z".parse().expect("a time");
        retry_after(&headers, now).map(|span| span.as_secs())
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        let year = MAX_RETRY_AFTER.as_secs();
        let cases = [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(year)),
            ("Mon, 30 Nov 2026 12:00:30 GMT", Some(30)),
            ("Monday, 30-Nov-26 12:01:00 GMT", Some(60)),
            ("Mon Nov 30 12:00:05 2026", Some(5)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(year)),
            ("-5", None),
            ("1.5", None),
            ("+5", None),
            ("soon", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(after(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_receipt_id_is_short_plain_and_no_echo_of_a_secret() {
        let secrets = [Zeroizing::new(b"Bearer tok-canary-1".to_vec())];
        let long = "a".repeat(129);
        let cases = [
            ("req_1:2.3-4", Some("req_1:2.3-4")),
            ("two words", None),
            ("<script>", None),
            (long.as_str(), None),
            ("tok-canary-1", None),
            ("canary", None),
            ("x-tok-canary-1-x", None),
            ("tok", Some("tok")),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", value.parse().expect("a header value"));
            let receipt = receipt(&headers, &secrets);
            assert_eq!(receipt.id.as_ref().map(dlo_core::text::Bounded::as_str), expected, "{value:?}");
            assert_eq!(receipt.kind.as_str(), if expected.is_some() { "provider" } else { "status" });
        }
    }
}
