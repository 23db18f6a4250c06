//! The only place that writes to stdout and stderr: tables for people, JSON for programs, notes beside the data.
//!
//! Data goes to stdout and nothing else does. Colour and `NO_COLOR` are decided by `anstream`.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, IsTerminal, Write};
use std::panic::Location;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Result, code};

/// How data is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// A row of a list.
pub(crate) trait Row: Serialize {
    /// Column heads of the table.
    const COLUMNS: &'static [&'static str];
    /// One cell for each column.
    fn cells(&self) -> Vec<String>;
}

/// One thing in full: facts for people, the serialised value for programs.
pub(crate) trait Sheet: Serialize {
    /// Names and values, in the order to be shown; a blank name continues the one before.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

const HEAD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

/// Writes data to stdout.
pub(crate) struct Out {
    format: Format,
    stdout: anstream::AutoStream<io::Stdout>,
}

impl Out {
    /// For that format.
    pub(crate) fn new(format: Format) -> Self {
        Self { format, stdout: anstream::stdout() }
    }

    /// The format that was asked for.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Begins a list, which is written as it comes (JSON) or when it is complete (table).
    pub(crate) fn list<R: Row>(&mut self) -> List<'_, R> {
        List { out: self, rows: Vec::new(), written: 0, marker: core::marker::PhantomData }
    }

    /// Writes a whole list.
    pub(crate) fn rows<R: Row>(&mut self, rows: &[R]) -> Result {
        let mut list = self.list();
        for row in rows {
            list.push(row)?;
        }
        list.end()
    }

    /// Writes one thing in full.
    pub(crate) fn sheet<S: Sheet>(&mut self, sheet: &S) -> Result {
        match self.format {
            Format::Table => {
                let mut table = plain_table();
                for (name, value) in sheet.facts() {
                    table.add_row([name.to_owned(), clean(&value)]);
                }
                self.line(&trimmed(&table))
            }
            Format::Json => self.json_pretty(sheet),
            Format::Jsonl => self.json_line(sheet),
        }
    }

    /// Writes a document as it is: a page, a script, metrics.
    pub(crate) fn document(&mut self, text: &str) -> Result {
        self.stdout
            .write_all(text.as_bytes())
            .and_then(|()| self.stdout.flush())
            .map_err(|error| Failure::io("stdout", &error))
    }

    /// Writes one line of text.
    pub(crate) fn line(&mut self, text: &str) -> Result {
        self.document(&format!("{text}\n"))
    }

    fn json_line(&mut self, value: &impl Serialize) -> Result {
        let text = serde_json::to_string(value).expect("wire types have string keys only");
        self.line(&text)
    }

    fn json_pretty(&mut self, value: &impl Serialize) -> Result {
        let text = serde_json::to_string_pretty(value).expect("wire types have string keys only");
        self.line(&text)
    }
}

/// A list being written.
pub(crate) struct List<'a, R> {
    out: &'a mut Out,
    rows: Vec<Vec<String>>,
    written: usize,
    marker: core::marker::PhantomData<R>,
}

impl<R: Row> List<'_, R> {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: &R) -> Result {
        match self.out.format {
            Format::Table => self.rows.push(row.cells().iter().map(|cell| clean(cell)).collect()),
            Format::Jsonl => self.out.json_line(row)?,
            Format::Json => {
                let text = serde_json::to_string_pretty(row).expect("wire types have string keys only");
                let lead = if self.written == 0 { "[\n" } else { ",\n" };
                self.out.document(&format!("{lead}{}", indented(&text)))?;
            }
        }
        self.written += 1;
        Ok(())
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.written
    }

    /// Ends the list.
    pub(crate) fn end(self) -> Result {
        match self.out.format {
            Format::Jsonl => Ok(()),
            Format::Json if self.written == 0 => self.out.line("[]"),
            Format::Json => self.out.line("\n]"),
            // A head without rows says nothing that the note about an empty list does not say better.
            Format::Table if self.rows.is_empty() => Ok(()),
            Format::Table => {
                let mut table = plain_table();
                table.set_header(R::COLUMNS.iter().copied());
                for row in self.rows {
                    table.add_row(row);
                }
                let text = trimmed(&table);
                let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
                self.out.line(&format!("{HEAD}{head}{RESET}\n{body}"))
            }
        }
    }
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Without the blanks that a borderless table leaves at both ends of its lines.
fn trimmed(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// What other people wrote may steer a terminal or turn a line around: control and direction marks become blanks.
pub(crate) fn clean(text: &str) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Whether stderr is read by a program, which wants one JSON object a line of everything.
static JSON_ON_STDERR: AtomicBool = AtomicBool::new(false);

/// From now on everything that is said on stderr is one JSON object a line.
pub(crate) fn speak_json() {
    JSON_ON_STDERR.store(true, Ordering::Relaxed);
}

/// Whether that is so.
pub(crate) fn speaks_json() -> bool {
    JSON_ON_STDERR.load(Ordering::Relaxed)
}

/// Says something on stderr: as text, or as a JSON object. A stderr that is gone is no reason to stop.
fn say(text: &str, level: &str, code: Option<&str>, message: &str) {
    let mut stderr = anstream::stderr();
    let _ = if speaks_json() {
        writeln!(stderr, "{}", serde_json::json!({ "level": level, "code": code, "message": message }))
    } else {
        writeln!(stderr, "{text}")
    };
}

/// Tells the person something that is not data.
pub(crate) fn note(text: impl AsRef<str>) {
    let text = text.as_ref();
    say(text, "INFO", None, text.trim());
}

/// Tells the person of one item that failed, without ending the command.
pub(crate) fn item_failed(code: &str, text: &str) {
    say(&format!("{RED}error[{code}]{RESET}: {}", clean(text)), "ERROR", Some(code), text);
}

/// Tells the person of something to look at.
pub(crate) fn warn(text: &str) {
    say(&format!("{RED}warning{RESET}: {}", clean(text)), "WARN", None, text);
}

/// Whether somebody watches stderr (and so wants progress).
pub(crate) fn stderr_is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Tells of a panic by its place alone: its message may hold content (I-13).
pub(crate) fn defect(place: Option<&Location<'_>>) {
    let place = place.map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    item_failed(code::DEFECT, &format!("dlo has a defect: it panicked at {place}; nothing that was saved is lost"));
}

/// Reports why the command ended, as people (`error[code]: …`, `hint: …`) or log readers (one JSON object) want it.
pub(crate) fn report(failure: &Failure, verbose: bool) -> Exit {
    if failure.is_quiet() {
        return failure.exit();
    }
    let mut stderr = anstream::stderr();
    if speaks_json() {
        let line = serde_json::json!({
            "level": "ERROR",
            "code": failure.code(),
            "message": failure.message(),
            "details": failure.detail_lines(),
            "hint": failure.hint_line(),
            "causes": failure.causes(),
        });
        let _ = writeln!(stderr, "{line}");
        return failure.exit();
    }
    let _ = writeln!(stderr, "{RED}error[{}]{RESET}: {}", failure.code(), clean(failure.message()));
    for detail in failure.detail_lines() {
        let _ = writeln!(stderr, "  {}", clean(detail));
    }
    if verbose {
        for cause in failure.causes() {
            let _ = writeln!(stderr, "cause: {}", clean(cause));
        }
    }
    if let Some(hint) = failure.hint_line() {
        let _ = writeln!(stderr, "{CYAN}hint{RESET}: {}", clean(&hint));
    }
    failure.exit()
}
