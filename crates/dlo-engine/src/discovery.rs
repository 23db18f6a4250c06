//! The look for work: finds destinations with due entries, starts or nudges their lanes, and sleeps until the next
//! entry is due, a probe is due, or somebody says that there is news.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dlo_core::{HoldCause, Timestamp, health::Admission};
use dlo_ports::store::{DueDestination, DuePage};
use tokio::sync::Notify;

use crate::{
    Until,
    directory::Loaded,
    events,
    handle::LaneStatus,
    hold, lane, limits,
    shared::{LaneKey, Shared, Slot, locked},
};

/// What one look found.
#[derive(Debug, Default)]
struct Look {
    /// The database's time at its end.
    now: Timestamp,
    /// Earliest time after it at which there is something to do.
    next: Option<Timestamp>,
    /// A destination had something to do.
    work: bool,
    /// A destination that nothing holds had live entries.
    live: bool,
}

impl Look {
    fn expect(&mut self, at: Timestamp) {
        if at < Timestamp::MAX {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }

    fn meets(&self, until: Until) -> bool {
        match until {
            Until::Stopped => false,
            Until::Idle => !self.work,
            Until::Empty => !self.work && !self.live,
        }
    }
}

/// Looks again and again; ends when `until` is met, or with the run.
pub(crate) async fn run(shared: &Arc<Shared>, until: Until) {
    shared.watch_lanes.store(until != Until::Stopped, Ordering::Release);
    loop {
        let quiet_before = shared.lane_count() == 0;
        let Some(look) = look(shared).await else { return core::future::pending().await };
        if quiet_before && look.meets(until) && no_claim_is_lost(shared).await {
            return;
        }
        sleep(shared, &look).await;
    }
}

/// Sleeps until there may be news, but always a little, so that a storm of wake-ups stays cheap.
async fn sleep(shared: &Shared, look: &Look) {
    let wait = look.next.map_or(shared.options.idle_poll, |next| next.since(look.now).min(shared.options.idle_poll));
    let planned = look.now.after(wait);
    shared.next_look.store(planned.as_micros(), Ordering::Release);
    shared.env.sleep(limits::DISCOVERY_SPACING).await;
    tokio::select! {
        biased;
        () = shared.wake.notified() => {}
        () = shared.env.sleep(wait.saturating_sub(limits::DISCOVERY_SPACING)) => {}
    }
}

/// One look over all destinations of the scope. `None` when the run is ending.
async fn look(shared: &Arc<Shared>) -> Option<Look> {
    let mut look = Look::default();
    let mut after = None;
    // What becomes due while this look is under way may have been passed already: look again then.
    shared.next_look.store(i64::MAX, Ordering::Release);
    loop {
        let read = || shared.store.due_destinations(shared.scope.clone(), after.clone(), limits::DISCOVERY_PAGE);
        let DuePage { now, destinations, more } = shared.insist("due_destinations", read).await?;
        shared.clock_told(now);
        look.now = now;
        after = destinations.last().map(|last| (last.tenant.clone(), last.destination.clone()));
        for due in destinations {
            visit(shared, &mut look, due).await?;
        }
        if !more || after.is_none() {
            return Some(look);
        }
    }
}

async fn visit(shared: &Arc<Shared>, look: &mut Look, due: DueDestination) -> Option<()> {
    let key = (due.tenant, due.destination);
    match due.admission {
        Admission::Held(until) => look.expect(until),
        Admission::Open(_) => {
            look.live = true;
            if due.next_due > look.now {
                look.expect(due.next_due);
            } else {
                look.work = true;
                open_lane(shared, key, due.version, due.admission).await?;
            }
        }
        Admission::Probe if due.next_due > look.now => look.expect(due.next_due),
        Admission::Probe => {
            look.work = true;
            open_lane(shared, key, due.version, due.admission).await?;
        }
    }
    Some(())
}

/// Starts the lane of a destination, or tells it that there is work.
async fn open_lane(shared: &Arc<Shared>, key: LaneKey, version: u64, admission: Admission) -> Option<()> {
    if nudge(shared, &key) || shared.lane_count() >= limits::MAX_LANES {
        return Some(());
    }
    let cached = shared.directory.cached(&key, version);
    let loaded = match cached.filter(|_| admission != Admission::Probe) {
        Some(loaded) => loaded,
        None => match load(shared, &key).await? {
            Some(loaded) => loaded,
            None => return Some(()),
        },
    };
    let slot = Arc::new(Slot {
        key: key.clone(),
        nudge: Notify::new(),
        nudged: AtomicBool::new(false),
        status: Mutex::new(LaneStatus::new(&key, admission)),
    });
    locked(&shared.lanes).insert(key, Arc::clone(&slot));
    shared.env.spawn(Box::pin(lane::run(Arc::clone(shared), slot, loaded, admission)));
    Some(())
}

/// Reads the destination, and opens or ends the hold that stands for a missing emitter. `Some(None)`: nothing to drain.
async fn load(shared: &Shared, key: &LaneKey) -> Option<Option<Arc<Loaded>>> {
    let Some((loaded, health)) = shared.insist("destination", || shared.load(key)).await? else {
        events::destination_missing(key);
        return Some(None);
    };
    if let Err(error) = &loaded.emitter {
        hold::emitter_unknown(shared, key, &loaded, error, health).await;
        return Some(None);
    }
    if health.hold.as_ref().is_some_and(|hold| hold.cause == HoldCause::EmitterUnknown) {
        let health = hold::emitter_found(shared, key, health).await?;
        if health.is_held() {
            return Some(None);
        }
    }
    Some(Some(loaded))
}

/// True if the destination has a lane.
fn nudge(shared: &Shared, key: &LaneKey) -> bool {
    let lanes = locked(&shared.lanes);
    let Some(slot) = lanes.get(key) else { return false };
    slot.nudged.store(true, Ordering::Release);
    slot.nudge.notify_one();
    true
}

async fn no_claim_is_lost(shared: &Shared) -> bool {
    shared
        .insist("lost_claims", || shared.store.lost_claims(Some(shared.incarnation), 1))
        .await
        .is_some_and(|lost| lost.is_empty())
}
