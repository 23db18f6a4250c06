//! The envelope of an entry: what it is, with the hash, size and type of its payload and no byte of it.

use dlo_core::dead_letter::PayloadSummary;
use dlo_ports::store::EnvelopeView;
use serde::Serialize;

use super::{hex, or_dash};

/// A payload without its bytes.
#[derive(Debug, Serialize)]
pub(crate) struct PayloadWire {
    content_type: Option<String>,
    size: u64,
    sha256: Option<String>,
}

impl From<&PayloadSummary> for PayloadWire {
    fn from(payload: &PayloadSummary) -> Self {
        Self {
            content_type: payload.content_type.clone(),
            size: payload.size,
            sha256: payload.sha256.as_ref().map(|hash| hex(hash)),
        }
    }
}

impl PayloadWire {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let hash = self.sha256.as_deref().map_or_else(|| "no bytes".to_owned(), |hash| format!("sha256 {hash}"));
        format!("{} bytes, type {}, {hash}", self.size, or_dash(self.content_type.clone()))
    }
}

/// An envelope without payload bytes.
#[derive(Debug, Serialize)]
pub(crate) struct EnvelopeWire {
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    source: Option<String>,
    source_event_id: Option<String>,
    subject: Option<String>,
    occurred: Option<String>,
    correlation_id: Option<String>,
    audit_residue_id: Option<String>,
    payload: PayloadWire,
}

impl From<&EnvelopeView> for EnvelopeWire {
    fn from(envelope: &EnvelopeView) -> Self {
        Self {
            id: envelope.id.to_string(),
            event_type: envelope.event_type.clone(),
            source: envelope.source.clone(),
            source_event_id: envelope.source_event_id.clone(),
            subject: envelope.subject.clone(),
            occurred: envelope.occurred.map(|at| at.to_string()),
            correlation_id: envelope.correlation_id.clone(),
            audit_residue_id: envelope.audit_residue_id.clone(),
            payload: PayloadWire::from(&envelope.payload),
        }
    }
}

impl EnvelopeWire {
    /// Facts for people.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("envelope", self.id.clone()), ("event type", self.event_type.clone())];
        let optional = [
            ("source", &self.source),
            ("source event id", &self.source_event_id),
            ("subject", &self.subject),
            ("occurred", &self.occurred),
            ("correlation id", &self.correlation_id),
            ("audit residue id", &self.audit_residue_id),
        ];
        facts.extend(optional.into_iter().filter_map(|(name, value)| value.clone().map(|value| (name, value))));
        facts.push(("payload", self.payload.line()));
        facts
    }
}
