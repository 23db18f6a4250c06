//! Envelopes without their payload bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use dlo_core::{
    Envelope, EnvelopeId, Payload, PayloadForm, TenantId, Timestamp, TraceContext, dead_letter::PayloadSummary,
};
use serde::{Deserialize, Serialize};

use super::{PersistedError, check_schema, read, write};
use crate::view::EnvelopeView;

/// Schema that [`encode_envelope_meta`] writes.
pub const ENVELOPE_META_SCHEMA: u32 = 1;

/// Stored names of payload forms: nothing, JSON text, any bytes, a descriptor of content that lies elsewhere.
pub const PAYLOAD_FORMS: [&str; 4] = [NONE, JSON, BINARY, DESCRIPTOR];

const NONE: &str = "none";
const JSON: &str = "json";
const BINARY: &str = "binary";
const DESCRIPTOR: &str = "descriptor";

const WHAT: &str = "envelope";

/// Everything of an envelope but its id, its tenant and its payload bytes. Texts and maps are borrowed when written
/// (an enqueue writes one of these per row) and owned when read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta<S, M> {
    event_type: S,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    source: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    source_event_id: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    subject: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    occurred: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    principal: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    region: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    workload: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    correlation_id: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    audit_residue_id: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sequence_hint: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ordering_key: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    policy_version: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    policy_hash: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    trace_parent: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    trace_state: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    content_type: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    schema: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    schema_version: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    headers: Option<M>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    agent: Option<M>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    descriptor: Option<Descriptor<S>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Descriptor<S> {
    kind: S,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hash: Option<S>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    size: Option<u64>,
}

type OwnedMeta = Meta<String, BTreeMap<String, String>>;

/// The stored name of a payload's form, one of [`PAYLOAD_FORMS`].
pub const fn payload_form(payload: &Payload) -> &'static str {
    match payload {
        Payload::None => NONE,
        Payload::Bytes { form: PayloadForm::Json, .. } => JSON,
        Payload::Bytes { form: PayloadForm::Binary, .. } => BINARY,
        Payload::Descriptor { .. } => DESCRIPTOR,
    }
}

/// The bytes that go into the payload column, if the form carries bytes.
pub const fn payload_bytes(payload: &Payload) -> Option<&Bytes> {
    match payload {
        Payload::Bytes { bytes, .. } => Some(bytes),
        Payload::None | Payload::Descriptor { .. } => None,
    }
}

/// A payload as the columns beside the meta text hold it.
#[derive(Clone)]
pub struct StoredPayload<'a> {
    /// Stored form, one of [`PAYLOAD_FORMS`].
    pub form: &'a str,
    /// Bytes after the codec, if the column is not null.
    pub bytes: Option<Bytes>,
}

/// The text of an envelope in [`ENVELOPE_META_SCHEMA`]: all but its id, tenant and payload bytes.
pub fn encode_envelope_meta(envelope: &Envelope) -> String {
    let (trace_parent, trace_state) = match &envelope.trace {
        Some(trace) => (Some(trace.parent.as_str()), trace.state.as_deref()),
        None => (None, None),
    };
    let descriptor = match &envelope.payload {
        Payload::Descriptor { kind, hash, size } => {
            Some(Descriptor { kind: kind.as_str(), hash: hash.as_deref(), size: *size })
        }
        Payload::None | Payload::Bytes { .. } => None,
    };
    write(&Meta {
        event_type: envelope.event_type.as_str(),
        source: envelope.source.as_deref(),
        source_event_id: envelope.source_event_id.as_deref(),
        subject: envelope.subject.as_deref(),
        occurred: envelope.occurred.map(Timestamp::as_micros),
        principal: envelope.principal.as_deref(),
        region: envelope.region.as_deref(),
        workload: envelope.workload.as_deref(),
        correlation_id: envelope.correlation_id.as_deref(),
        audit_residue_id: envelope.audit_residue_id.as_deref(),
        sequence_hint: envelope.sequence_hint,
        ordering_key: envelope.ordering_key.as_deref(),
        policy_version: envelope.policy_version.as_deref(),
        policy_hash: envelope.policy_hash.as_deref(),
        trace_parent,
        trace_state,
        content_type: envelope.content_type.as_deref(),
        schema: envelope.schema.as_deref(),
        schema_version: envelope.schema_version.as_deref(),
        headers: (!envelope.headers.is_empty()).then_some(&envelope.headers),
        agent: (!envelope.agent.is_empty()).then_some(&envelope.agent),
        descriptor,
    })
}

