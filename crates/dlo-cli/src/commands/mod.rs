//! One file for each verb.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead_letters;
pub(crate) mod demo;
pub(crate) mod destinations;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod enqueue;
pub(crate) mod entries;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod paging;
pub(crate) mod redrive;
pub(crate) mod run;
pub(crate) mod stats;
pub(crate) mod workers;

use core::fmt::Display;
use core::str::FromStr;
use std::collections::BTreeSet;

use dlo_core::{DeadLetterId, EntryId};

use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::wire::act::ActRow;

/// Writes the items of an act and says how it ended.
pub(crate) fn act_answer(what: &str, rows: &[ActRow], out: &mut output::Out) -> Result<Exit> {
    out.rows(rows)?;
    let total = rows.len();
    let failed = rows.iter().filter(|row| !row.is_done()).count();
    let failure = match failed {
        0 => return Ok(Exit::Ok),
        _ if failed == total => Failure::new(Exit::Refused, code::REFUSED, format!("{what}: none of {total} was done")),
        _ => {
            let message = format!("{what}: {failed} of {total} were not done, the others were");
            Failure::new(Exit::Partial, code::PARTIAL, message)
        }
    };
    // What to do follows from the codes of the items, not from the code of the whole.
    let codes: BTreeSet<&str> = rows.iter().filter_map(ActRow::code).collect();
    let pages: Vec<String> = codes.iter().map(|code| format!("`dlo explain {code}`")).collect();
    Err(failure.hint(format!("{} says what to do", pages.join(", "))))
}

/// An entry id, for the command line's own parsing.
pub(crate) fn entry_id(text: &str) -> std::result::Result<EntryId, String> {
    id(text, "dl_", "this one is of a dead letter: `dlo dead-letters show` names its entry")
}

/// A dead letter id, for the command line's own parsing.
pub(crate) fn dead_letter_id(text: &str) -> std::result::Result<DeadLetterId, String> {
    id(text, "ent_", "this one is of an entry: `dlo entries show` names its dead letter")
}

/// An id; one with the prefix of a neighbour is taken for it, since lists show both.
fn id<T: FromStr<Err: Display>>(text: &str, neighbour: &str, advice: &str) -> std::result::Result<T, String> {
    text.parse().map_err(
        |error: T::Err| {
            if text.starts_with(neighbour) { format!("{error}; {advice}") } else { error.to_string() }
        },
    )
}

/// Names a state for the command line's own parsing.
pub(crate) fn parse_name<T: Copy>(
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> std::result::Result<T, String> {
    let normal = text.replace('-', "_");
    all.iter()
        .copied()
        .find(|value| name(*value) == normal)
        .ok_or_else(|| format!("one of {}", all.iter().map(|value| name(*value)).collect::<Vec<_>>().join(", ")))
}
