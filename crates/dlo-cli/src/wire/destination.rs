//! Destinations as they stand: configuration, health, depth.

use dlo_core::{DeliveryPolicy, DestinationSpec, Duplicates, Health, policy::Alternative};
use dlo_ports::store::{Applied, AppliedChange, DestinationView};
use serde::Serialize;

use super::stats::DepthWire;
use super::{or_dash, span, time, time_cell};
use crate::output::{Row, Sheet};

/// A hold, by a person or by evidence.
#[derive(Debug, Serialize)]
struct HoldWire {
    by: &'static str,
    since: String,
    why: String,
    next_probe: Option<String>,
    #[serde(skip)]
    since_cell: String,
    #[serde(skip)]
    why_cell: String,
    #[serde(skip)]
    next_probe_cell: Option<String>,
}

fn holds(health: &Health) -> Vec<HoldWire> {
    let manual = health.manual.as_ref().map(|hold| HoldWire {
        by: "person",
        since: hold.since.to_string(),
        why: format!("{}: {}", hold.actor, hold.reason),
        next_probe: None,
        since_cell: time_cell(hold.since),
        why_cell: hold.reason.to_string(),
        next_probe_cell: None,
    });
    let evidence = health.hold.as_ref().map(|hold| HoldWire {
        by: hold.cause.as_str(),
        since: hold.since.to_string(),
        why: format!("{} {}, {} failed probes", hold.class, hold.reason, hold.failed_probes),
        next_probe: time(hold.next_probe),
        since_cell: time_cell(hold.since),
        why_cell: hold.reason.to_string(),
        next_probe_cell: time(hold.next_probe).map(|_| time_cell(hold.next_probe)),
    });
    manual.into_iter().chain(evidence).collect()
}

/// A row of `dlo destinations list`.
#[derive(Debug, Serialize)]
pub(crate) struct DestinationRow {
    tenant: String,
    destination: String,
    version: u64,
    emitter: String,
    duplicates: String,
    holds: Vec<HoldWire>,
    probe_requested: bool,
    depth: DepthWire,
}

impl From<&DestinationView> for DestinationRow {
    fn from(view: &DestinationView) -> Self {
        let spec = &view.destination.spec;
        Self {
            tenant: spec.tenant.to_string(),
            destination: spec.name.to_string(),
            version: view.destination.version,
            emitter: spec.emitter.clone(),
            duplicates: duplicates(spec.duplicates),
            holds: holds(&view.health),
            probe_requested: view.health.probe_requested,
            depth: view.depth.into(),
        }
    }
}

impl DestinationRow {
    fn held_cell(&self) -> String {
        if self.holds.is_empty() {
            return "no".to_owned();
        }
        format!("by {}", self.holds.iter().map(|hold| hold.by).collect::<Vec<_>>().join(", "))
    }

    fn of_holds(&self, value: impl Fn(&HoldWire) -> Option<String>) -> String {
        or_dash(Some(self.holds.iter().filter_map(value).collect::<Vec<_>>().join(", ")))
    }
}

/// What follows when the allowance is used up.
fn at_the_end(policy: &DeliveryPolicy) -> &'static str {
    match policy.alternative {
        _ if policy.dead_letter_on_max_retry_attempts => "quarantine",
        Some(Alternative::ManualReview) => "manual review",
        Some(Alternative::MaxAge) | None => "again until it is too old",
    }
}

/// As `duplicates` may stand in the configuration file.
fn duplicates(declared: Duplicates) -> String {
    match declared {
        Duplicates::Deduplicated { window } => format!("deduplicated({})", dlo::duration::format(window)),
        Duplicates::Harmful | Duplicates::Tolerated => declared.to_string(),
    }
}

impl Row for DestinationRow {
    const COLUMNS: &'static [&'static str] = &[
        "TENANT",
        "DESTINATION",
        "VERSION",
        "EMITTER",
        "DUPLICATES",
        "HELD",
        "SINCE",
        "WHY",
        "NEXT PROBE",
        "READY",
        "WAITING",
        "CLAIMED",
        "REVIEW",
        "DEAD OPEN",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.tenant.clone(),
            self.destination.clone(),
            self.version.to_string(),
            self.emitter.clone(),
            self.duplicates.clone(),
            self.held_cell(),
            self.of_holds(|hold| Some(hold.since_cell.clone())),
            self.of_holds(|hold| Some(hold.why_cell.clone())),
            self.of_holds(|hold| hold.next_probe_cell.clone()),
            self.depth.ready.to_string(),
            self.depth.waiting.to_string(),
            self.depth.claimed.to_string(),
            self.depth.manual_review.to_string(),
            self.depth.dead_letters_open.to_string(),
        ]
    }
}

/// Delivery policy with every option resolved.
#[derive(Debug, Serialize)]
struct PolicyWire {
    max_retry_attempts: u32,
    dead_letter_on_max_retry_attempts: bool,
    alternative: Option<String>,
    schedule_seconds: Vec<u64>,
    jitter: String,
    retry_delay_seconds: u64,
    deferred_delay_seconds: u64,
    retry_after_cap_seconds: u64,
    max_age_seconds: u64,
    max_crashed_attempts: u32,
    backlog_limit: u64,
    resource_failures: u32,
    breaker_failures: u32,
    breaker_entries: u32,
    probe_min_seconds: u64,
    probe_max_seconds: u64,
    emission_deadline_seconds: u64,
    concurrency: u32,
    page: u32,
}

