//! Integration tests of the SQLite store.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, missing_docs, unreachable_pub)]

mod check;
mod conformance;
mod flow;
mod imports;
mod manners;
mod retention;
mod support;
