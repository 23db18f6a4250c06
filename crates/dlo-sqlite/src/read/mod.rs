//! Reading verbs, inside the one read transaction that the store opened around each.
//!
//! Lists go newest first and are keyset-paged by sequence. A list that has to pass over rows which its filter does not
//! take looks at a bounded number of them ([`scan::BUDGET`]) and then says where it stopped. A row that can't be read is
//! left out of a list, with a warning: it does not hide the others, and `dlo doctor` names it.

mod attempts;
mod audit;
mod dead_letters;
mod describe;
mod destinations;
mod entries;
mod entry;
mod envelopes;
mod groups;
mod scan;
mod stats;
#[cfg(test)]
mod tests;
mod workers;

pub(crate) use audit::{audit_events, redrive_ledger};
pub(crate) use dead_letters::{QuarantineRow, dead_letter, dead_letters, quarantine_row, unreadable_dead_letters};
pub(crate) use describe::describe;
pub(crate) use destinations::{destinations, names as destination_names};
pub(crate) use entries::entries;
pub(crate) use entry::entry;
pub(crate) use envelopes::envelope_is_readable;
pub(crate) use groups::groups;
pub(crate) use stats::stats;
pub(crate) use workers::workers;
