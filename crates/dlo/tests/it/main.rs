//! Tests of the facade.
#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::items_after_statements,
    clippy::duration_suboptimal_units,
    missing_docs
)]

mod cloudevents;
mod config;
mod damage;
mod examples;
mod outbox;
