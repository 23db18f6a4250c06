//! OpenMetrics text of the store's figures and of this process's counters.

use core::fmt::{self, Write};

use dlo_core::{DestinationName, TenantId};
use dlo_ports::store::{DestinationStats, Stats};

use crate::{
    metrics::{self, BUCKETS, Counts, Family, Kind, Metrics, OUTCOMES, Snapshot},
    shared::LaneKey,
};

/// Media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Label value of everything beyond a series limit; no tenant or destination can have this name.
const OTHER: &str = "_other";

/// Renders OpenMetrics 1.0 text. Without an engine in the process, pass an empty registry.
pub fn render_openmetrics(stats: &Stats, registry: &Metrics) -> String {
    let mut page = Page(String::new());
    let snapshot = registry.snapshot();
    // Writing to a `String` cannot fail.
    let _ = page.store(stats).and_then(|()| page.process(&snapshot)).and_then(|()| page.0.write_str("# EOF\n"));
    page.0
}

struct Page(String);

type Label<'a> = (&'a str, &'a str);

impl Page {
    fn family(&mut self, family: &Family) -> fmt::Result {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        writeln!(self.0, "# TYPE {} {kind}", family.name)?;
        if let Some(unit) = family.unit {
            writeln!(self.0, "# UNIT {} {unit}", family.name)?;
        }
        writeln!(self.0, "# HELP {} {}", family.name, family.help)
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &[Label<'_>], value: impl fmt::Display) -> fmt::Result {
        write!(self.0, "{name}{suffix}")?;
        for (index, (label, text)) in labels.iter().enumerate() {
            write!(self.0, "{}{label}=\"", if index == 0 { '{' } else { ',' })?;
            for c in text.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        writeln!(self.0, " {value}")
    }

    fn figures(&mut self, stats: &Stats, family: &Family, value: impl Fn(&DestinationStats) -> String) -> fmt::Result {
        self.family(family)?;
        let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
        for destination in &stats.destinations {
            let labels = labels_of(&destination.tenant, &destination.destination);
            self.sample(family.name, suffix, &labels, value(destination))?;
        }
        Ok(())
    }

    fn store(&mut self, stats: &Stats) -> fmt::Result {
        self.figures(stats, &metrics::READY, |d| d.depth.ready.to_string())?;
        self.figures(stats, &metrics::WAITING, |d| d.depth.waiting.to_string())?;
        self.figures(stats, &metrics::CLAIMED, |d| d.depth.claimed.to_string())?;
        self.figures(stats, &metrics::MANUAL_REVIEW, |d| d.depth.manual_review.to_string())?;
        self.figures(stats, &metrics::OPEN_DEAD_LETTERS, |d| d.depth.dead_letters_open.to_string())?;
        self.figures(stats, &metrics::OLDEST_DUE, |d| {
            let age = d.oldest_due.map_or(0, |due| stats.now.since(due).as_millis());
            format!("{}.{:03}", age / 1_000, age % 1_000)
        })?;
        self.figures(stats, &metrics::HELD, |d| u8::from(d.held).to_string())?;
        self.figures(stats, &metrics::ENQUEUED, |d| d.enqueued_total.to_string())?;
        self.family(&metrics::DEAD_LETTERS)?;
        for total in &stats.dead_letters {
            let [tenant, destination] = labels_of(&total.tenant, &total.destination);
            let labels = [tenant, destination, ("class", total.class.as_str()), ("reason", total.reason.as_str())];
            self.sample(metrics::DEAD_LETTERS.name, "_total", &labels, total.total)?;
        }
        Ok(())
    }

    fn counts(&mut self, snapshot: &Snapshot, family: &Family, value: impl Fn(&Counts) -> u64) -> fmt::Result {
        self.family(family)?;
        let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
        for (key, counts) in &snapshot.destinations {
            self.sample(family.name, suffix, &labels_of_key(key.as_ref()), value(counts))?;
        }
        Ok(())
    }

    fn process(&mut self, snapshot: &Snapshot) -> fmt::Result {
        self.emissions(snapshot)?;
        self.durations(snapshot)?;
        self.counts(snapshot, &metrics::IN_FLIGHT, |c| c.in_flight)?;
        self.counts(snapshot, &metrics::CLAIMS, |c| c.claims)?;
        self.counts(snapshot, &metrics::RELEASES, |c| c.releases)?;
        self.counts(snapshot, &metrics::SETTLED, |c| c.settled)?;
        self.counts(snapshot, &metrics::DELIVERED, |c| c.delivered)?;
        self.counts(snapshot, &metrics::FAILED_ATTEMPTS, |c| c.failed_attempts)?;
        self.counts(snapshot, &metrics::STALE, |c| c.stale)?;
        self.counts(snapshot, &metrics::HOLDS_OPENED, |c| c.holds_opened)?;
        self.counts(snapshot, &metrics::HOLDS_CLOSED, |c| c.holds_closed)?;
        self.dead_letters(snapshot)?;
        self.family(&metrics::STORE_ERRORS)?;
        for (code, count) in &snapshot.store_errors {
            self.sample(metrics::STORE_ERRORS.name, "_total", &[("code", code)], count)?;
        }
        Ok(())
    }

    fn emissions(&mut self, snapshot: &Snapshot) -> fmt::Result {
        self.family(&metrics::EMISSIONS)?;
        for (key, counts) in &snapshot.destinations {
            let [tenant, destination] = labels_of_key(key.as_ref());
            for (outcome, count) in OUTCOMES.iter().zip(counts.outcomes).filter(|(_, count)| *count > 0) {
                let labels = [tenant, destination, ("outcome", *outcome)];
                self.sample(metrics::EMISSIONS.name, "_total", &labels, count)?;
            }
        }
        Ok(())
    }

    fn durations(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let name = metrics::EMISSION_DURATION.name;
        self.family(&metrics::EMISSION_DURATION)?;
        for (key, counts) in snapshot.destinations.iter().filter(|(_, counts)| counts.durations > 0) {
            let [tenant, destination] = labels_of_key(key.as_ref());
            let mut below = 0;
            for ((_, bound), count) in BUCKETS.iter().zip(counts.buckets) {
                below += count;
                self.sample(name, "_bucket", &[tenant, destination, ("le", *bound)], below)?;
            }
            self.sample(name, "_bucket", &[tenant, destination, ("le", "+Inf")], counts.durations)?;
            let micros = counts.duration_micros;
            let seconds = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            self.sample(name, "_sum", &[tenant, destination], seconds)?;
            self.sample(name, "_count", &[tenant, destination], counts.durations)?;
        }
        Ok(())
    }

    fn dead_letters(&mut self, snapshot: &Snapshot) -> fmt::Result {
        self.family(&metrics::DEAD_LETTERS_HERE)?;
        for (key, counts) in &snapshot.destinations {
            let [tenant, destination] = labels_of_key(key.as_ref());
            for (series, count) in &counts.dead_letters {
                let (class, reason) =
                    series.as_ref().map_or((OTHER, OTHER), |(class, reason)| (class.as_str(), reason.as_str()));
                let labels = [tenant, destination, ("class", class), ("reason", reason)];
                self.sample(metrics::DEAD_LETTERS_HERE.name, "_total", &labels, count)?;
            }
        }
        Ok(())
    }
}

fn labels_of<'a>(tenant: &'a TenantId, destination: &'a DestinationName) -> [Label<'a>; 2] {
    [("tenant", tenant.as_str()), ("destination", destination.as_str())]
}

fn labels_of_key(key: Option<&LaneKey>) -> [Label<'_>; 2] {
    key.map_or([("tenant", OTHER), ("destination", OTHER)], |key| labels_of(&key.0, &key.1))
}
