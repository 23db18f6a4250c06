//! The handle of a running engine, and its printable status.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use dlo_core::{DestinationName, Incarnation, TenantId, Timestamp, WorkerId, health::Admission};

use crate::{
    metrics::Metrics,
    shared::{LaneKey, Phase, Shared, Slot, locked},
};

/// A cheap handle of an engine: wake it, ask it to stop, look at it.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

/// What a lane is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Claimed and not started.
    pub queued: usize,
    /// Being emitted.
    pub in_flight: usize,
    /// Outcomes obtained and not saved yet.
    pub unsaved: usize,
    /// Whether, and how, it may be claimed from, as the lane last knew.
    pub admission: Admission,
    /// Waits because the store failed.
    pub waits_for_store: bool,
    /// Waits because of the destination's pace.
    pub paced: bool,
}

impl LaneStatus {
    pub(crate) fn new(key: &LaneKey, admission: Admission) -> Self {
        Self {
            tenant: key.0.clone(),
            destination: key.1.clone(),
            queued: 0,
            in_flight: 0,
            unsaved: 0,
            admission,
            waits_for_store: false,
            paced: false,
        }
    }
}

/// What an engine is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Worker name.
    pub worker: WorkerId,
    /// This start of it.
    pub incarnation: Incarnation,
    /// Where the run is.
    pub phase: Phase,
    /// Code of the store's present trouble, if it has one.
    pub store_trouble: Option<&'static str>,
    /// Destinations that are being drained, in order of (tenant, destination).
    pub lanes: Vec<LaneStatus>,
}

impl Handle {
    /// Looks for work now instead of at the next poll.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// Asks the run to stop, like its `shutdown` future does.
    pub fn stop(&self) {
        self.0.stop.notify_one();
    }

    /// Counters of this process.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    /// A snapshot.
    pub fn status(&self) -> Status {
        let slots: Vec<Arc<Slot>> = locked(&self.0.lanes).values().cloned().collect();
        Status {
            worker: self.0.options.worker.clone(),
            incarnation: self.0.incarnation,
            phase: *self.0.phase.borrow(),
            store_trouble: self.0.trouble.state().map(dlo_ports::StoreErrorKind::code),
            lanes: slots.iter().map(|slot| locked(&slot.status).clone()).collect(),
        }
    }

    /// The database time of the next planned look for work, if one is planned.
    pub fn next_look(&self) -> Option<Timestamp> {
        let at = self.0.next_look.load(Ordering::Acquire);
        (at != i64::MAX).then(|| Timestamp::from_micros(at))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store_trouble.unwrap_or("ok");
        writeln!(f, "worker {} ({}): {}, store {store}", self.worker, self.incarnation, self.phase.as_str())?;
        if self.lanes.is_empty() {
            return writeln!(f, "  idle");
        }
        self.lanes.iter().try_for_each(|lane| writeln!(f, "  {lane}"))
    }
}

impl fmt::Display for LaneStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant, destination, queued, in_flight, unsaved, .. } = self;
        write!(f, "{tenant}/{destination}: {queued} queued, {in_flight} in flight, {unsaved} to save")?;
        match self.admission {
            Admission::Open(None) => {}
            Admission::Open(Some(width)) => write!(f, ", recovering with {width} at once")?,
            Admission::Probe => f.write_str(", probe")?,
            Admission::Held(Timestamp::MAX) => f.write_str(", held until a person acts")?,
            Admission::Held(until) => write!(f, ", held until {until}")?,
        }
        if self.paced {
            f.write_str(", paced")?;
        }
        if self.waits_for_store { f.write_str(", waits for the store") } else { Ok(()) }
    }
}
