//! The envelope as a CloudEvent 1.0, in binary or structured mode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dlo_core::{Envelope, Payload, PayloadForm};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::settings::{Disclose, Mode};

/// `source` of an event whose producer gave none: a URI reference is required there.
pub const DEFAULT_SOURCE: &str = "urn:dlo";
/// Media type of structured mode.
pub const STRUCTURED_TYPE: &str = "application/cloudevents+json; charset=UTF-8";

/// The envelope can't be written as a request. Texts name attributes, never their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unwritable(pub(crate) &'static str);

/// What an envelope becomes: headers and body of its request.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Writes an envelope in the given mode.
pub(crate) fn write(envelope: &Envelope, mode: Mode, disclose: &[Disclose]) -> Result<Written, Unwritable> {
    let attributes = Attributes::of(envelope, disclose);
    let mut written = match mode {
        Mode::Binary => binary(envelope, &attributes)?,
        Mode::Structured => structured(envelope, &attributes)?,
    };
    for (name, value) in &attributes.outside {
        put(&mut written.headers, name, value)?;
    }
    if let Some(trace) = envelope.trace.as_ref().filter(|trace| is_traceparent(&trace.parent)) {
        put(&mut written.headers, "traceparent", &trace.parent)?;
        if let Some(state) = trace.state.as_deref().filter(|state| crate::header::is_value(state)) {
            written.headers.insert("tracestate", HeaderValue::from_str(state).map_err(|_| BAD_HEADER)?);
        }
    }
    Ok(written)
}

const BAD_HEADER: Unwritable = Unwritable("an attribute can't be written as a header");

/// Attributes in the order in which they are written.
struct Attributes<'a> {
    /// CloudEvents context attributes, `datacontenttype` left out.
    context: Vec<(&'a str, String)>,
    /// What has no place in a CloudEvent: names that are no attribute names. Sent as headers in both modes.
    outside: Vec<(String, &'a str)>,
}

impl<'a> Attributes<'a> {
    fn of(envelope: &'a Envelope, disclose: &[Disclose]) -> Self {
        let shown = |group| disclose.contains(&group);
        let id = envelope.source_event_id.clone().unwrap_or_else(|| envelope.id.to_string());
        let source = envelope.source.clone().unwrap_or_else(|| DEFAULT_SOURCE.to_owned());
        let mut context: Vec<(&str, String)> = vec![
            ("specversion", "1.0".to_owned()),
            ("id", id),
            ("source", source),
            ("type", envelope.event_type.clone()),
        ];
        let (kind, hash, size) = match &envelope.payload {
            Payload::Descriptor { kind, hash, size } => (Some(kind.clone()), hash.clone(), *size),
            Payload::None | Payload::Bytes { .. } => (None, None, None),
        };
        let optional = [
            ("subject", envelope.subject.clone()),
            ("time", envelope.occurred.map(|at| at.to_string())),
            ("dataschema", envelope.schema.clone()),
            ("schemaversion", envelope.schema_version.clone()),
            ("correlationid", envelope.correlation_id.clone()),
            ("auditresidueid", envelope.audit_residue_id.clone()),
            ("orderingkey", envelope.ordering_key.clone()),
            ("sequencehint", envelope.sequence_hint.map(|hint| hint.to_string())),
            ("traceparent", envelope.trace.as_ref().map(|trace| trace.parent.clone())),
            ("tracestate", envelope.trace.as_ref().and_then(|trace| trace.state.clone())),
            ("principal", envelope.principal.clone().filter(|_| shown(Disclose::Principal))),
            ("workload", envelope.workload.clone().filter(|_| shown(Disclose::Workload))),
            ("region", envelope.region.clone().filter(|_| shown(Disclose::Region))),
            ("policyversion", envelope.policy_version.clone().filter(|_| shown(Disclose::Policy))),
            ("policyhash", envelope.policy_hash.clone().filter(|_| shown(Disclose::Policy))),
            ("dlodatakind", kind),
            ("dlodatahash", hash),
            ("dlodatasize", size.map(|size| size.to_string())),
        ];
        let reserved: Vec<&str> = optional.iter().map(|(name, _)| *name).chain(["data", "datacontenttype"]).collect();
        // CloudEvents forbids attributes without a value.
        context.extend(optional.into_iter().filter_map(|(name, value)| {
            let value = value.filter(|value| !value.is_empty())?;
            Some((name, value))
        }));
        let mut outside = Vec::new();
        for (name, value) in envelope.headers.iter().filter(|(_, value)| !value.is_empty()) {
            if !is_attribute_name(name) {
                outside.push((format!("dlo-header-{name}"), value.as_str()));
            } else if !reserved.contains(&name.as_str()) && !context.iter().any(|(taken, _)| taken == name) {
                context.push((name, value.clone()));
            }
        }
        if shown(Disclose::Agent) {
            outside.extend(envelope.agent.iter().map(|(name, value)| (format!("dlo-agent-{name}"), value.as_str())));
        }
        Self { context, outside }
    }
}

fn is_attribute_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// W3C trace context, version 00 and later: what is not well formed is not passed on as a trace header.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    };
    let mut parts = text.split('-');
    let mut next = |length| parts.next().is_some_and(|part| is_hex(part, length));
    next(2)
        && next(32)
        && next(16)
        && next(2)
        && !text.starts_with("ff")
        && text.len() <= 256
        && text.bytes().all(|b| b.is_ascii_graphic())
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), Unwritable> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BAD_HEADER)?;
    let value = HeaderValue::from_str(&percent_encode(value)).map_err(|_| BAD_HEADER)?;
    headers.insert(name, value);
    Ok(())
}

