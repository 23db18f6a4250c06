//! A store that fails, or takes its time, when a test says so.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use dlo_core::{
    AuditEvent, ClaimRef, DeadLetter, DeadLetterId, Destination, DestinationName, DestinationSpec, Entry, EntryId,
    Health, Incarnation, NewEntry, RedriveId, TenantId, Timestamp, TransitionResult,
};
use dlo_ports::{
    Store, StoreError, StoreErrorKind,
    store::{
        ActResult, Applied, AuditView, ChangeHook, ClaimPage, ClaimRequest, DeadLetterFilter, DeadLetterView,
        DestinationView, DrainStore, DuePage, EnqueueAnswer, EnqueueStore, EntryAct, EntryFilter, EntrySummary,
        EntryView, Group, HoldAct, LedgerRow, OfficeStore, Page, PageRequest, PruneRequest, Pruned, ReadStore,
        RedriveResult, Scope, SettleAnswer, SettleRequest, Stats, StoreDescription, StoreResult, Violation,
        WorkerStart, WorkerView,
    },
};

use crate::world::World;

/// What happens to one call of a verb.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It fails and changes nothing.
    Fail(StoreErrorKind),
    /// It is saved, and fails: the answer is lost.
    SaveAndFail(StoreErrorKind),
    /// It works.
    Pass,
}

/// A verb and a destination.
pub type VerbOf = (&'static str, &'static str);

pub struct Faulty {
    inner: Arc<dyn Store>,
    world: Arc<World>,
    faults: Mutex<BTreeMap<&'static str, VecDeque<Fault>>>,
    latency: Mutex<BTreeMap<&'static str, Duration>>,
    full_until: Mutex<Option<Timestamp>>,
    /// Destinations with rows that can't be read by these verbs.
    unreadable: Mutex<Vec<VerbOf>>,
    pub calls: Mutex<Vec<(&'static str, usize)>>,
    /// Tells nobody of changes, like a store whose changes come from elsewhere.
    pub mute: AtomicBool,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Store>, world: Arc<World>) -> Self {
        Self {
            inner,
            world,
            faults: Mutex::default(),
            latency: Mutex::default(),
            full_until: Mutex::default(),
            unreadable: Mutex::default(),
            calls: Mutex::default(),
            mute: AtomicBool::new(false),
        }
    }

    /// The next calls of a verb meet these faults, one each.
    pub fn faults(&self, verb: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().entry(verb).or_default().extend(faults);
    }

    /// These verbs can't read the rows of these destinations.
    pub fn unreadable(&self, verbs_and_destinations: &[VerbOf]) {
        *self.unreadable.lock().unwrap() = verbs_and_destinations.to_vec();
    }

    fn of<'a, T: Send + 'a>(
        &'a self,
        verb: &'static str,
        destination: &DestinationName,
        items: usize,
        call: StoreResult<'a, T>,
    ) -> StoreResult<'a, T> {
        if self.unreadable.lock().unwrap().contains(&(verb, destination.as_str())) {
            self.calls.lock().unwrap().push((verb, items));
            let error = StoreError::new(StoreErrorKind::Corrupt, format!("`{destination}` can't be read"));
            return Box::pin(core::future::ready(Err(error)));
        }
        self.with(verb, items, call)
    }

    /// The disk is full until then: whatever writes fails.
    pub fn full_until(&self, until: Timestamp) {
        *self.full_until.lock().unwrap() = Some(until);
    }

    /// A verb takes this long.
    pub fn latency(&self, verb: &'static str, latency: Duration) {
        self.latency.lock().unwrap().insert(verb, latency);
    }

    /// How often a verb was called, and with how many items in all.
    pub fn count(&self, verb: &str) -> (usize, usize) {
        let calls = self.calls.lock().unwrap();
        let of_verb = calls.iter().filter(|(name, _)| *name == verb);
        of_verb.fold((0, 0), |(calls, items), (_, count)| (calls + 1, items + count))
    }

    fn with<'a, T: Send + 'a>(
        &'a self,
        verb: &'static str,
        items: usize,
        call: StoreResult<'a, T>,
    ) -> StoreResult<'a, T> {
        self.calls.lock().unwrap().push((verb, items));
        let is_full = self.full_until.lock().unwrap().is_some_and(|until| self.world.time() < until);
        let writes = !["due_destinations", "destination", "lost_claims", "overdue"].contains(&verb);
        let planned = self.faults.lock().unwrap().get_mut(verb).and_then(VecDeque::pop_front);
        let fault = match planned {
            Some(fault) => fault,
            None if is_full && writes => Fault::Fail(StoreErrorKind::DiskFull),
            None => Fault::Pass,
        };
        let latency = self.latency.lock().unwrap().get(verb).copied().unwrap_or_default();
        Box::pin(async move {
            if !latency.is_zero() {
                self.world.sleep(latency).await;
            }
            let error = |kind: StoreErrorKind| StoreError::new(kind, format!("injected: {}", kind.code()));
            match fault {
                Fault::Pass => call.await,
                Fault::Fail(kind) => Err(error(kind)),
                Fault::SaveAndFail(kind) => {
                    call.await?;
                    Err(error(kind))
                }
            }
        })
    }
}

