//! Dead letters and their groups.

use dlo_core::DeadLetter;
use dlo_ports::store::{DeadLetterView, Group};
use serde::Serialize;

use super::attempt::{self, AttemptWire};
use super::entry::{CountersWire, FailureWire};
use super::envelope::{EnvelopeWire, PayloadWire};
use super::{or_dash, time_cell};
use crate::output::{Row, Sheet};

/// A row of `dlo dead-letters list`.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetterRow {
    tenant: String,
    dead_letter: String,
    seq: u64,
    entry: String,
    generation: u32,
    destination: String,
    event_type: Option<String>,
    source_event_id: Option<String>,
    class: &'static str,
    reason: String,
    code: String,
    state: &'static str,
    opened: String,
    attempts: u32,
    unanswered: bool,
    fingerprint: String,
    #[serde(skip)]
    opened_cell: String,
}

impl From<&DeadLetter> for DeadLetterRow {
    fn from(letter: &DeadLetter) -> Self {
        Self {
            tenant: letter.key.tenant.to_string(),
            dead_letter: letter.id.to_string(),
            seq: letter.seq,
            entry: letter.key.entry.to_string(),
            generation: letter.key.generation,
            destination: letter.destination.to_string(),
            event_type: letter.event_type.clone(),
            source_event_id: letter.source_event_id.clone(),
            class: letter.class.as_str(),
            reason: letter.reason.to_string(),
            code: letter.code.to_string(),
            state: letter.state.as_str(),
            opened: letter.opened.to_string(),
            attempts: letter.attempts,
            unanswered: letter.unanswered,
            fingerprint: letter.fingerprint.to_string(),
            opened_cell: time_cell(letter.opened),
        }
    }
}

impl Row for DeadLetterRow {
    const COLUMNS: &'static [&'static str] =
        &["TENANT", "DEAD LETTER", "DESTINATION", "EVENT", "EVENT ID", "CLASS", "REASON", "CODE", "STATE", "OPENED"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.tenant.clone(),
            self.dead_letter.clone(),
            self.destination.clone(),
            or_dash(self.event_type.clone()),
            or_dash(self.source_event_id.clone()),
            self.class.to_owned(),
            self.reason.clone(),
            self.code.clone(),
            self.state.to_owned(),
            self.opened_cell.clone(),
        ]
    }
}

/// `dlo dead-letters show`.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetterSheet {
    #[serde(flatten)]
    row: DeadLetterRow,
    destination_version: u64,
    operation_key: String,
    message: String,
    rule: Option<String>,
    correlation_id: Option<String>,
    audit_residue_id: Option<String>,
    payload: PayloadWire,
    envelope_id: String,
    envelope: Option<EnvelopeWire>,
    last_failure: Option<FailureWire>,
    first_failed: Option<String>,
    last_failed: Option<String>,
    first_claimed: Option<String>,
    counters: CountersWire,
    template: String,
    attempt_history: Vec<AttemptWire>,
}

impl From<&DeadLetterView> for DeadLetterSheet {
    fn from(view: &DeadLetterView) -> Self {
        let letter = &view.dead_letter;
        Self {
            row: DeadLetterRow::from(letter),
            destination_version: letter.destination_version,
            operation_key: letter.operation_key.to_string(),
            message: letter.message.to_string(),
            rule: letter.rule.as_ref().map(ToString::to_string),
            correlation_id: letter.correlation_id.clone(),
            audit_residue_id: letter.audit_residue_id.clone(),
            payload: PayloadWire::from(&letter.payload),
            envelope_id: letter.envelope.to_string(),
            envelope: view.envelope.as_ref().map(EnvelopeWire::from),
            last_failure: letter.last_failure.as_ref().map(FailureWire::from),
            first_failed: letter.first_failed.map(|at| at.to_string()),
            last_failed: letter.last_failed.map(|at| at.to_string()),
            first_claimed: letter.first_claimed.map(|at| at.to_string()),
            counters: letter.counters.into(),
            template: letter.fingerprint.template.to_string(),
            attempt_history: AttemptWire::all(&view.attempts),
        }
    }
}

impl Sheet for DeadLetterSheet {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("dead letter", self.row.dead_letter.clone()),
            ("state", self.row.state.to_owned()),
            ("code", format!("{}: {}", self.row.code, self.message)),
            ("cause", format!("{} {}", self.row.class, self.row.reason)),
            ("tenant", self.row.tenant.clone()),
            ("entry", format!("{} generation {}", self.row.entry, self.row.generation)),
            ("destination", format!("{} version {}", self.row.destination, self.destination_version)),
            ("operation key", self.operation_key.clone()),
        ];
        if let Some(envelope) = &self.envelope {
            facts.extend(envelope.facts());
        } else {
            facts.push(("envelope", format!("{} (can't be read)", self.envelope_id)));
            facts.push(("payload", self.payload.line()));
        }
        if let Some(failure) = &self.last_failure {
            facts.push(("last failure", failure.line()));
        }
        let times = [
            ("first claimed", &self.first_claimed),
            ("first failed", &self.first_failed),
            ("last failed", &self.last_failed),
        ];
        facts.extend(times.into_iter().filter_map(|(name, at)| at.clone().map(|at| (name, at))));
        facts.push(("opened", self.row.opened.clone()));
        if self.row.unanswered {
            facts.push(("unanswered", super::UNANSWERED.to_owned()));
        }
        facts.push(("counters", self.counters.line()));
        facts.push(("fingerprint", format!("{} {}", self.row.fingerprint, self.template)));
        facts.extend(attempt::facts(&self.attempt_history));
        facts
    }
}

/// A row of `dlo dead-letters groups`.
#[derive(Debug, Serialize)]
pub(crate) struct GroupRow {
    fingerprint: String,
    tenant: String,
    destination: String,
    class: &'static str,
    reason: String,
    count: u64,
    open: u64,
    first: String,
    last: String,
    template: String,
    #[serde(skip)]
    last_cell: String,
}

impl From<&Group> for GroupRow {
    fn from(group: &Group) -> Self {
        Self {
            fingerprint: group.fingerprint.to_string(),
            tenant: group.tenant.to_string(),
            destination: group.destination.to_string(),
            class: group.class.as_str(),
            reason: group.reason.to_string(),
            count: group.count,
            open: group.open,
            first: group.first.to_string(),
            last: group.last.to_string(),
            template: group.fingerprint.template.to_string(),
            last_cell: time_cell(group.last),
        }
    }
}

impl Row for GroupRow {
    const COLUMNS: &'static [&'static str] =
        &["COUNT", "OPEN", "TENANT", "DESTINATION", "CLASS", "REASON", "LAST", "FINGERPRINT", "TEMPLATE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.count.to_string(),
            self.open.to_string(),
            self.tenant.clone(),
            self.destination.clone(),
            self.class.to_owned(),
            self.reason.clone(),
            self.last_cell.clone(),
            self.fingerprint.clone(),
            self.template.clone(),
        ]
    }
}
