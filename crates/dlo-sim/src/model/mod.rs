//! The state of the model, its lock, and the thin shell that makes verbs of functions.

mod apply;
mod check;
mod claim;
mod dead_letters;
mod drain;
mod enqueue;
mod lists;
mod office;
mod read;
mod redrive;
mod settle;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlo_core::{
    AuditEvent, ClaimRef, DeadLetter, DeadLetterId, Destination, DestinationName, DestinationSpec, EntryId, EntryKey,
    Health, Incarnation, NewEntry, RedriveId, TenantId, Timestamp, TransitionResult,
};
use dlo_ports::{
    Clock, StoreError, StoreErrorKind,
    store::{
        ActResult, Applied, AuditView, ChangeHook, ClaimPage, ClaimRequest, DeadLetterFilter, DeadLetterView,
        DestinationView, DrainStore, DuePage, EnqueueAnswer, EnqueueStore, EntryAct, EntryFilter, EntrySummary,
        EntryView, Group, HoldAct, LedgerRow, OfficeStore, Page, PageRequest, PruneRequest, Pruned, ReadStore,
        RedriveResult, Scope, SettleAnswer, SettleRequest, Stats, StoreDescription, StoreResult, Violation,
        WorkerStart, WorkerView,
    },
};

use state::State;

/// Fills with randomness.
pub type Randomness = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Randomness that never repeats and is the same in every run: a counter.
pub fn counting_randomness() -> Randomness {
    let counter = std::sync::atomic::AtomicU64::new(1);
    Arc::new(move |bytes: &mut [u8]| {
        let count = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_be_bytes();
        bytes.fill(0);
        // The count goes where an id keeps all of its bits: at the end.
        for (to, from) in bytes.iter_mut().rev().zip(count.iter().rev()) {
            *to = *from;
        }
    })
}

/// The model store.
pub struct ModelStore {
    clock: Arc<dyn Clock>,
    random: Randomness,
    single_engine: bool,
    state: Mutex<State>,
    hooks: Mutex<Vec<ChangeHook>>,
}

/// What a verb may look at and change: one transaction.
struct Transaction<'a> {
    now: Timestamp,
    random: &'a Randomness,
    state: &'a mut State,
}

impl ModelStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>, random: Randomness) -> Self {
        Self { clock, random, single_engine: false, state: Mutex::default(), hooks: Mutex::default() }
    }

    /// A store that admits one engine: who starts has the lock, so earlier incarnations can't be alive any more.
    #[must_use]
    pub fn single_engine(mut self) -> Self {
        self.single_engine = true;
        self
    }

    /// Makes the stored envelope of an entry unreadable, as a damaged row would be: of every entry of its fan-out.
    /// False if there is no such entry.
    pub fn make_unreadable(&self, key: &EntryKey) -> bool {
        let mut state = self.lock();
        let Some(envelope) = state.lineage(&key.tenant, key.entry).map(|lineage| lineage.envelope.clone()) else {
            return false;
        };
        for lineage in state.lineages.values_mut().filter(|lineage| Arc::ptr_eq(&lineage.envelope, &envelope)) {
            lineage.readable = false;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a test must not hide behind a poisoned lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a verb as one transaction. Verbs check first and change afterwards, so an error has changed nothing.
    fn verb<'a, T: Send + 'a>(
        &'a self,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreResult<'a, T> {
        Box::pin(async move {
            let mut state = self.lock();
            run(&mut Transaction { now: self.clock.now(), random: &self.random, state: &mut state })
        })
    }

    /// The same for a verb that may make work ready.
    fn changing_verb<'a, T: Send + 'a>(
        &'a self,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreResult<'a, T> {
        let verb = self.verb(run);
        Box::pin(async move {
            let answer = verb.await?;
            let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for hook in hooks {
                hook();
            }
            Ok(answer)
        })
    }
}

impl Transaction<'_> {
    /// Randomness of an id.
    fn random10(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        (self.random)(&mut bytes);
        bytes
    }
}

fn invalid(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}

/// Checks a number against its bounds.
fn bounded(what: &str, seen: usize, least: usize, most: usize) -> Result<(), StoreError> {
    if (least..=most).contains(&seen) {
        Ok(())
    } else {
        Err(invalid(format!("{what} is {seen}: it must be {least} to {most}")))
    }
}

impl EnqueueStore for ModelStore {
    fn enqueue(&self, items: Vec<NewEntry>) -> StoreResult<'_, Vec<EnqueueAnswer>> {
        self.changing_verb(|tx| tx.enqueue(items))
    }
}

impl DrainStore for ModelStore {
    fn start_worker(&self, start: WorkerStart) -> StoreResult<'_, Timestamp> {
        self.changing_verb(move |tx| tx.start_worker(&start, self.single_engine))
    }

    fn heartbeat(&self, incarnation: Incarnation, lease: core::time::Duration) -> StoreResult<'_, Timestamp> {
        self.verb(move |tx| tx.heartbeat(incarnation, lease))
    }

    fn stop_worker(&self, incarnation: Incarnation) -> StoreResult<'_, ()> {
        self.changing_verb(move |tx| {
            tx.stop_worker(incarnation);
            Ok(())
        })
    }

    fn due_destinations(
        &self,
        scope: Scope,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, DuePage> {
        self.verb(move |tx| tx.due_destinations(&scope, after.as_ref(), limit))
    }

    fn destination(
        &self,
        tenant: TenantId,
        destination: DestinationName,
    ) -> StoreResult<'_, Option<(Destination, Health)>> {
        self.verb(move |tx| {
            let row = tx.state.destinations.get(&(tenant, destination));
            Ok(row.map(|row| (row.destination.clone(), row.health.clone())))
        })
    }

    fn claim(&self, request: ClaimRequest) -> StoreResult<'_, ClaimPage> {
        self.verb(move |tx| tx.claim(&request))
    }

    fn mark_sent(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        self.verb(move |tx| tx.mark_sent(&claims))
    }

    fn settle(&self, request: SettleRequest) -> StoreResult<'_, SettleAnswer> {
        self.changing_verb(|tx| tx.settle(request))
    }

    fn release(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        self.changing_verb(move |tx| tx.release(&claims))
    }

    fn lost_claims(&self, except: Option<Incarnation>, limit: usize) -> StoreResult<'_, Vec<dlo_core::Entry>> {
        self.verb(move |tx| tx.lost_claims(except, limit))
    }

    fn overdue(
        &self,
        tenant: TenantId,
        destination: DestinationName,
        max_age: core::time::Duration,
        limit: usize,
    ) -> StoreResult<'_, Vec<dlo_core::Entry>> {
        self.verb(move |tx| tx.overdue(&tenant, &destination, max_age, limit))
    }

    fn prune(&self, request: PruneRequest) -> StoreResult<'_, Pruned> {
        self.verb(move |tx| tx.prune(request))
    }

    fn on_change(&self, hook: ChangeHook) {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    }
}