impl From<&DestinationSpec> for PolicyWire {
    fn from(spec: &DestinationSpec) -> Self {
        let policy = &spec.policy;
        Self {
            max_retry_attempts: policy.max_retry_attempts,
            dead_letter_on_max_retry_attempts: policy.dead_letter_on_max_retry_attempts,
            alternative: policy.alternative.map(|alternative| match alternative {
                Alternative::MaxAge => "max_age".to_owned(),
                Alternative::ManualReview => "manual_review".to_owned(),
            }),
            schedule_seconds: policy.schedule.iter().map(core::time::Duration::as_secs).collect(),
            jitter: format!("{:?}", policy.jitter).to_lowercase(),
            retry_delay_seconds: policy.retry_delay.as_secs(),
            deferred_delay_seconds: policy.deferred_delay.as_secs(),
            retry_after_cap_seconds: policy.retry_after_cap.as_secs(),
            max_age_seconds: policy.max_age.as_secs(),
            max_crashed_attempts: policy.max_crashed_attempts,
            backlog_limit: policy.backlog_limit,
            resource_failures: policy.resource_failures,
            breaker_failures: policy.breaker.failures,
            breaker_entries: policy.breaker.entries,
            probe_min_seconds: policy.breaker.probe_min.as_secs(),
            probe_max_seconds: policy.breaker.probe_max.as_secs(),
            emission_deadline_seconds: policy.emission_deadline.as_secs(),
            concurrency: policy.concurrency,
            page: policy.page,
        }
    }
}

/// `dlo destinations show`.
#[derive(Debug, Serialize)]
pub(crate) struct DestinationSheet {
    #[serde(flatten)]
    row: DestinationRow,
    applied: String,
    settings: serde_json::Value,
    event_types: Vec<String>,
    owner: Option<String>,
    region: Option<String>,
    pace_per_minute: Option<u32>,
    pace_burst: Option<u32>,
    policy: PolicyWire,
    consecutive_failures: u32,
    ramp: Option<u32>,
    last_success_after_failures: Option<String>,
    #[serde(skip)]
    policy_lines: Vec<String>,
}

impl From<&DestinationView> for DestinationSheet {
    fn from(view: &DestinationView) -> Self {
        let spec = &view.destination.spec;
        let policy = &spec.policy;
        let schedule = policy.schedule.iter().map(|delay| span(*delay)).collect::<Vec<_>>().join(", ");
        Self {
            row: DestinationRow::from(view),
            applied: view.destination.applied.to_string(),
            // Settings hold references to secrets, never secrets.
            settings: serde_json::from_str(&spec.settings).unwrap_or(serde_json::Value::Null),
            event_types: spec.event_types.iter().map(|rule| rule.as_str().to_owned()).collect(),
            owner: spec.owner.clone(),
            region: spec.region.clone(),
            pace_per_minute: spec.pace.map(|pace| pace.per_minute),
            pace_burst: spec.pace.map(|pace| pace.burst),
            policy: PolicyWire::from(spec),
            consecutive_failures: view.health.consecutive,
            ramp: view.health.ramp,
            last_success_after_failures: view.health.last_success.map(|at| at.to_string()),
            policy_lines: vec![
                format!(
                    "at most {} failed attempts, after {schedule}; then {}",
                    policy.max_retry_attempts,
                    at_the_end(policy)
                ),
                format!("at most {} old", span(policy.max_age)),
                format!(
                    "deadline {}, {} at once, page {}",
                    span(policy.emission_deadline),
                    policy.concurrency,
                    policy.page
                ),
                format!(
                    "breaker opens at {} failures of {} entries, probes after {} to {}",
                    policy.breaker.failures,
                    policy.breaker.entries,
                    span(policy.breaker.probe_min),
                    span(policy.breaker.probe_max)
                ),
            ],
        }
    }
}

impl Sheet for DestinationSheet {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("destination", self.row.destination.clone()),
            ("tenant", self.row.tenant.clone()),
            ("version", format!("{} applied {}", self.row.version, self.applied)),
            ("emitter", self.row.emitter.clone()),
            ("settings", self.settings.to_string()),
            ("duplicates", self.row.duplicates.clone()),
            ("event types", or_dash(Some(self.event_types.join(", ")))),
            ("owner", or_dash(self.owner.clone())),
            ("region", or_dash(self.region.clone())),
            ("held", self.row.held_cell()),
        ];
        for hold in &self.row.holds {
            let probe = hold.next_probe.as_ref().map(|at| format!(", next probe {at}")).unwrap_or_default();
            facts.push(("", format!("{} since {}: {}{probe}", hold.by, hold.since, hold.why)));
        }
        facts.push(("depth", self.row.depth.line()));
        let pace = self.pace_per_minute.map(|rate| format!("{rate} a minute, burst {}", self.pace_burst.unwrap_or(1)));
        facts.push(("pace", or_dash(pace)));
        // Only a success that contradicts failures is kept: none of it says nothing about deliveries.
        facts.extend(self.last_success_after_failures.clone().map(|at| ("last success after failures", at)));
        let lines = self.policy_lines.iter().enumerate();
        facts.extend(lines.map(|(index, line)| (if index == 0 { "policy" } else { "" }, line.clone())));
        facts
    }
}

/// A row of `dlo destinations apply`.
#[derive(Debug, Serialize)]
pub(crate) struct AppliedRow {
    destination: String,
    version: u64,
    change: &'static str,
}

impl From<&Applied> for AppliedRow {
    fn from(applied: &Applied) -> Self {
        let change = match applied.change {
            AppliedChange::Created => "created",
            AppliedChange::Updated => "updated",
            AppliedChange::Unchanged => "unchanged",
        };
        Self { destination: applied.destination.to_string(), version: applied.version, change }
    }
}

impl Row for AppliedRow {
    const COLUMNS: &'static [&'static str] = &["DESTINATION", "VERSION", "CHANGE"];

    fn cells(&self) -> Vec<String> {
        vec![self.destination.clone(), self.version.to_string(), self.change.to_owned()]
    }
}
