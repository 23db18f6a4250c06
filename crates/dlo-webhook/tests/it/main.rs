//! The webhook emitter against real servers on loopback, most of which misbehave.
#![allow(clippy::unwrap_used, missing_docs)]

mod addresses;
mod answers;
mod connections;
mod events;
mod phases;
mod secrets;
mod settings;
mod signatures;
mod support;
mod tls;
