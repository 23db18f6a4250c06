//! A lane is the task that drains one destination (an entry's [`Lane`](dlo_core::Lane) is the queue it waits in): claim, emit, decide, settle, each overlapping the others.
//!
//! A lane lives while its destination has work that may be done, and leaves when it has run dry; the look for work
//! starts it again. Lanes share nothing but the store, the suspect permit and counters, so that the hang of one never
//! delays another (trap D15).

mod call;
mod claim;
mod emit;
mod release;
mod settle;

use core::future::{Future, pending};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use dlo_core::{ClaimRef, Entry, EntryId, Fence, Health, Timestamp, health::Admission, observe::Observation};
use dlo_ports::{BoxFuture, store::Claimed};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::{
    EngineError,
    directory::Loaded,
    shared::{LaneKey, Phase, Shared, Slot, locked},
    trouble::{Backoff, Stuck},
};
use call::Call;

/// How an entry was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    /// As one of a page.
    Normal,
    /// As the one try that may close a hold.
    Probe,
    /// As the only suspect in flight of the process.
    Suspect,
}

/// A claimed entry on its way.
struct Work {
    claimed: Claimed,
    fence: Fence,
    errand: Errand,
    /// A send mark was asked for, so that it can't be given back by a release.
    may_be_marked: bool,
}

impl Work {
    fn entry(&self) -> &Entry {
        &self.claimed.entry
    }

    fn claim(&self) -> ClaimRef {
        ClaimRef { key: self.entry().key.clone(), fence: self.fence }
    }

    /// Whether its claim is over, so that others may take it.
    fn is_late(&self, now: Timestamp) -> bool {
        self.entry().claim.is_some_and(|claim| claim.deadline <= now)
    }
}

/// A lane.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    phase: watch::Receiver<Phase>,
    loaded: Arc<Loaded>,
    /// Health as the store last told; the look for work told only `admission`.
    health: Option<Health>,
    admission: Admission,
    /// Health as it will be once the outcomes in hand are saved, if that differs.
    foreseen: Option<Health>,

    /// Claimed, not started.
    queue: VecDeque<Work>,
    marking: Option<emit::Marking>,
    /// With a send mark, not started.
    marked: VecDeque<Work>,
    calls: FuturesUnordered<Call>,
    /// Entries in `calls`.
    flying: usize,
    /// With an outcome, not given to the store.
    finished: Vec<settle::Finished>,
    settling: Option<settle::Settling>,
    /// A settle failed and has not worked since.
    stuck: Option<Stuck>,
    /// What health has not learnt yet because its change lost to another.
    unlearnt: Vec<Observation>,
    unreleased: Vec<ClaimRef>,
    releasing: Option<release::Releasing>,
    claiming: Option<claim::Claiming>,

    /// There may be due entries.
    wants_claim: bool,
    /// There may be suspects.
    wants_suspect: bool,
    /// The latest page left entries behind.
    more: bool,
    claims: u64,
    probe: Option<EntryId>,
    suspect: Option<(EntryId, OwnedSemaphorePermit)>,
    /// Waits for its turn to try a suspect.
    seeking: Option<BoxFuture<'static, Option<OwnedSemaphorePermit>>>,
    permit: Option<OwnedSemaphorePermit>,
    warned_page: bool,
    /// Claims no more and leaves: what is to be done about the destination is for the look for work.
    leaving: bool,

    /// Wait after a store error.
    resting: Option<BoxFuture<'static, ()>>,
    backoff: Backoff,
    /// Wait for pace.
    pausing: Option<BoxFuture<'static, ()>>,
    paced_until: Option<Timestamp>,
}

/// What a lane waits for.
enum Event {
    Phase,
    Settled(Box<settle::Answer>),
    Marked(emit::Answer),
    Released(release::Answer),
    Claimed(claim::Answer),
    Call(call::Done),
    Permit(Option<OwnedSemaphorePermit>),
    Nudge,
    Rested,
    Unpaused,
}

/// Runs a lane to its end; a panic ends the whole run with an error.
pub(crate) async fn run(shared: Arc<Shared>, slot: Arc<Slot>, loaded: Arc<Loaded>, admission: Admission) {
    let lane = Lane::new(Arc::clone(&shared), Arc::clone(&slot), loaded, admission);
    let ended = AssertUnwindSafe(lane.run()).catch_unwind().await;
    if ended.is_err() {
        locked(&shared.lanes).remove(&slot.key);
        let (tenant, destination) = slot.key.clone();
        shared.end_with(EngineError::LanePanicked { tenant, destination });
        shared.lane_left.notify_one();
    }
}

