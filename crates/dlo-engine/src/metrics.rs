//! Counters of one engine process. Names, units and help texts are constants of this file; the reference page is
//! generated from [`FAMILIES`].

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Mutex;

use dlo_core::{Class, Outcome, Reason};

use crate::{
    limits,
    shared::{LaneKey, locked},
};

/// Kind of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by bucket.
    Histogram,
}

/// A metric family: everything that is documented about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name without suffixes.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Unit, if it has one; the name ends in it.
    pub unit: Option<&'static str>,
    /// What it says.
    pub help: &'static str,
    /// Label names.
    pub labels: &'static [&'static str],
}

const DESTINATION: &[&str] = &["tenant", "destination"];

macro_rules! families {
    ($($id:ident = $name:literal, $kind:ident, $unit:expr, $labels:expr, $help:literal;)*) => {
        $(#[doc = $help] pub const $id: Family = Family {
            name: $name, kind: Kind::$kind, unit: $unit, help: $help, labels: $labels,
        };)*
        /// Every metric family of the engine, in the order in which it is written.
        pub const FAMILIES: &[Family] = &[$($id),*];
    };
}

families! {
    EMISSIONS = "dlo_emissions", Counter, None, &["tenant", "destination", "outcome"],
        "Emissions by outcome, as the emitter answered.";
    EMISSION_DURATION = "dlo_emission_duration_seconds", Histogram, Some("seconds"), DESTINATION,
        "Time from the start of an emission to its outcome, one observation a call of the emitter.";
    IN_FLIGHT = "dlo_emissions_in_flight", Gauge, None, DESTINATION, "Emissions in flight now.";
    CLAIMS = "dlo_claims", Counter, None, DESTINATION, "Claims of entries taken.";
    RELEASES = "dlo_releases", Counter, None, DESTINATION, "Claims given back uncharged by a shutdown or a hold.";
    SETTLED = "dlo_settled", Counter, None, DESTINATION, "Transitions saved.";
    DELIVERED = "dlo_delivered", Counter, None, DESTINATION, "Entries that ended delivered, by this process.";
    FAILED_ATTEMPTS = "dlo_failed_attempts", Counter, None, DESTINATION,
        "Failed attempts charged to an allowance, by this process.";
    STALE = "dlo_stale_results", Counter, None, DESTINATION,
        "Transitions that changed nothing because another decision was quicker.";
    HOLDS_OPENED = "dlo_holds_opened", Counter, None, DESTINATION, "Holds opened on evidence.";
    HOLDS_CLOSED = "dlo_holds_closed", Counter, None, DESTINATION, "Holds that ended.";
    DEAD_LETTERS = "dead_letters", Counter, None, &["tenant", "destination", "class", "reason"],
        "Dead letters opened since the database was made, by class and reason of the cause.";
    DEAD_LETTERS_HERE = "dlo_dead_letters_opened", Counter, None, &["tenant", "destination", "class", "reason"],
        "Dead letters opened by this process, by class and reason of the cause.";
    STORE_ERRORS = "dlo_store_errors", Counter, None, &["code"], "Store verbs that failed, by code.";
    READY = "dlo_entries_ready", Gauge, None, DESTINATION, "Entries due and unclaimed, held ones included.";
    WAITING = "dlo_entries_waiting", Gauge, None, DESTINATION, "Entries due later.";
    CLAIMED = "dlo_entries_claimed", Gauge, None, DESTINATION, "Entries under a lease.";
    MANUAL_REVIEW = "dlo_entries_manual_review", Gauge, None, DESTINATION, "Entries set aside for a person.";
    OPEN_DEAD_LETTERS = "dlo_dead_letters_open", Gauge, None, DESTINATION, "Dead letters that nobody has released.";
    OLDEST_DUE = "dlo_oldest_due_seconds", Gauge, Some("seconds"), DESTINATION,
        "Age of the oldest due entry; 0 when none is due.";
    HELD = "dlo_destination_held", Gauge, None, DESTINATION, "1 while the destination is held, else 0.";
    ENQUEUED = "dlo_enqueued", Counter, None, DESTINATION,
        "Entries enqueued since the database was made, redrives included.";
}

/// Upper bounds of the duration histogram, in milliseconds, with their text in seconds.
pub(crate) const BUCKETS: [(u64, &str); 12] = [
    (1, "0.001"),
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1.0"),
    (5_000, "5.0"),
    (15_000, "15.0"),
    (60_000, "60.0"),
];

