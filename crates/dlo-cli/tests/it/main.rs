//! The real binary, run as a person or a script runs it.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod acts;
mod canary;
mod demo;
mod endpoint;
mod engine;
mod enqueue;
mod files;
mod help;
mod place;
mod proof;
