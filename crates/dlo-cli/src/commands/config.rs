//! `dlo config check|show`.

use dlo::config::Shown;
use serde::Serialize;

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
