//! Audit events.

use dlo_ports::store::{AuditView, LedgerRow};
use serde::Serialize;

use super::{or_dash, time_cell};
use crate::output::Row;

/// A row of `dlo audit list`.
#[derive(Debug, Serialize)]
pub(crate) struct AuditRow {
    seq: u64,
    at: String,
    audit: String,
    tenant: String,
    actor: String,
    strength: String,
    act: String,
    target: String,
    reason: Option<String>,
    detail: serde_json::Value,
    #[serde(skip)]
    at_cell: String,
}

impl From<&AuditView> for AuditRow {
    fn from(view: &AuditView) -> Self {
        Self {
            seq: view.seq,
            at: view.at.to_string(),
            audit: view.id.to_string(),
            tenant: view.tenant.to_string(),
            actor: view.actor.clone(),
            strength: view.strength.clone(),
            act: view.act.clone(),
            target: view.target.clone(),
            reason: view.reason.as_ref().map(ToString::to_string),
            detail: serde_json::from_str(&view.detail_json).unwrap_or(serde_json::Value::Null),
            at_cell: time_cell(view.at),
        }
    }
}

impl Row for AuditRow {
    const COLUMNS: &'static [&'static str] = &["AT", "TENANT", "ACTOR", "ACT", "TARGET", "REASON"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.at_cell.clone(),
            self.tenant.clone(),
            format!("{} ({})", self.actor, self.strength),
            self.act.clone(),
            self.target.clone(),
            or_dash(self.reason.clone()),
        ]
    }
}

/// A row of `dlo audit redrives`.
#[derive(Debug, Serialize)]
pub(crate) struct RedriveRow {
    seq: u64,
    at: String,
    redrive: String,
    dead_letter: String,
    result: String,
    code: Option<String>,
    entry: Option<String>,
    generation: Option<u32>,
    audit: String,
    #[serde(skip)]
    at_cell: String,
}

impl From<&LedgerRow> for RedriveRow {
    fn from(row: &LedgerRow) -> Self {
        Self {
            seq: row.seq,
            at: row.at.to_string(),
            redrive: row.redrive.to_string(),
            dead_letter: row.dead_letter.to_string(),
            result: row.result.clone(),
            code: row.code.clone(),
            entry: row.key.as_ref().map(|key| key.entry.to_string()),
            generation: row.key.as_ref().map(|key| key.generation),
            audit: row.audit.to_string(),
            at_cell: time_cell(row.at),
        }
    }
}

impl Row for RedriveRow {
    const COLUMNS: &'static [&'static str] = &["AT", "REDRIVE", "DEAD LETTER", "RESULT", "CODE", "ENTRY", "GEN"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.at_cell.clone(),
            self.redrive.clone(),
            self.dead_letter.clone(),
            self.result.clone(),
            or_dash(self.code.clone()),
            or_dash(self.entry.clone()),
            or_dash(self.generation.map(|generation| generation.to_string())),
        ]
    }
}
