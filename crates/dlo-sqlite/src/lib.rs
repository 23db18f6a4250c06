//! SQLite store of Dead Letter Office: one file, one engine, any number of producers and readers on the host.
//!
//! **What it is for.** Everything between a verb and its commit: group commit with `synchronous=FULL`, claims with a
//! fence, quarantine in the transaction of the terminal transition, reads of one snapshot each.
//!
//! **What it must never do.** Decide: routes, delays and holds are computed in `dlo-core` and arrive here as
//! transitions. Answer before the commit. Print or log content (I-13).

mod attempt;
mod batch;
mod bulk;
mod catalog;
mod check;
mod claim;
mod due;
mod embed;
mod enqueue;
mod error;
mod fence;
mod history;
mod keys;
mod lock;
mod log;
mod memory;
mod migrate;
mod office;
mod open;
mod payload;
mod polite;
mod quarantine;
mod random;
mod read;
mod reader;
mod rows;
mod seqs;
mod sequence;
mod settle;
mod store;
mod sweep;
#[cfg(test)]
mod testing;
mod tidy;
mod totals;
mod turn;
mod verbs;
mod worker;
mod writer;

pub use embed::enqueue_in;
pub use migrate::{SCHEMA_VERSION, migrate};
pub use open::{Attach, OpenOptions, StoreClock};
pub use random::system_random;
pub use store::SqliteStore;
pub use turn::Random;
