//! Tests of the facade.
#![allow(clippy::unwrap_used, missing_docs)]

mod config;
