//! Entries.

use dlo_core::{Counters, Entry, EntryState, entry::LastFailure};
use dlo_ports::store::{Ended, EntrySummary, EntryView};
use serde::Serialize;

use super::attempt::{self, AttemptWire};
use super::envelope::EnvelopeWire;
use super::{or_dash, time, time_cell};
use crate::output::{Row, Sheet};

/// A row of `dlo entries list`.
#[derive(Debug, Serialize)]
pub(crate) struct EntryRow {
    tenant: String,
    entry: String,
    generation: u32,
    seq: u64,
    destination: String,
    state: &'static str,
    held: bool,
    status: Option<&'static str>,
    created: String,
    due: Option<String>,
    attempts: u32,
    class: Option<&'static str>,
    reason: Option<String>,
    event_type: Option<String>,
    source_event_id: Option<String>,
    #[serde(skip)]
    due_cell: String,
}

impl From<&EntrySummary> for EntryRow {
    fn from(summary: &EntrySummary) -> Self {
        let failure = summary.last_failure.as_ref();
        Self {
            tenant: summary.key.tenant.to_string(),
            entry: summary.key.entry.to_string(),
            generation: summary.key.generation,
            seq: summary.seq,
            destination: summary.destination.to_string(),
            state: summary.state.as_str(),
            held: summary.held,
            status: summary.status.map(dlo_core::Status::as_str),
            created: summary.created.to_string(),
            due: summary.due.and_then(time),
            attempts: summary.attempts,
            class: failure.map(|(class, _)| class.as_str()),
            reason: failure.map(|(_, reason)| reason.to_string()),
            event_type: summary.event_type.clone(),
            source_event_id: summary.source_event_id.clone(),
            due_cell: or_dash(summary.due.map(time_cell)),
        }
    }
}

impl EntryRow {
    /// A success at the first try leaves no attempt row.
    fn tries(&self) -> u32 {
        if self.state == EntryState::Delivered.as_str() { self.attempts.max(1) } else { self.attempts }
    }

    fn state_cell(&self) -> String {
        if self.held { format!("{} (held)", self.state) } else { self.state.to_owned() }
    }
}

impl Row for EntryRow {
    const COLUMNS: &'static [&'static str] = &[
        "TENANT",
        "ENTRY",
        "GEN",
        "DESTINATION",
        "EVENT",
        "EVENT ID",
        "STATE",
        "STATUS",
        "TRIES",
        "DUE",
        "LAST FAILURE",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.tenant.clone(),
            self.entry.clone(),
            self.generation.to_string(),
            self.destination.clone(),
            or_dash(self.event_type.clone()),
            or_dash(self.source_event_id.clone()),
            self.state_cell(),
            or_dash(self.status.map(str::to_owned)),
            self.tries().to_string(),
            self.due_cell.clone(),
            or_dash(self.reason.clone()),
        ]
    }
}

/// Counters of a lineage.
#[derive(Debug, Serialize)]
pub(crate) struct CountersWire {
    claims: u32,
    failed: u32,
    crashed: u32,
    deferred: u32,
    interrupted: u32,
}

impl From<Counters> for CountersWire {
    fn from(counters: Counters) -> Self {
        let Counters { claims, failed, crashed, deferred, interrupted } = counters;
        Self { claims, failed, crashed, deferred, interrupted }
    }
}

impl CountersWire {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let Self { claims, failed, crashed, deferred, interrupted } = self;
        format!("claims {claims}, failed {failed}, crashed {crashed}, deferred {deferred}, interrupted {interrupted}")
    }
}

/// A failure in full.
#[derive(Debug, Serialize)]
pub(crate) struct FailureWire {
    class: &'static str,
    reason: String,
    provider_code: Option<String>,
    text: String,
}

impl From<&LastFailure> for FailureWire {
    fn from(failure: &LastFailure) -> Self {
        Self {
            class: failure.class.as_str(),
            reason: failure.reason.to_string(),
            provider_code: failure.provider_code.as_ref().map(ToString::to_string),
            text: failure.text.to_string(),
        }
    }
}

impl FailureWire {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        format!("{} {}: {}", self.class, self.reason, self.text)
    }
}

/// The live row of an entry.
#[derive(Debug, Serialize)]
struct LiveWire {
    version: u64,
    lane: String,
    created: String,
    updated: String,
    not_before: Option<String>,
    deliver_by: Option<String>,
    due: Option<String>,
    failed_in_generation: u32,
    unanswered: bool,
    claim: Option<ClaimWire>,
}

#[derive(Debug, Serialize)]
struct ClaimWire {
    incarnation: String,
    claimed: String,
    deadline: Option<String>,
    send_mark: bool,
    sole_suspect: bool,
}

