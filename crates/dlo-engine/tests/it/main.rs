//! The engine against the model store, under a clock that the tests own.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    missing_docs,
    unreachable_pub
)]

mod faulty;
mod support;
mod world;

mod allowance;
mod crash;
mod crowd;
mod delivery;
mod holds;
mod late;
mod logs;
mod quarantine;
mod running;
mod traps;
