//! Attempts, as shown with an entry or a dead letter.

use dlo_core::Attempt;
use serde::Serialize;

use super::time_cell;

/// One try at emission.
#[derive(Debug, Serialize)]
pub(crate) struct AttemptWire {
    number: u32,
    generation: u32,
    started: String,
    finished: String,
    outcome: String,
    class: Option<&'static str>,
    reason: Option<String>,
    rule: Option<String>,
    phase: &'static str,
    http_status: Option<u16>,
    provider_code: Option<String>,
    text: String,
    charged: bool,
    claim: Option<String>,
    destination_version: u64,
    #[serde(skip)]
    cell: String,
}

impl From<&Attempt> for AttemptWire {
    fn from(attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            generation: attempt.generation,
            started: attempt.started.to_string(),
            finished: attempt.finished.to_string(),
            outcome: attempt.outcome.to_string(),
            class: attempt.class.map(dlo_core::Class::as_str),
            reason: attempt.reason.as_ref().map(ToString::to_string),
            rule: attempt.rule.as_ref().map(ToString::to_string),
            phase: attempt.phase.as_str(),
            http_status: attempt.http_status,
            provider_code: attempt.provider_code.as_ref().map(ToString::to_string),
            text: attempt.text.to_string(),
            charged: attempt.charged,
            claim: attempt.token.map(|token| token.to_string()),
            destination_version: attempt.destination_version,
            cell: time_cell(attempt.finished),
        }
    }
}

impl AttemptWire {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let failure = match (&self.class, &self.reason) {
            (Some(class), Some(reason)) => format!(" {class} {reason}"),
            _ => String::new(),
        };
        let charge = if self.charged { "charged" } else { "not charged" };
        let text = if self.text.is_empty() { String::new() } else { format!(": {}", self.text) };
        format!("{} {}{failure} ({}, {charge}){text}", self.cell, self.outcome, self.phase)
    }

    /// The number over the lineage.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// All of a lineage.
    pub(crate) fn all(attempts: &[Attempt]) -> Vec<Self> {
        attempts.iter().map(Self::from).collect()
    }
}

/// Lines for people, one an attempt.
pub(crate) fn facts(attempts: &[AttemptWire]) -> impl Iterator<Item = (&'static str, String)> {
    attempts.iter().enumerate().map(|(index, attempt)| {
        let name = if index == 0 { "attempts" } else { "" };
        (name, format!("{:>2}. {}", attempt.number(), attempt.line()))
    })
}
