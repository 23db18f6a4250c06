//! The provider-neutral thing to emit.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    DestinationName, EnqueueKey, EnvelopeId, OperationKey, ProducerId, TenantId, Timestamp, limits, text::Code,
};

/// What the payload bytes are, so that an emitter can rebuild the CloudEvent that they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadForm {
    /// JSON text as it stood in `data`; structured mode writes it into `data`.
    Json,
    /// Any bytes; structured mode writes them into `data_base64`.
    Binary,
}

/// The body of an envelope.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// Nothing to carry.
    None,
    /// The bytes themselves, at most [`limits::MAX_PAYLOAD_BYTES`].
    Bytes {
        /// The bytes as the producer gave them.
        bytes: Bytes,
        /// How to write them into a structured event.
        form: PayloadForm,
    },
    /// A description of content that lies elsewhere.
    Descriptor {
        /// What it is.
        kind: String,
        /// Its hash, in the producer's notation.
        hash: Option<String>,
        /// Its size in bytes.
        size: Option<u64>,
    },
}

impl core::fmt::Debug for Payload {
    /// Sizes only: no payload byte reaches a log (I-13).
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bytes { bytes, form } => write!(f, "Bytes({} bytes, {form:?})", bytes.len()),
            Self::Descriptor { kind, size, .. } => write!(f, "Descriptor({kind}, {size:?})"),
        }
    }
}

impl Payload {
    /// JSON text, carried as it stands. Not checked here: structured mode refuses what is not one JSON value.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self::Bytes { bytes: text.into(), form: PayloadForm::Json }
    }

    /// Number of bytes carried, or described.
    pub fn size(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::Descriptor { size, .. } => size.unwrap_or(0),
        }
    }

    /// SHA-256 of the bytes (raw, never canonicalised), if there are bytes.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match self {
            Self::Bytes { bytes, .. } => {
                use sha2::Digest;
                Some(sha2::Sha256::digest(bytes).into())
            }
            Self::None | Self::Descriptor { .. } => None,
        }
    }
}

/// W3C trace context, carried as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`.
    pub state: Option<String>,
}

/// The envelope: what is to be emitted, whatever the provider (S-05, C-019…C-024).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Ours; shared by the entries of a fan-out.
    pub id: EnvelopeId,
    /// Owner of the data.
    pub tenant: TenantId,
    /// CloudEvents `source`: where the event came from.
    pub source: Option<String>,
    /// CloudEvents `id`: the source's own event id.
    pub source_event_id: Option<String>,
    /// CloudEvents `type`.
    pub event_type: String,
    /// CloudEvents `subject`.
    pub subject: Option<String>,
    /// CloudEvents `time`: when it happened.
    pub occurred: Option<Timestamp>,
    /// On whose behalf.
    pub principal: Option<String>,
    /// Where the data may be.
    pub region: Option<String>,
    /// Which workload produced it.
    pub workload: Option<String>,
    /// Correlation across services; not unique.
    pub correlation_id: Option<String>,
    /// Audit residue id, also called decision receipt id.
    pub audit_residue_id: Option<String>,
    /// The producer's own order hint; never used for selection.
    pub sequence_hint: Option<u64>,
    /// Key within which order may be asked for.
    pub ordering_key: Option<String>,
    /// Version of the policy that allowed it.
    pub policy_version: Option<String>,
    /// Hash of that policy.
    pub policy_hash: Option<String>,
    /// Trace context at enqueue.
    pub trace: Option<TraceContext>,
    /// Media type of the payload.
    pub content_type: Option<String>,
    /// CloudEvents `dataschema`.
    pub schema: Option<String>,
    /// Version of that schema.
    pub schema_version: Option<String>,
    /// Further CloudEvents extension attributes and producer headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Agent context (model, tool, run …) as attribute names and values.
    pub agent: BTreeMap<String, String>,
    /// What is carried.
    pub payload: Payload,
}

/// An envelope broke a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("envelope attribute `{attribute}` {rule} (seen: {seen})")]
pub struct EnvelopeError {
    /// Which attribute.
    pub attribute: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Length or count that was seen; never content.
    pub seen: usize,
}

impl Envelope {
    /// A minimal envelope; set the other fields by name.
    pub fn new(id: EnvelopeId, tenant: TenantId, event_type: impl Into<String>, payload: Payload) -> Self {
        Self {
            id,
            tenant,
            source: None,
            source_event_id: None,
            event_type: event_type.into(),
            subject: None,
            occurred: None,
            principal: None,
            region: None,
            workload: None,
            correlation_id: None,
            audit_residue_id: None,
            sequence_hint: None,
            ordering_key: None,
            policy_version: None,
            policy_hash: None,
            trace: None,
            content_type: None,
            schema: None,
            schema_version: None,
            headers: BTreeMap::new(),
            agent: BTreeMap::new(),
            payload,
        }
    }