impl EnqueueStore for Faulty {
    fn enqueue(&self, items: Vec<NewEntry>) -> StoreResult<'_, Vec<EnqueueAnswer>> {
        self.inner.enqueue(items)
    }
}

impl DrainStore for Faulty {
    fn start_worker(&self, start: WorkerStart) -> StoreResult<'_, Timestamp> {
        self.with("start_worker", 1, self.inner.start_worker(start))
    }
    fn heartbeat(&self, incarnation: Incarnation, lease: Duration) -> StoreResult<'_, Timestamp> {
        self.with("heartbeat", 1, self.inner.heartbeat(incarnation, lease))
    }
    fn stop_worker(&self, incarnation: Incarnation) -> StoreResult<'_, ()> {
        self.with("stop_worker", 1, self.inner.stop_worker(incarnation))
    }
    fn due_destinations(
        &self,
        scope: Scope,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, DuePage> {
        self.with("due_destinations", limit, self.inner.due_destinations(scope, after, limit))
    }
    fn destination(
        &self,
        tenant: TenantId,
        destination: DestinationName,
    ) -> StoreResult<'_, Option<(Destination, Health)>> {
        let name = destination.clone();
        self.of("destination", &name, 1, self.inner.destination(tenant, destination))
    }
    fn claim(&self, request: ClaimRequest) -> StoreResult<'_, ClaimPage> {
        let (name, limit) = (request.destination.clone(), request.limit);
        self.of("claim", &name, limit, self.inner.claim(request))
    }
    fn mark_sent(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        self.with("mark_sent", claims.len(), self.inner.mark_sent(claims))
    }
    fn settle(&self, request: SettleRequest) -> StoreResult<'_, SettleAnswer> {
        self.with("settle", request.settlements.len(), self.inner.settle(request))
    }
    fn release(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        self.with("release", claims.len(), self.inner.release(claims))
    }
    fn lost_claims(&self, except: Option<Incarnation>, limit: usize) -> StoreResult<'_, Vec<Entry>> {
        self.with("lost_claims", limit, self.inner.lost_claims(except, limit))
    }
    fn overdue(
        &self,
        tenant: TenantId,
        destination: DestinationName,
        max_age: Duration,
        limit: usize,
    ) -> StoreResult<'_, Vec<Entry>> {
        self.with("overdue", limit, self.inner.overdue(tenant, destination, max_age, limit))
    }
    fn prune(&self, request: PruneRequest) -> StoreResult<'_, Pruned> {
        self.with("prune", request.limit, self.inner.prune(request))
    }
    fn on_change(&self, hook: ChangeHook) {
        if !self.mute.load(Ordering::Relaxed) {
            self.inner.on_change(hook);
        }
    }
}

impl OfficeStore for Faulty {
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>> {
        self.inner.apply_destinations(specs, audit)
    }
    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.inner.act_on_destinations(tenant, destinations, act, audit)
    }
    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.inner.act_on_entries(tenant, acts, audit)
    }
    fn redrive(
        &self,
        tenant: TenantId,
        redrive: RedriveId,
        items: Vec<DeadLetterId>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<RedriveResult>> {
        self.inner.redrive(tenant, redrive, items, audit)
    }
}

impl ReadStore for Faulty {
    fn entry(&self, tenant: TenantId, entry: EntryId) -> StoreResult<'_, Option<EntryView>> {
        self.inner.entry(tenant, entry)
    }
    fn entries(&self, filter: EntryFilter, page: PageRequest) -> StoreResult<'_, Page<EntrySummary>> {
        self.inner.entries(filter, page)
    }
    fn dead_letter(&self, tenant: TenantId, id: DeadLetterId) -> StoreResult<'_, Option<DeadLetterView>> {
        self.inner.dead_letter(tenant, id)
    }
    fn dead_letters(&self, filter: DeadLetterFilter, page: PageRequest) -> StoreResult<'_, Page<DeadLetter>> {
        self.inner.dead_letters(filter, page)
    }
    fn groups(&self, filter: DeadLetterFilter, limit: usize) -> StoreResult<'_, Vec<Group>> {
        self.inner.groups(filter, limit)
    }
    fn destinations(
        &self,
        tenant: Option<TenantId>,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, Vec<DestinationView>> {
        self.inner.destinations(tenant, after, limit)
    }
    fn workers(&self, limit: usize) -> StoreResult<'_, Vec<WorkerView>> {
        self.inner.workers(limit)
    }
    fn audit_events(&self, tenant: Option<TenantId>, page: PageRequest) -> StoreResult<'_, Page<AuditView>> {
        self.inner.audit_events(tenant, page)
    }
    fn redrive_ledger(&self, tenant: TenantId, page: PageRequest) -> StoreResult<'_, Page<LedgerRow>> {
        self.inner.redrive_ledger(tenant, page)
    }
    fn stats(&self) -> StoreResult<'_, Stats> {
        self.inner.stats()
    }
    fn check(&self, limit: usize) -> StoreResult<'_, Vec<Violation>> {
        self.inner.check(limit)
    }
    fn describe(&self) -> StoreResult<'_, StoreDescription> {
        self.inner.describe()
    }
}
