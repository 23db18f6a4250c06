//! The payload of an event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dlo_core::{Payload, PayloadForm, limits};
use serde_json::value::RawValue;

use super::{EventError, members::Members};

/// Takes the payload out of the members.
pub(super) fn payload(members: &mut Members<'_>, content_type: Option<&str>) -> Result<Payload, EventError> {
    let encoded = members.take("data_base64").filter(|raw| raw.get() != "null");
    let kind = members.value("dlodatakind")?;
    let hash = members.value("dlodatahash")?;
    let size = members.number("dlodatasize")?;
    match (members.take("data"), encoded, kind) {
        (Some(_), Some(_), _) => Err(EventError::invalid("data_base64", "must not stand beside `data`")),
        (Some(_), None, Some(_)) | (None, Some(_), Some(_)) => {
            Err(EventError::invalid("dlodatakind", "must not stand beside data: it describes data that is elsewhere"))
        }
        (Some(raw), None, None) => json(raw, content_type),
        (None, Some(encoded), None) => base64(encoded),
        (None, None, Some(kind)) => Ok(Payload::Descriptor { kind, hash, size }),
        (None, None, None) => Ok(Payload::None),
    }
}

/// JSON data stays as it stands in the line. Where the content type is another, a JSON text stands for its characters.
fn json(raw: &RawValue, content_type: Option<&str>) -> Result<Payload, EventError> {
    if content_type.is_none_or(is_json) || !raw.get().starts_with('"') {
        return bytes("data", raw.get().as_bytes(), PayloadForm::Json);
    }
    let text: String = serde_json::from_str(raw.get())
        .map_err(|_| EventError::invalid("data", "must be a text of whole characters"))?;
    bytes("data", text.as_bytes(), PayloadForm::Binary)
}

fn base64(raw: &RawValue) -> Result<Payload, EventError> {
    let rule = "must be a text in base64 with padding";
    let encoded: String = serde_json::from_str(raw.get()).map_err(|_| EventError::invalid("data_base64", rule))?;
    let decoded = STANDARD.decode(encoded).map_err(|_| EventError::invalid("data_base64", rule))?;
    bytes("data_base64", &decoded, PayloadForm::Binary)
}

fn bytes(name: &str, bytes: &[u8], form: PayloadForm) -> Result<Payload, EventError> {
    if bytes.len() > limits::MAX_PAYLOAD_BYTES {
        return Err(EventError::invalid(name, "must be at most 16 MiB"));
    }
    Ok(Payload::Bytes { bytes: Bytes::copy_from_slice(bytes), form })
}

/// `application/json`, `text/json`, and every type that ends in `+json`; parameters do not matter.
fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type.ends_with("/json") || media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_json() {
        for json in ["application/json", "Application/JSON; charset=utf-8", "text/json", "application/vnd.a+json"] {
            assert!(is_json(json), "{json}");
        }
        for other in ["text/plain", "application/jsonl", "application/xml; a=b/json"] {
            assert!(!is_json(other), "{other}");
        }
    }
}