/// Reads an envelope back.
pub fn decode_envelope_meta(
    schema: u32,
    json: &str,
    id: EnvelopeId,
    tenant: TenantId,
    payload: StoredPayload<'_>,
) -> Result<Envelope, PersistedError> {
    let meta = read_meta(schema, json)?;
    let payload = join_payload(payload, meta.descriptor)?;
    let trace = meta.trace_parent.map(|parent| TraceContext { parent, state: meta.trace_state });
    Ok(Envelope {
        id,
        tenant,
        source: meta.source,
        source_event_id: meta.source_event_id,
        event_type: meta.event_type,
        subject: meta.subject,
        occurred: meta.occurred.map(Timestamp::from_micros),
        principal: meta.principal,
        region: meta.region,
        workload: meta.workload,
        correlation_id: meta.correlation_id,
        audit_residue_id: meta.audit_residue_id,
        sequence_hint: meta.sequence_hint,
        ordering_key: meta.ordering_key,
        policy_version: meta.policy_version,
        policy_hash: meta.policy_hash,
        trace,
        content_type: meta.content_type,
        schema: meta.schema,
        schema_version: meta.schema_version,
        headers: meta.headers.unwrap_or_default(),
        agent: meta.agent.unwrap_or_default(),
        payload,
    })
}

/// Reads what is shown of an envelope, without touching its payload bytes (I-13). The content type of `payload` is
/// taken from the text.
pub fn decode_envelope_view(
    schema: u32,
    json: &str,
    id: EnvelopeId,
    payload: PayloadSummary,
) -> Result<EnvelopeView, PersistedError> {
    let meta = read_meta(schema, json)?;
    Ok(EnvelopeView {
        id,
        event_type: meta.event_type,
        source: meta.source,
        source_event_id: meta.source_event_id,
        subject: meta.subject,
        occurred: meta.occurred.map(Timestamp::from_micros),
        correlation_id: meta.correlation_id,
        audit_residue_id: meta.audit_residue_id,
        payload: PayloadSummary { content_type: meta.content_type, ..payload },
    })
}

fn read_meta(schema: u32, json: &str) -> Result<OwnedMeta, PersistedError> {
    check_schema(WHAT, schema, ENVELOPE_META_SCHEMA)?;
    read(WHAT, json)
}

fn join_payload(stored: StoredPayload<'_>, descriptor: Option<Descriptor<String>>) -> Result<Payload, PersistedError> {
    match (stored.form, stored.bytes, descriptor) {
        (NONE, None, None) => Ok(Payload::None),
        (JSON, Some(bytes), None) => Ok(Payload::Bytes { bytes, form: PayloadForm::Json }),
        (BINARY, Some(bytes), None) => Ok(Payload::Bytes { bytes, form: PayloadForm::Binary }),
        (DESCRIPTOR, None, Some(Descriptor { kind, hash, size })) => Ok(Payload::Descriptor { kind, hash, size }),
        (NONE | JSON | BINARY | DESCRIPTOR, ..) => Err(PersistedError::malformed(
            WHAT,
            "json and binary forms need payload bytes, a descriptor form needs its descriptor, and none has others'",
        )),
        _ => Err(PersistedError::malformed(WHAT, "the payload form must be none, json, binary or descriptor")),
    }
}
