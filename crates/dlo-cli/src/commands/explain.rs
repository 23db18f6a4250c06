//! `dlo explain CODE`: the page of a code, out of the binary.

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Format, Out, Row, Sheet};

/// Every page of `docs/errors/`: code and text, sorted by code.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

/// Flags of `dlo explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Code, for example outbox.outcome_ambiguous
    #[arg(required_unless_present = "list")]
    code: Option<String>,
    /// List all codes instead
    #[arg(long)]
    list: bool,
}

#[derive(Serialize)]
struct Page {
    code: &'static str,
    page: &'static str,
}

impl Sheet for Page {
    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![("code", self.code.to_owned())]
    }
}

#[derive(Serialize)]
struct Summary {
    code: &'static str,
    summary: &'static str,
}

impl Row for Summary {
    const COLUMNS: &'static [&'static str] = &["CODE", "MEANING"];

    fn cells(&self) -> Vec<String> {
        vec![self.code.to_owned(), self.summary.to_owned()]
    }
}

/// The page of a code, if there is one.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == code).map(|(_, page)| *page)
}

/// Prints a page, or the list.
pub(crate) fn run(args: Args, mut out: Out) -> Result<Exit> {
    if args.list {
        let rows: Vec<Summary> =
            PAGES.iter().map(|(code, page)| Summary { code, summary: first_sentence(page) }).collect();
        out.rows(&rows)?;
        return Ok(Exit::Ok);
    }
    let asked = args.code.unwrap_or_default();
    let asked = asked.trim();
    let Some((code, page)) = PAGES.iter().find(|(code, _)| *code == asked) else {
        return Err(unknown(asked));
    };
    match out.format() {
        Format::Table => out.document(page)?,
        Format::Json | Format::Jsonl => out.sheet(&Page { code, page })?,
    }
    Ok(Exit::Ok)
}

fn unknown(asked: &str) -> Failure {
    let last = asked.rsplit('.').next().unwrap_or(asked);
    let near: Vec<&str> =
        PAGES.iter().map(|(code, _)| *code).filter(|code| !last.is_empty() && code.contains(last)).take(5).collect();
    let hint = if near.is_empty() {
        "`dlo explain --list` shows all codes".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Failure::not_found("code", asked).hint(hint)
}

fn first_sentence(page: &'static str) -> &'static str {
    page.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> [&'static [&'static str]; 9] {
        [
            dlo_core::reason::CODES,
            &dlo_core::dead_letter::RedriveRefusal::CODES,
            &dlo_ports::store::Refusal::CODES,
            &dlo_ports::StoreErrorKind::CODES,
            &dlo::office::OfficeError::CODES,
            &dlo::config::ConfigError::CODES,
            &dlo::cloudevents::EventError::CODES,
            &dlo_engine::EngineError::CODES,
            &dlo::webhook::CODES,
        ]
    }

    #[test]
    fn every_code_of_the_product_has_a_page() {
        let codes = families().into_iter().flatten().copied();
        let missing: Vec<&str> = codes.filter(|code| page(code).is_none()).collect();
        assert!(missing.is_empty(), "without a page in docs/errors: {missing:?}");
    }

    /// Whatever part of the product says it (trap D20).
    #[test]
    fn no_code_means_two_things() {
        let mut seen = std::collections::BTreeSet::new();
        let twice: Vec<&str> = families().into_iter().flatten().copied().filter(|code| !seen.insert(*code)).collect();
        assert!(twice.is_empty(), "codes of two families: {twice:?}");
    }

    #[test]
    fn near_codes_are_offered() {
        let hint = unknown("http.forbiden").hint_line();
        assert_eq!(hint.as_deref(), Some("`dlo explain --list` shows all codes"));
        let hint = unknown("forbidden").hint_line().expect("a hint");
        assert!(hint.contains("http.forbidden"), "{hint}");
    }
}