/// Percent-encoding of the HTTP binding (3.1.3.2): space, `"`, `%` and all that is not visible ASCII.
fn percent_encode(text: &str) -> String {
    use core::fmt::Write;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && byte != b'"' && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string can't fail");
        }
    }
    encoded
}

/// The media type of the payload, as given or as its form says.
fn content_type(envelope: &Envelope) -> Option<&str> {
    let by_form = match &envelope.payload {
        Payload::Bytes { form: PayloadForm::Json, .. } => Some("application/json"),
        Payload::Bytes { form: PayloadForm::Binary, .. } => Some("application/octet-stream"),
        Payload::None | Payload::Descriptor { .. } => None,
    };
    envelope.content_type.as_deref().or(by_form)
}

fn binary(envelope: &Envelope, attributes: &Attributes<'_>) -> Result<Written, Unwritable> {
    let mut headers = HeaderMap::new();
    for (name, value) in &attributes.context {
        put(&mut headers, &format!("ce-{name}"), value)?;
    }
    if let Some(media_type) = content_type(envelope) {
        if media_type.trim_start().to_ascii_lowercase().starts_with("application/cloudevents") {
            return Err(Unwritable(
                "`datacontenttype` is a CloudEvents media type, which binary mode can't carry: use structured mode",
            ));
        }
        if !crate::header::is_value(media_type) {
            return Err(Unwritable("`datacontenttype` can't be written as a header: it must be visible ASCII"));
        }
        headers.insert("content-type", HeaderValue::from_str(media_type).map_err(|_| BAD_HEADER)?);
    }
    let body = match &envelope.payload {
        Payload::Bytes { bytes, .. } => bytes.clone(),
        Payload::None | Payload::Descriptor { .. } => Bytes::new(),
    };
    Ok(Written { headers, body })
}

fn structured(envelope: &Envelope, attributes: &Attributes<'_>) -> Result<Written, Unwritable> {
    let size = usize::try_from(envelope.payload.size()).unwrap_or(0);
    let carried = matches!(envelope.payload, Payload::Bytes { .. });
    let mut body = Vec::with_capacity(if carried { size + size / 2 } else { 0 } + 1_024);
    for (at, (name, value)) in attributes.context.iter().enumerate() {
        body.push(if at == 0 { b'{' } else { b',' });
        member(&mut body, name, value);
    }
    if let Some(media_type) = &envelope.content_type {
        body.push(b',');
        member(&mut body, "datacontenttype", media_type);
    }
    match &envelope.payload {
        Payload::None | Payload::Descriptor { .. } => {}
        Payload::Bytes { bytes, form: PayloadForm::Json } => {
            // Checked, so that one event can't break out of its member; then copied as it stands.
            serde_json::from_slice::<&RawValue>(bytes)
                .map_err(|_| Unwritable("`data` is marked as JSON and is not one JSON value"))?;
            body.extend_from_slice(b",\"data\":");
            body.extend_from_slice(bytes);
        }
        Payload::Bytes { bytes, form: PayloadForm::Binary } => {
            body.extend_from_slice(b",\"data_base64\":\"");
            body.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            body.push(b'"');
        }
    }
    body.push(b'}');
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(STRUCTURED_TYPE));
    Ok(Written { headers, body: body.into() })
}

fn member(body: &mut Vec<u8>, name: &str, value: &str) {
    for (text, end) in [(name, Some(b':')), (value, None)] {
        serde_json::to_writer(&mut *body, text).expect("text is JSON and a vector takes any length");
        body.extend(end);
    }
}
