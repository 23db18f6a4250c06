//! Tests of the office against the model store.
#![allow(clippy::unwrap_used, missing_docs)]

mod desk;
mod destinations;
mod entries;
mod permission;
mod redrive;
mod store_failure;
