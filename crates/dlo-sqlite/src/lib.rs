//! SQLite store of Dead Letter Office: one file, one engine, any number of producers and readers on the host.
//!
//! **What it is for.** Everything between a verb and its commit: group commit with `synchronous=FULL`, claims with a
//! fence, quarantine in the transaction of the terminal transition, reads of one snapshot each.
//!
//! **What it must never do.** Decide: routes, delays and holds are computed in `dlo-core` and arrive here as
//! transitions. Answer before the commit. Print or log content (I-13).

mod error;
mod rows;
mod sequence;
mod totals;
