//! What is shown of an enqueue: a summary or a row a line, failures as they come, and progress if somebody watches.

use dlo_ports::store::EnqueueAnswer;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::intake::{Answered, LineAnswer, Said};
use crate::failure::{Failure, Result, code};
use crate::output::{List, Out, Row, Sheet, item_failed, stderr_is_watched};
use crate::wire::or_dash;

/// Input that is shorter ends before anybody would look at progress.
const PROGRESS_FROM_LINES: u64 = 5_000;
/// Lines between two updates.
const PROGRESS_EVERY: u64 = 500;

/// Counts of lines.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Tally {
    /// Lines that are not blank.
    pub(crate) lines: u64,
    /// Saved now.
    pub(crate) created: u64,
    /// Entries of those: one a destination.
    pub(crate) entries: u64,
    /// Saved before, with the same content.
    pub(crate) existing: u64,
    /// Saved before under the same key, with other content.
    pub(crate) conflict: u64,
    /// Refused by a rule.
    pub(crate) refused: u64,
    /// No event that can be saved.
    pub(crate) malformed: u64,
}

impl Tally {
    /// Counts one more line.
    pub(super) fn count(&mut self, said: &Said) {
        self.lines += 1;
        let counter = match said {
            Said::Store(EnqueueAnswer::Created { entries, .. }) => {
                self.entries += entries.len() as u64;
                &mut self.created
            }
            Said::Store(EnqueueAnswer::Existing { .. }) => &mut self.existing,
            Said::Store(EnqueueAnswer::Conflict { .. }) => &mut self.conflict,
            Said::Store(EnqueueAnswer::Refused(_)) => &mut self.refused,
            Said::Malformed { .. } => &mut self.malformed,
        };
        *counter += 1;
    }

    /// Lines that were not saved, neither now nor before.
    pub(crate) fn failed(&self) -> u64 {
        self.conflict + self.refused + self.malformed
    }
}

impl Sheet for Tally {
    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("lines", self.lines.to_string()),
            ("created", format!("{} ({} entries)", self.created, self.entries)),
            ("existing", self.existing.to_string()),
            ("conflict", self.conflict.to_string()),
            ("refused", self.refused.to_string()),
            ("malformed", self.malformed.to_string()),
        ]
    }
}

#[derive(Serialize)]
struct EntryWire {
    entry: String,
    destination: String,
}

/// A row of `dlo enqueue --each`.
#[derive(Serialize)]
pub(super) struct AnswerRow {
    line: u64,
    result: &'static str,
    code: Option<&'static str>,
    detail: Option<String>,
    envelope: Option<String>,
    entries: Vec<EntryWire>,
}

impl From<&LineAnswer> for AnswerRow {
    fn from(answer: &LineAnswer) -> Self {
        let mut row = Self {
            line: answer.line,
            result: "created",
            code: None,
            detail: None,
            envelope: None,
            entries: Vec::new(),
        };
        match &answer.said {
            Said::Store(EnqueueAnswer::Created { envelope, entries }) => {
                row.envelope = Some(envelope.to_string());
                let wire = |(entry, destination): &(dlo_core::EntryId, dlo_core::DestinationName)| EntryWire {
                    entry: entry.to_string(),
                    destination: destination.to_string(),
                };
                row.entries = entries.iter().map(wire).collect();
            }
            Said::Store(EnqueueAnswer::Existing { envelope }) => {
                row.result = "existing";
                row.envelope = Some(envelope.to_string());
            }
            Said::Store(EnqueueAnswer::Conflict { envelope }) => {
                row.result = "conflict";
                row.code = Some(code::CONFLICT);
                row.detail = Some("the same key was saved before with other content".to_owned());
                row.envelope = Some(envelope.to_string());
            }
            Said::Store(EnqueueAnswer::Refused(refusal)) => {
                row.result = "refused";
                row.code = Some(refusal.code());
                row.detail = Some(refusal.to_string());
            }
            Said::Malformed { code, message } => {
                row.result = "malformed";
                row.code = Some(code);
                row.detail = Some(message.clone());
            }
        }
        row
    }
}

impl Row for AnswerRow {
    const COLUMNS: &'static [&'static str] = &["LINE", "RESULT", "CODE", "ENVELOPE", "ENTRIES"];

    fn cells(&self) -> Vec<String> {
        let entries: Vec<String> = self.entries.iter().map(|to| format!("{} ({})", to.entry, to.destination)).collect();
        vec![
            self.line.to_string(),
            self.result.to_owned(),
            or_dash(self.code.map(str::to_owned)),
            or_dash(self.envelope.clone()),
            or_dash(Some(entries.join(", "))),
        ]
    }
}

enum Data<'a> {
    Summary(&'a mut Out),
    Each(List<'a, AnswerRow>),
}

/// Shows answers.
pub(super) struct Answers<'a> {
    data: Data<'a>,
    progress: Option<ProgressBar>,
    tally: Tally,
    unwritten: Option<Failure>,
}

impl<'a> Answers<'a> {
    /// A row a line, or a summary at the end.
    pub(super) fn new(each: bool, out: &'a mut Out) -> Self {
        let data = if each { Data::Each(out.list()) } else { Data::Summary(out) };
        Self { data, progress: stderr_is_watched().then(progress), tally: Tally::default(), unwritten: None }
    }

    /// Writes what is left.
    pub(super) fn end(self) -> Result {
        if let Some(progress) = self.progress {
            progress.finish_and_clear();
        }
        match (self.data, self.unwritten) {
            (_, Some(failure)) => Err(failure.hint("what could be saved is saved; only the answers were not written")),
            (Data::Summary(out), None) => out.sheet(&self.tally),
            (Data::Each(list), None) => list.end(),
        }
    }

    fn show_progress(&self) {
        let tally = &self.tally;
        let due = tally.lines >= PROGRESS_FROM_LINES && tally.lines.is_multiple_of(PROGRESS_EVERY);
        if let Some(progress) = self.progress.as_ref().filter(|_| due) {
            progress.set_position(tally.lines);
            progress.set_message(format!("{} lines, {} not saved", tally.lines, tally.failed()));
        }
    }
}

/// Made at the start, so that its rate is right; nothing is drawn before it is given a position.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}, {per_sec}, {elapsed}");
    ProgressBar::new_spinner().with_style(style.expect("the template is fixed and valid"))
}

impl Answered for Answers<'_> {
    fn answered(&mut self, answer: &LineAnswer, tally: &Tally) -> Result {
        self.tally = *tally;
        let row = AnswerRow::from(answer);
        if let (Some(code), Some(detail)) = (row.code, &row.detail) {
            let tell = || item_failed(code, &format!("line {}: {detail}", row.line));
            match &self.progress {
                Some(progress) => progress.suspend(tell),
                None => tell(),
            }
        }
        self.show_progress();
        if let (Data::Each(list), None) = (&mut self.data, &self.unwritten) {
            // Whoever reads the answers may go away; that must not keep the next lines from being saved.
            self.unwritten = list.push(&row).err();
        }
        Ok(())
    }
}
