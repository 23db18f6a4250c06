//! What became of every entry and why, and which promises held.

use dlo_core::{DestinationSpec, EntryState};
use serde::Serialize;

use super::because;
use super::cast::{Cast, Member};
use super::receiver::Seen;
use super::stage::Stage;
use crate::output::{Row, Sheet};
use crate::wire::or_dash;

/// What became of one entry.
#[derive(Serialize)]
pub(crate) struct EntryLine {
    event: String,
    entry: String,
    destination: String,
    duplicates: String,
    receiver: Vec<String>,
    state: &'static str,
    generation: u32,
    failed_attempts: u32,
    why: String,
}

impl EntryLine {
    fn new(member: &Member, cast: &Cast, seen: &[Seen], destinations: &[DestinationSpec]) -> Self {
        let summary = &member.view.summary;
        let destination = summary.destination.as_str();
        Self {
            event: member.event.clone(),
            entry: summary.key.entry.to_string(),
            destination: destination.to_owned(),
            duplicates: destinations
                .iter()
                .find(|spec| spec.name == summary.destination)
                .map_or_else(String::new, |spec| spec.duplicates.name().to_owned()),
            receiver: seen
                .iter()
                .filter(|seen| seen.path == destination && seen.event == member.event)
                .map(|seen| seen.did.label())
                .collect(),
            state: summary.state.as_str(),
            generation: summary.key.generation,
            failed_attempts: failed(member),
            why: why(member, cast),
        }
    }
}

/// Failed attempts that were charged.
pub(crate) fn failed(member: &Member) -> u32 {
    let ended = member.view.ended.last().map(|ended| ended.counters.failed);
    ended.or_else(|| member.view.live.as_ref().map(|live| live.progress.counters.failed)).unwrap_or(0)
}

fn why(member: &Member, cast: &Cast) -> String {
    let view = &member.view;
    let failure = view.last_failure.as_ref();
    let failure = failure.map(|failure| format!("{} ({})", failure.reason, because(failure.class)));
    match (view.summary.state, failure) {
        (EntryState::Delivered, _) if view.summary.key.generation > 0 => {
            "redriven after the cause was mended".to_owned()
        }
        (EntryState::Delivered, Some(failure)) => format!("accepted after {failure}"),
        (EntryState::Delivered, None) => "accepted at once".to_owned(),
        (EntryState::DeadLettered, failure) => {
            let code = view.ended.last().and_then(|ended| ended.dead_letter).and_then(|id| cast.code(id));
            let failure = failure.filter(|failure| !failure.starts_with(code.unwrap_or("?")));
            [code.map(str::to_owned), failure].into_iter().flatten().collect::<Vec<_>>().join(" after ")
        }
        (_, failure) => or_dash(failure),
    }
}

impl Row for EntryLine {
    const COLUMNS: &'static [&'static str] =
        &["EVENT", "DESTINATION", "DUPLICATES", "RECEIVER DID", "BECAME", "FAILED", "WHY"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.event.clone(),
            self.destination.clone(),
            self.duplicates.clone(),
            or_dash(Some(self.receiver.join(", "))),
            self.state.to_owned(),
            self.failed_attempts.to_string(),
            self.why.clone(),
        ]
    }
}

/// A promise, and whether it held.
#[derive(Serialize)]
pub(crate) struct Check {
    /// Which invariant, if one has an id.
    pub(crate) invariant: &'static str,
    /// What was promised.
    pub(crate) promise: &'static str,
    /// Whether it held.
    pub(crate) held: bool,
    /// What was seen.
    pub(crate) seen: String,
}

impl Row for Check {
    const COLUMNS: &'static [&'static str] = &["HELD", "ID", "PROMISE", "SEEN"];

    fn cells(&self) -> Vec<String> {
        vec![
            if self.held { "yes" } else { "NO" }.to_owned(),
            self.invariant.to_owned(),
            self.promise.to_owned(),
            self.seen.clone(),
        ]
    }
}

/// The whole report.
#[derive(Serialize)]
pub(crate) struct Report {
    folder: String,
    entries: Vec<EntryLine>,
    checks: Vec<Check>,
}

impl Report {
    /// Of a run that has ended.
    pub(crate) fn new(cast: &Cast, seen: &[Seen], checks: Vec<Check>, stage: &Stage) -> Self {
        let line = |member| EntryLine::new(member, cast, seen, &stage.config.destinations);
        let entries = cast.members().iter().map(line).collect();
        Self { folder: stage.folder.display().to_string(), entries, checks }
    }

    /// What became of every entry.
    pub(crate) fn entries(&self) -> &[EntryLine] {
        &self.entries
    }

    /// Every promise.
    pub(crate) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// How many did not hold.
    pub(crate) fn failed(&self) -> usize {
        self.checks.iter().filter(|check| !check.held).count()
    }
}

impl Sheet for Report {
    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![("folder", self.folder.clone()), ("entries", self.entries.len().to_string())]
    }
}
