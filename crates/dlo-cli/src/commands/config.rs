//! `dlo config check|show`.

use dlo::config::Shown;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Row, note, warn};
use crate::wire::or_dash;

/// Verbs of `dlo config`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Check the file, the environment and the flags; every problem is shown with its place
    Check,
    /// Show every value and where it came from
    Show,
}

/// One value.
#[derive(Serialize)]
struct ValueRow {
    key: String,
    value: String,
    origin: String,
}

impl From<&Shown> for ValueRow {
    fn from(shown: &Shown) -> Self {
        Self { key: shown.key.clone(), value: shown.value.clone(), origin: shown.origin.to_string() }
    }
}

impl Row for ValueRow {
    const COLUMNS: &'static [&'static str] = &["KEY", "VALUE", "ORIGIN"];

    fn cells(&self) -> Vec<String> {
        vec![self.key.clone(), or_dash(Some(self.value.clone())), self.origin.clone()]
    }
}

/// Runs one. A configuration that is not valid has failed before this is reached.
pub(crate) fn run(command: Command, mut context: Context) -> Result<Exit> {
    match command {
        Command::Check => {
            for warning in context.config.check(&Context::registry())? {
                warn(&warning);
            }
            for spec in &context.config.destinations {
                for reference in unreadable_references(&spec.settings) {
                    warn(&format!(
                        "destination `{}`: `{reference}` can't be read here: an engine that can't read it holds the \
                         destination",
                        spec.name
                    ));
                }
            }
            let file = context.config.file.as_ref().map_or("defaults".to_owned(), |file| file.display().to_string());
            note(format!("{file}: valid, destinations: {}", context.config.destinations.len()));
        }
        Command::Show => {
            let rows: Vec<ValueRow> = context.config.show().iter().map(ValueRow::from).collect();
            context.out.rows(&rows)?;
        }
    }
    Ok(Exit::Ok)
}

/// References to secrets that stand for nothing in this process, which may be another than the engine's. What they
/// stand for is not kept.
fn unreadable_references(settings: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&serde_json::from_str(settings).unwrap_or_default(), &mut found);
    found.retain(|reference| match reference.split_once(':') {
        Some(("env", name)) => std::env::var_os(name).is_none(),
        Some(("file", path)) => std::fs::File::open(path).is_err(),
        _ => false,
    });
    found
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