impl OfficeStore for ModelStore {
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>> {
        self.changing_verb(|tx| tx.apply_destinations(specs, audit))
    }

    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.changing_verb(move |tx| tx.act_on_destinations(&tenant, &destinations, &act, audit))
    }

    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.changing_verb(move |tx| tx.act_on_entries(&tenant, acts, audit))
    }

    fn redrive(
        &self,
        tenant: TenantId,
        redrive: RedriveId,
        items: Vec<DeadLetterId>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<RedriveResult>> {
        self.changing_verb(move |tx| tx.redrive(&tenant, redrive, &items, audit))
    }
}

impl ReadStore for ModelStore {
    fn entry(&self, tenant: TenantId, entry: EntryId) -> StoreResult<'_, Option<EntryView>> {
        self.verb(move |tx| Ok(tx.entry_view(&tenant, entry)))
    }

    fn entries(&self, filter: EntryFilter, page: PageRequest) -> StoreResult<'_, Page<EntrySummary>> {
        self.verb(move |tx| tx.entries(&filter, page))
    }

    fn dead_letter(&self, tenant: TenantId, id: DeadLetterId) -> StoreResult<'_, Option<DeadLetterView>> {
        self.verb(move |tx| Ok(tx.dead_letter_view(&tenant, id)))
    }

    fn dead_letters(&self, filter: DeadLetterFilter, page: PageRequest) -> StoreResult<'_, Page<DeadLetter>> {
        self.verb(move |tx| tx.list_dead_letters(&filter, page))
    }

    fn groups(&self, filter: DeadLetterFilter, limit: usize) -> StoreResult<'_, Vec<Group>> {
        self.verb(move |tx| tx.groups(&filter, limit))
    }

    fn destinations(
        &self,
        tenant: Option<TenantId>,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, Vec<DestinationView>> {
        self.verb(move |tx| tx.destinations(tenant.as_ref(), after.as_ref(), limit))
    }

    fn workers(&self, limit: usize) -> StoreResult<'_, Vec<WorkerView>> {
        self.verb(move |tx| tx.workers(limit))
    }

    fn audit_events(&self, tenant: Option<TenantId>, page: PageRequest) -> StoreResult<'_, Page<AuditView>> {
        self.verb(move |tx| tx.audit_events(tenant.as_ref(), page))
    }

    fn redrive_ledger(&self, tenant: TenantId, page: PageRequest) -> StoreResult<'_, Page<LedgerRow>> {
        self.verb(move |tx| tx.redrive_ledger(&tenant, page))
    }

    fn stats(&self) -> StoreResult<'_, Stats> {
        self.verb(|tx| Ok(tx.stats()))
    }

    fn check(&self, limit: usize) -> StoreResult<'_, Vec<Violation>> {
        self.verb(move |tx| tx.check(limit))
    }

    fn describe(&self) -> StoreResult<'_, StoreDescription> {
        self.verb(|_| {
            Ok(StoreDescription {
                kind: "model",
                location: "memory".into(),
                engine_version: env!("CARGO_PKG_VERSION").into(),
                schema_version: 1,
                promises: vec!["a commit is visible at once and gone when the process ends".into()],
                warnings: vec!["a model for tests: nothing is durable".into()],
            })
        })
    }
}