impl From<&Entry> for LiveWire {
    fn from(entry: &Entry) -> Self {
        Self {
            version: entry.version,
            lane: format!("{:?}", entry.lane).to_lowercase(),
            created: entry.created.to_string(),
            updated: entry.updated.to_string(),
            not_before: entry.not_before.and_then(time),
            deliver_by: entry.deliver_by.and_then(time),
            due: time(entry.due),
            failed_in_generation: entry.failed_in_generation(),
            unanswered: entry.progress.unanswered,
            claim: entry.claim.map(|claim| ClaimWire {
                incarnation: claim.incarnation.to_string(),
                claimed: claim.claimed.to_string(),
                deadline: time(claim.deadline),
                send_mark: claim.send_mark,
                sole_suspect: claim.sole_suspect,
            }),
        }
    }
}

impl LiveWire {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("version", self.version.to_string()), ("lane", self.lane.clone())];
        for (name, value) in [("due", &self.due), ("not before", &self.not_before), ("deliver by", &self.deliver_by)] {
            facts.extend(value.clone().map(|value| (name, value)));
        }
        if self.unanswered {
            facts.push(("unanswered", super::UNANSWERED.to_owned()));
        }
        if let Some(claim) = &self.claim {
            let mark = if claim.send_mark { ", send mark set" } else { "" };
            let deadline = or_dash(claim.deadline.clone());
            facts.push(("claim", format!("by {} until {deadline}{mark}", claim.incarnation)));
        }
        facts
    }
}

/// How one generation ended.
#[derive(Debug, Serialize)]
struct EndedWire {
    generation: u32,
    state: &'static str,
    at: String,
    receipt: Option<ReceiptWire>,
    dead_letter: Option<String>,
    counters: CountersWire,
}

#[derive(Debug, Serialize)]
struct ReceiptWire {
    kind: String,
    id: Option<String>,
}

impl From<&Ended> for EndedWire {
    fn from(ended: &Ended) -> Self {
        Self {
            generation: ended.generation,
            state: ended.state.as_str(),
            at: ended.at.to_string(),
            receipt: ended.receipt.as_ref().map(|receipt| ReceiptWire {
                kind: receipt.kind.to_string(),
                id: receipt.id.as_ref().map(ToString::to_string),
            }),
            dead_letter: ended.dead_letter.map(|id| id.to_string()),
            counters: ended.counters.into(),
        }
    }
}

impl EndedWire {
    fn line(&self) -> String {
        let proof = match (&self.receipt, &self.dead_letter) {
            (Some(receipt), _) => format!(", receipt {} {}", receipt.kind, or_dash(receipt.id.clone())),
            (None, Some(id)) => format!(", dead letter {id}"),
            (None, None) => String::new(),
        };
        format!("{} {} at {}{proof}", self.generation, self.state, self.at)
    }
}

/// `dlo entries show`.
#[derive(Debug, Serialize)]
pub(crate) struct EntrySheet {
    #[serde(flatten)]
    summary: EntryRow,
    operation_key: String,
    envelope: Option<EnvelopeWire>,
    live: Option<LiveWire>,
    ended: Vec<EndedWire>,
    last_failure: Option<FailureWire>,
    attempt_history: Vec<AttemptWire>,
}

impl From<&EntryView> for EntrySheet {
    fn from(view: &EntryView) -> Self {
        Self {
            summary: EntryRow::from(&view.summary),
            operation_key: view.operation_key.to_string(),
            envelope: view.envelope.as_ref().map(EnvelopeWire::from),
            live: view.live.as_ref().map(LiveWire::from),
            ended: view.ended.iter().map(EndedWire::from).collect(),
            last_failure: view.last_failure.as_ref().map(FailureWire::from),
            attempt_history: AttemptWire::all(&view.attempts),
        }
    }
}

impl Sheet for EntrySheet {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("entry", self.summary.entry.clone()),
            ("tenant", self.summary.tenant.clone()),
            ("destination", self.summary.destination.clone()),
            ("state", self.summary.state_cell()),
            ("status", or_dash(self.summary.status.map(str::to_owned))),
            ("generation", self.summary.generation.to_string()),
            ("operation key", self.operation_key.clone()),
            ("created", self.summary.created.clone()),
        ];
        match &self.envelope {
            Some(envelope) => facts.extend(envelope.facts()),
            None => facts.push(("envelope", "gone by retention, or unreadable".to_owned())),
        }
        if let Some(live) = &self.live {
            facts.extend(live.facts());
        }
        let ended = self.ended.iter().enumerate();
        facts.extend(ended.map(|(index, ended)| (if index == 0 { "ended" } else { "" }, ended.line())));
        if let Some(failure) = &self.last_failure {
            facts.push(("last failure", failure.line()));
        }
        facts.extend(attempt::facts(&self.attempt_history));
        facts
    }
}
