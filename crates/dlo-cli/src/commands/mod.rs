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

use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::wire::act::ActRow;

/// How an act on `total` items ends, of which `failed` failed.
pub(crate) fn act_exit(what: &str, total: usize, failed: usize) -> Result<Exit> {
    match failed {
        0 => Ok(Exit::Ok),
        _ if failed == total => {
            Err(Failure::new(Exit::Refused, code::REFUSED, format!("{what}: none of {total} was done")))
        }
        _ => {
            let message = format!("{what}: {failed} of {total} were not done, the others were");
            Err(Failure::new(Exit::Partial, code::PARTIAL, message))
        }
    }
}

/// Writes the items of an act and says how it ended.
pub(crate) fn act_answer(what: &str, rows: &[ActRow], out: &mut output::Out) -> Result<Exit> {
    out.rows(rows)?;
    act_exit(what, rows.len(), rows.iter().filter(|row| !row.is_done()).count())
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