/// Outcome names, in the order in which they are counted.
pub(crate) const OUTCOMES: [&str; 7] =
    ["delivered", "pending", "deferred", "failed", "retryable_failure", "dead_lettered", "ambiguous"];

/// Counters of one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) buckets: [u64; BUCKETS.len()],
    pub(crate) durations: u64,
    pub(crate) duration_micros: u64,
    pub(crate) in_flight: u64,
    pub(crate) claims: u64,
    pub(crate) releases: u64,
    pub(crate) settled: u64,
    pub(crate) delivered: u64,
    pub(crate) failed_attempts: u64,
    pub(crate) stale: u64,
    pub(crate) holds_opened: u64,
    pub(crate) holds_closed: u64,
    /// `None` is everything beyond [`limits::MAX_METRIC_REASONS`].
    pub(crate) dead_letters: BTreeMap<Option<(Class, Reason)>, u64>,
}

/// All counters. `None` as a destination is everything beyond [`limits::MAX_METRIC_DESTINATIONS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) destinations: BTreeMap<Option<LaneKey>, Counts>,
    pub(crate) store_errors: BTreeMap<&'static str, u64>,
}

/// The registry: bounded, ordered, one lock a batch.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Snapshot>);

impl Metrics {
    fn on(&self, key: &LaneKey, change: impl FnOnce(&mut Counts)) {
        let mut snapshot = locked(&self.0);
        let map = &mut snapshot.destinations;
        let key = Some(key.clone());
        if let Some(counts) = map.get_mut(&key) {
            change(counts);
        } else if map.len() < limits::MAX_METRIC_DESTINATIONS {
            change(map.entry(key).or_default());
        } else {
            change(map.entry(None).or_default());
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        locked(&self.0).clone()
    }

    pub(crate) fn emissions_started(&self, key: &LaneKey, count: usize) {
        self.on(key, |counts| counts.in_flight += count as u64);
    }

    pub(crate) fn emissions_ended<'a>(
        &self,
        key: &LaneKey,
        count: usize,
        outcomes: impl Iterator<Item = &'a Outcome>,
        took: Duration,
    ) {
        self.on(key, |counts| {
            counts.in_flight = counts.in_flight.saturating_sub(count as u64);
            for outcome in outcomes {
                if let Some(index) = OUTCOMES.iter().position(|name| *name == outcome.name()) {
                    counts.outcomes[index] += 1;
                }
            }
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            counts.durations += 1;
            counts.duration_micros = counts.duration_micros.saturating_add(micros);
            if let Some(index) = BUCKETS.iter().position(|(bound, _)| micros <= bound * 1_000) {
                counts.buckets[index] += 1;
            }
        });
    }

    pub(crate) fn emissions_cut(&self, key: &LaneKey, count: usize) {
        self.on(key, |counts| counts.in_flight = counts.in_flight.saturating_sub(count as u64));
    }

    pub(crate) fn claimed(&self, key: &LaneKey, count: usize) {
        self.on(key, |counts| counts.claims += count as u64);
    }

    pub(crate) fn released(&self, key: &LaneKey, count: usize) {
        self.on(key, |counts| counts.releases += count as u64);
    }

    pub(crate) fn settled(&self, key: &LaneKey, applied: usize, delivered: usize, stale: usize) {
        self.on(key, |counts| {
            counts.settled += applied as u64;
            counts.delivered += delivered as u64;
            counts.stale += stale as u64;
        });
    }

    pub(crate) fn charged(&self, key: &LaneKey) {
        self.on(key, |counts| counts.failed_attempts += 1);
    }

    pub(crate) fn dead_letter(&self, key: &LaneKey, class: Class, reason: &Reason) {
        self.on(key, |counts| {
            let series = Some((class, reason.clone()));
            let full = counts.dead_letters.len() >= limits::MAX_METRIC_REASONS;
            let series = if full && !counts.dead_letters.contains_key(&series) { None } else { series };
            *counts.dead_letters.entry(series).or_default() += 1;
        });
    }

    pub(crate) fn hold_opened(&self, key: &LaneKey) {
        self.on(key, |counts| counts.holds_opened += 1);
    }

    pub(crate) fn hold_closed(&self, key: &LaneKey) {
        self.on(key, |counts| counts.holds_closed += 1);
    }

    pub(crate) fn store_error(&self, code: &'static str) {
        *locked(&self.0).store_errors.entry(code).or_default() += 1;
    }
}
