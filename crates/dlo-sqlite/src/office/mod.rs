//! Operators' verbs, inside the write transaction that the store opened for them.
//!
//! Each saves its audit event with its change (I-12). An act never waits and never looks at the clock: the store gives
//! one time for the whole verb.

mod audit;
mod destinations;
mod entries;
mod redrive;
#[cfg(test)]
mod tests;

pub(crate) use destinations::{act_on_destinations, apply_destinations};
pub(crate) use entries::act_on_entries;
pub(crate) use redrive::redrive;
