//! Integration tests of the SQLite store.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, missing_docs, unreachable_pub)]

mod check;
mod conformance;
mod damage;
mod embed;
mod file;
mod flow;
mod group;
mod imports;
mod lock;
mod manners;
mod migrations;
mod oracle;
mod others;
mod plans;
mod races;
mod retention;
mod support;
