//! Tests of the pure core: classification, routes, schedule, holds, invariants, options.
#![allow(clippy::unwrap_used)]

mod boundaries;
mod causes;
mod classification;
mod holds;
mod invariants;
mod options;
mod outage;
mod properties;
mod redrive;
mod routes;
mod support;
