//! The look for work: finds destinations with due entries, starts or nudges their lanes, and sleeps until the next
//! entry is due, a probe is due, or somebody says that there is news.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
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
    /// A destination with work found no free place for its lane.
    crowded: bool,
    /// The key before the first of them.
    refused: Option<LaneKey>,
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
    let mut from = None;
    loop {
        let quiet_before = shared.lane_count() == 0;
        let began = shared.env.now();
        let Some(look) = look(shared, from.take()).await else { return core::future::pending().await };
        if quiet_before && look.meets(until) && no_claim_is_lost(shared).await {
            return;
        }
        sleep(shared, &look, shared.env.now().since(began)).await;
        from = look.refused;
    }
}

/// Sleeps until there may be news, but always a little, and longer after a look that took long, so that a storm of
/// wake-ups stays cheap.
async fn sleep(shared: &Shared, look: &Look, took: Duration) {
    let wait = look.next.map_or(shared.options.idle_poll, |next| next.since(look.now).min(shared.options.idle_poll));
    let planned = look.now.after(wait);
    shared.next_look.store(planned.as_micros(), Ordering::Release);
    let pause = took.saturating_mul(limits::DISCOVERY_PAUSE_FACTOR).min(limits::DISCOVERY_LONGEST_PAUSE);
    let pause = pause.max(limits::DISCOVERY_SPACING);
    shared.env.sleep(pause).await;
    tokio::select! {
        biased;
        () = shared.wake.notified() => {}
        () = shared.env.sleep(wait.saturating_sub(pause)) => {}
    }
}

/// One look over all destinations of the scope, beginning behind `from` and going round, so that whoever found no free
/// place for its lane is the first to be asked next time. `None` when the run is ending.
async fn look(shared: &Arc<Shared>, from: Option<LaneKey>) -> Option<Look> {
    let mut look = Look::default();
    // What becomes due while this look is under way may have been passed already: look again then.
    shared.next_look.store(i64::MAX, Ordering::Release);
    pages(shared, &mut look, from.clone(), None).await?;
    if from.is_some() {
        pages(shared, &mut look, None, from.as_ref()).await?;
    }
    shared.crowded.store(look.crowded, Ordering::Release);
    Some(look)
}

/// Visits the destinations after one key, up to and with another.
async fn pages(
    shared: &Arc<Shared>,
    look: &mut Look,
    mut after: Option<LaneKey>,
    last: Option<&LaneKey>,
) -> Option<()> {
    loop {
        let read = || shared.store.due_destinations(shared.scope.clone(), after.clone(), limits::DISCOVERY_PAGE);
        let DuePage { now, destinations, more } = shared.insist("due_destinations", read).await?;
        shared.clock_told(now);
        look.now = now;
        for due in destinations {
            let key = (due.tenant.clone(), due.destination.clone());
            if last.is_some_and(|last| key > *last) {
                return Some(());
            }
            visit(shared, look, due, after.as_ref()).await?;
            after = Some(key);
        }
        if !more || after.is_none() {
            return Some(());
        }
    }
}

async fn visit(shared: &Arc<Shared>, look: &mut Look, due: DueDestination, before: Option<&LaneKey>) -> Option<()> {
    let key = (due.tenant, due.destination);
    if let Some(until) = shared.set_aside_until(&key).filter(|until| *until > look.now) {
        look.expect(until);
        return Some(());
    }
    match due.admission {
        Admission::Held(until) => look.expect(until),
        Admission::Open(_) => {
            look.live = true;
            if due.next_due > look.now {
                look.expect(due.next_due);
            } else if let Some(until) = paced_until(shared, &key, look.now) {
                look.work = true;
                look.expect(until);
            } else {
                look.work = true;
                open_lane(shared, look, key, (due.version, due.admission), before).await?;
            }
        }
        Admission::Probe if due.next_due > look.now => look.expect(due.next_due),
        Admission::Probe => {
            look.work = true;
            open_lane(shared, look, key, (due.version, due.admission), before).await?;
        }
    }
    Some(())
}

/// When a lane that left to wait for its pace may come back, if that is later.
fn paced_until(shared: &Shared, key: &LaneKey, now: Timestamp) -> Option<Timestamp> {
    let mut paced = locked(&shared.paced);
    let until = *paced.get(key)?;
    if until <= now {
        paced.remove(key);
        return None;
    }
    Some(until)
}

/// Starts the lane of a destination, or tells it that there is work; `before` is the key in front of it.
async fn open_lane(
    shared: &Arc<Shared>,
    look: &mut Look,
    key: LaneKey,
    (version, admission): (u64, Admission),
    before: Option<&LaneKey>,
) -> Option<()> {
    if nudge(shared, &key) {
        return Some(());
    }
    if shared.lane_count() >= limits::MAX_LANES {
        if !look.crowded {
            look.crowded = true;
            look.refused = before.cloned();
        }
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
    let Some(found) = shared.insist_on(key, "destination", || shared.load(key)).await? else { return Some(None) };
    let Some((loaded, health)) = found else {
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

/// Whether nothing is left to recover, except where it can't be.
async fn no_claim_is_lost(shared: &Shared) -> bool {
    let look = || shared.store.lost_claims(Some(shared.incarnation), limits::SWEEP_PAGE);
    let lost = shared.insist("lost_claims", look).await;
    lost.is_some_and(|lost| {
        lost.into_iter().all(|entry| shared.set_aside_until(&(entry.key.tenant, entry.destination)).is_some())
    })
}