    /// Checks every bound; called by each store before it writes.
    pub fn validate(&self) -> Result<(), EnvelopeError> {
        let fail = |attribute, rule, seen| Err(EnvelopeError { attribute, rule, seen });
        if self.event_type.trim().is_empty() {
            return fail("type", "must not be blank", self.event_type.len());
        }
        let texts = [
            ("type", Some(self.event_type.as_str())),
            ("source", self.source.as_deref()),
            ("id", self.source_event_id.as_deref()),
            ("subject", self.subject.as_deref()),
            ("principal", self.principal.as_deref()),
            ("region", self.region.as_deref()),
            ("workload", self.workload.as_deref()),
            ("correlationid", self.correlation_id.as_deref()),
            ("auditresidueid", self.audit_residue_id.as_deref()),
            ("orderingkey", self.ordering_key.as_deref()),
            ("policyversion", self.policy_version.as_deref()),
            ("policyhash", self.policy_hash.as_deref()),
            ("datacontenttype", self.content_type.as_deref()),
            ("dataschema", self.schema.as_deref()),
            ("schemaversion", self.schema_version.as_deref()),
            ("traceparent", self.trace.as_ref().map(|t| t.parent.as_str())),
            ("tracestate", self.trace.as_ref().and_then(|t| t.state.as_deref())),
        ];
        for (attribute, value) in texts {
            let Some(value) = value else { continue };
            if value.len() > limits::MAX_ATTRIBUTE_BYTES {
                return fail(attribute, "must be at most 2048 bytes", value.len());
            }
            if value.chars().any(char::is_control) {
                return fail(attribute, "must not contain control characters", value.len());
            }
        }
        for (attribute, map) in [("headers", &self.headers), ("agent", &self.agent)] {
            if map.len() > limits::MAX_HEADERS {
                return fail(attribute, "must have at most 64 names", map.len());
            }
            for (name, value) in map {
                if name.is_empty()
                    || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
                {
                    return fail(attribute, "must have names of a-z, 0-9, `.`, `_`, `-`", name.len());
                }
                if name.len() + value.len() > limits::MAX_ATTRIBUTE_BYTES || value.chars().any(char::is_control) {
                    return fail(
                        attribute,
                        "must have values of at most 2048 bytes without control characters",
                        value.len(),
                    );
                }
            }
        }
        let size = self.payload.size();
        if matches!(self.payload, Payload::Bytes { .. }) && size > limits::MAX_PAYLOAD_BYTES as u64 {
            return fail("data", "must be at most 16 MiB", size as usize);
        }
        Ok(())
    }

    /// Content hash for enqueue-key conflicts: what the producer said, without ids that we made.
    ///
    /// Two enqueues with one key and one hash are the same event; with another hash they conflict.
    pub fn content_hash(&self) -> [u8; 32] {
        use sha2::Digest;
        let mut hash = sha2::Sha256::new();
        let mut field = |name: &str, value: Option<&[u8]>| {
            if let Some(value) = value {
                hash.update((name.len() as u64).to_be_bytes());
                hash.update(name.as_bytes());
                hash.update((value.len() as u64).to_be_bytes());
                hash.update(value);
            }
        };
        let text = |value: &Option<String>| value.as_ref().map(|v| v.as_bytes().to_vec());
        field("type", Some(self.event_type.as_bytes()));
        field("source", text(&self.source).as_deref());
        field("id", text(&self.source_event_id).as_deref());
        field("subject", text(&self.subject).as_deref());
        field("time", self.occurred.map(|t| t.as_micros().to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice));
        field("principal", text(&self.principal).as_deref());
        field("region", text(&self.region).as_deref());
        field("orderingkey", text(&self.ordering_key).as_deref());
        field("contenttype", text(&self.content_type).as_deref());
        field("schema", text(&self.schema).as_deref());
        field("schemaversion", text(&self.schema_version).as_deref());
        for (name, value) in &self.headers {
            field(name, Some(value.as_bytes()));
        }
        for (name, value) in &self.agent {
            field(name, Some(value.as_bytes()));
        }
        match &self.payload {
            Payload::None => {}
            Payload::Bytes { bytes, .. } => field("data", Some(bytes)),
            Payload::Descriptor { kind, hash: content, size } => {
                field("descriptor", Some(kind.as_bytes()));
                field("descriptor-hash", text(content).as_deref());
                field("descriptor-size", size.map(u64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
            }
        }
        hash.finalize().into()
    }

    /// The enqueue key of a producer that gave none: the CloudEvent's source and id, else the envelope id.
    pub fn default_enqueue_key(&self) -> EnqueueKey {
        let derived = match (&self.source, &self.source_event_id) {
            (Some(source), Some(id)) => EnqueueKey::new(&format!("{source} {id}")).ok(),
            _ => None,
        };
        derived.unwrap_or_else(|| {
            EnqueueKey::new(&self.id.to_string()).expect("an envelope id in text form is a valid enqueue key")
        })
    }
}

/// One thing to enqueue: an envelope for one or more destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// What to emit.
    pub envelope: Envelope,
    /// Who enqueues.
    pub producer: ProducerId,
    /// Explicit destinations; empty means "by the event-type rules of the tenant's destinations".
    pub destinations: Vec<DestinationName>,
    /// Dedupes enqueue within (tenant, producer); default [`Envelope::default_enqueue_key`].
    pub enqueue_key: Option<EnqueueKey>,
    /// Given to the provider; default: the entry id's text form.
    pub operation_key: Option<OperationKey>,
    /// Not tried before this time.
    pub not_before: Option<Timestamp>,
    /// Dead-lettered if not delivered by this time.
    pub deliver_by: Option<Timestamp>,
    /// The unique key of the place it was imported from, if it was (origin and source locator): a seam for importers.
    pub origin: Option<Code>,
}

impl NewEntry {
    /// An item with defaults: producer `default`, routed by event type.
    pub fn new(envelope: Envelope) -> Self {
        Self {
            envelope,
            producer: ProducerId::default_producer(),
            destinations: Vec::new(),
            enqueue_key: None,
            operation_key: None,
            not_before: None,
            deliver_by: None,
            origin: None,
        }
    }

    /// The same item for one named destination.
    pub fn to(mut self, destination: DestinationName) -> Self {
        self.destinations.push(destination);
        self
    }
}
