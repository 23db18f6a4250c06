//! Header names and values: which are ours, which a setting may use.

use reqwest::header::HeaderName;

/// Longest header value of a setting, in bytes.
const MAX_VALUE_BYTES: usize = 2_048;

/// Which setting a header name stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderRule {
    /// `headers`: stored and shown.
    Plain,
    /// `secret_headers`: a reference.
    Secret,
}

/// Names that this emitter or the HTTP client sets, or that would change how the connection works.
const RESERVED: [&str; 22] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Beginnings of names that this emitter sets.
const RESERVED_PREFIXES: [&str; 3] = ["ce-", "dlo-", "webhook-"];

/// Words in a header name that say that its value is a secret.
const SECRET_WORDS: [&str; 6] = ["api-key", "apikey", "auth", "password", "secret", "token"];

/// The lower-case form of a header name in a setting, or what is wrong with it.
pub(crate) fn setting_name(name: &str, rule: HeaderRule) -> Result<String, &'static str> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "is not a header name")?;
    let name = name.as_str();
    if RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err("is a header that the webhook emitter sets itself");
    }
    if rule == HeaderRule::Plain && SECRET_WORDS.iter().any(|word| name.contains(word)) {
        return Err("looks like a secret: put it into `secret_headers`, as a reference");
    }
    Ok(name.to_owned())
}

/// Whether a text can be a header value: visible ASCII, with spaces inside only.
pub(crate) fn is_value(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_VALUE_BYTES
        && text.trim() == text
        && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}
