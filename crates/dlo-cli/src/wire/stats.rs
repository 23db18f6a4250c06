//! Figures of a store.

use core::time::Duration;

use dlo_core::TenantId;
use dlo_ports::store::{DeadLetterTotal, Depth, DestinationStats, Stats};
use serde::Serialize;

use super::span;
use crate::output::Row;

/// Live entries of a destination by state.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct DepthWire {
    pub(crate) ready: u64,
    pub(crate) waiting: u64,
    pub(crate) claimed: u64,
    pub(crate) manual_review: u64,
    pub(crate) dead_letters_open: u64,
}

impl From<Depth> for DepthWire {
    fn from(depth: Depth) -> Self {
        let Depth { ready, waiting, claimed, manual_review, dead_letters_open } = depth;
        Self { ready, waiting, claimed, manual_review, dead_letters_open }
    }
}

impl DepthWire {
    /// One line for people.
    pub(crate) fn line(self) -> String {
        let Self { ready, waiting, claimed, manual_review, dead_letters_open } = self;
        format!(
            "ready {ready}, waiting {waiting}, claimed {claimed}, manual review {manual_review}, open dead letters \
             {dead_letters_open}"
        )
    }
}

/// A row of `dlo stats`.
#[derive(Debug, Serialize)]
pub(crate) struct StatsRow {
    tenant: String,
    destination: String,
    held: bool,
    depth: DepthWire,
    oldest_due: Option<String>,
    enqueued_total: u64,
    delivered_total: u64,
    cancelled_total: u64,
    failed_attempts_total: u64,
    dead_letters_total: u64,
    #[serde(skip)]
    age: Option<Duration>,
}

impl StatsRow {
    /// Rows of a whole store.
    pub(crate) fn all(stats: &Stats) -> Vec<Self> {
        stats.destinations.iter().map(|figures| Self::new(figures, stats)).collect()
    }

    /// Whether it is of that tenant.
    pub(crate) fn is_of(&self, tenant: &TenantId) -> bool {
        self.tenant == tenant.as_str()
    }

    fn new(figures: &DestinationStats, stats: &Stats) -> Self {
        let of_destination =
            |total: &&DeadLetterTotal| (&total.tenant, &total.destination) == (&figures.tenant, &figures.destination);
        Self {
            tenant: figures.tenant.to_string(),
            destination: figures.destination.to_string(),
            held: figures.held,
            depth: figures.depth.into(),
            oldest_due: figures.oldest_due.map(|at| at.to_string()),
            enqueued_total: figures.enqueued_total,
            delivered_total: figures.delivered_total,
            cancelled_total: figures.cancelled_total,
            failed_attempts_total: figures.failed_attempts_total,
            dead_letters_total: stats.dead_letters.iter().filter(of_destination).map(|total| total.total).sum(),
            age: figures.oldest_due.map(|at| stats.now.since(at)),
        }
    }
}

impl Row for StatsRow {
    const COLUMNS: &'static [&'static str] = &[
        "TENANT",
        "DESTINATION",
        "HELD",
        "READY",
        "WAITING",
        "CLAIMED",
        "REVIEW",
        "OLDEST",
        "ENQUEUED",
        "DELIVERED",
        "CANCELLED",
        "FAILED TRIES",
        "DEAD",
        "DEAD OPEN",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.tenant.clone(),
            self.destination.clone(),
            if self.held { "yes" } else { "no" }.to_owned(),
            self.depth.ready.to_string(),
            self.depth.waiting.to_string(),
            self.depth.claimed.to_string(),
            self.depth.manual_review.to_string(),
            self.age.map_or_else(|| "-".to_owned(), span),
            self.enqueued_total.to_string(),
            self.delivered_total.to_string(),
            self.cancelled_total.to_string(),
            self.failed_attempts_total.to_string(),
            self.dead_letters_total.to_string(),
            self.depth.dead_letters_open.to_string(),
        ]
    }
}