async fn maybe<F: Future + Unpin>(future: Option<&mut F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

impl Lane {
    fn new(shared: Arc<Shared>, slot: Arc<Slot>, loaded: Arc<Loaded>, admission: Admission) -> Self {
        let phase = shared.phase.subscribe();
        Self {
            shared,
            slot,
            phase,
            loaded,
            health: None,
            admission,
            foreseen: None,
            queue: VecDeque::new(),
            marking: None,
            marked: VecDeque::new(),
            calls: FuturesUnordered::new(),
            flying: 0,
            finished: Vec::new(),
            settling: None,
            stuck: None,
            unlearnt: Vec::new(),
            unreleased: Vec::new(),
            releasing: None,
            claiming: None,
            wants_claim: true,
            wants_suspect: false,
            more: false,
            claims: 0,
            probe: None,
            suspect: None,
            seeking: None,
            permit: None,
            warned_page: false,
            leaving: false,
            resting: None,
            backoff: Backoff::default(),
            pausing: None,
            paced_until: None,
        }
    }

    async fn run(mut self) {
        loop {
            if self.phase() == Phase::Ended {
                return;
            }
            self.emit_what_is_ready().await;
            // The settle goes to the store before the claim, so that a writer can put both into one commit.
            self.start_settle();
            self.start_release();
            self.start_claim();
            self.report();
            if self.is_dry() && self.leave() {
                return;
            }
            match self.next_event().await {
                Event::Phase => self.phase_changed(),
                Event::Settled(answer) => self.settled(*answer),
                Event::Marked(answer) => self.marks_set(answer),
                Event::Released(answer) => self.released(answer),
                Event::Claimed(answer) => self.claim_answered(answer),
                Event::Call(done) => self.call_ended(done),
                Event::Permit(permit) => self.permit_given(permit),
                Event::Nudge => self.nudged(),
                Event::Rested => self.resting = None,
                Event::Unpaused => self.unpaused(),
            }
        }
    }

    async fn next_event(&mut self) -> Event {
        tokio::select! {
            biased;
            _ = self.phase.changed() => Event::Phase,
            answer = maybe(self.settling.as_mut()) => Event::Settled(Box::new(answer)),
            answer = maybe(self.marking.as_mut()) => Event::Marked(answer),
            answer = maybe(self.releasing.as_mut()) => Event::Released(answer),
            answer = maybe(self.claiming.as_mut()) => Event::Claimed(answer),
            Some(done) = self.calls.next() => Event::Call(done),
            permit = maybe(self.seeking.as_mut()) => Event::Permit(permit),
            () = self.slot.nudge.notified() => Event::Nudge,
            () = maybe(self.resting.as_mut()) => Event::Rested,
            () = maybe(self.pausing.as_mut()) => Event::Unpaused,
        }
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    fn key(&self) -> &LaneKey {
        &self.slot.key
    }

    /// The database's time.
    fn now(&self) -> Timestamp {
        self.shared.now()
    }

    fn admission(&self) -> Admission {
        let now = self.now();
        let known = self.health.as_ref().map_or(self.admission, |health| health.admission(now));
        // A hold that the outcomes in hand will open counts at once: nothing more is sent into it meanwhile.
        match (known, &self.foreseen) {
            (Admission::Open(_), Some(foreseen)) if foreseen.is_held() => foreseen.admission(now),
            _ => known,
        }
    }

    /// Emissions that may be in flight at once.
    fn width(&self) -> usize {
        let concurrency = self.loaded.destination.spec.policy.concurrency;
        let width = match self.admission() {
            Admission::Open(Some(ramp)) => concurrency.min(ramp),
            Admission::Open(None) | Admission::Probe | Admission::Held(_) => concurrency,
        };
        width.max(1) as usize
    }

    /// Claimed entries whose outcome is not with the store yet.
    fn in_hand(&self) -> usize {
        let marking = self.marking.as_ref().map_or(0, emit::Marking::len);
        self.queue.len() + marking + self.marked.len() + self.flying + self.finished.len()
    }

    fn phase_changed(&mut self) {
        if self.phase() >= Phase::Draining {
            self.put_down_unstarted();
        }
        if self.phase() >= Phase::Cut {
            self.cut_calls();
            // One last try of whatever waits for the store.
            self.resting = None;
        }
    }

    fn nudged(&mut self) {
        self.slot.nudged.store(false, Ordering::Release);
        self.wants_claim = true;
    }

    fn unpaused(&mut self) {
        self.pausing = None;
        self.paced_until = None;
        self.wants_claim = true;
    }

    /// Waits before the store is asked again.
    fn rest(&mut self) {
        self.resting = Some(self.shared.env.sleep(self.backoff.next()));
    }

    fn store_worked(&mut self, verb: &'static str) {
        self.shared.trouble.worked(verb);
        self.backoff.reset();
    }

    /// Nothing in hand, nothing under way, nothing to claim now.
    fn is_dry(&self) -> bool {
        let wants = self.phase() == Phase::Running
            && !self.leaving
            && !matches!(self.admission(), Admission::Held(_))
            && (self.wants_claim || self.wants_suspect || self.pausing.is_some() || self.seeking.is_some())
            && !self.makes_room();
        self.in_hand() == 0
            && self.settling.is_none()
            && self.unlearnt.is_empty()
            && self.unreleased.is_empty()
            && self.releasing.is_none()
            && self.claiming.is_none()
            && !wants
    }

    /// While others wait for a place, a lane that only waits for its pace leaves; the look for work knows when it may
    /// come back.
    fn makes_room(&self) -> bool {
        self.pausing.is_some() && self.shared.crowded.load(Ordering::Acquire)
    }

    /// Leaves the register of lanes, unless there is news.
    fn leave(&mut self) -> bool {
        {
            let mut lanes = locked(&self.shared.lanes);
            if self.phase() == Phase::Running
                && !self.leaving
                && !self.makes_room()
                && self.slot.nudged.swap(false, Ordering::AcqRel)
                && !matches!(self.admission(), Admission::Held(_))
            {
                self.wants_claim = true;
                return false;
            }
            if let Some(until) = self.paced_until.filter(|_| self.makes_room()) {
                locked(&self.shared.paced).insert(self.slot.key.clone(), until);
            }
            lanes.remove(&self.slot.key);
        }
        self.shared.lane_left.notify_one();
        if self.shared.watch_lanes.load(Ordering::Acquire) || self.shared.crowded.load(Ordering::Acquire) {
            self.shared.wake.notify_one();
        }
        true
    }

    fn report(&self) {
        let mut status = locked(&self.slot.status);
        status.queued = self.queue.len() + self.marked.len();
        status.in_flight = self.flying;
        status.unsaved = self.finished.len() + self.settling.as_ref().map_or(0, settle::Settling::len);
        status.admission = self.admission();
        status.waits_for_store = self.resting.is_some();
        status.paced = self.pausing.is_some();
    }
}
