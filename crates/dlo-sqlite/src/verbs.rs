//! The verbs of the ports: each hands its arguments to a synchronous function inside one transaction.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{
    AuditEvent, ClaimRef, DeadLetter, DeadLetterId, Destination, DestinationName, DestinationSpec, Entry, EntryId,
    Health, Incarnation, NewEntry, RedriveId, TenantId, Timestamp, TransitionResult, decide::Next,
};
use dlo_ports::store::{
    ActResult, Applied, AuditView, ChangeHook, ClaimPage, ClaimRequest, DeadLetterFilter, DeadLetterView,
    DestinationView, DrainStore, DuePage, EnqueueAnswer, EnqueueStore, EntryAct, EntryFilter, EntrySummary, EntryView,
    Group, HoldAct, LedgerRow, OfficeStore, Page, PageRequest, PruneRequest, Pruned, ReadStore, RedriveResult, Scope,
    SettleAnswer, SettleRequest, Stats, StoreDescription, StoreResult, Violation, WorkerStart, WorkerView,
};

use crate::{
    SCHEMA_VERSION, batch::Batch, catalog, check, claim, due, enqueue, office, read, settle, store::SqliteStore, sweep,
    turn::read_health, worker, writer::Weight,
};

impl EnqueueStore for SqliteStore {
    fn enqueue(&self, items: Vec<NewEntry>) -> StoreResult<'_, Vec<EnqueueAnswer>> {
        Box::pin(async move {
            let bytes = items.iter().map(|item| item.envelope.payload.size() as usize).sum();
            let weight = Weight { rows: items.len(), bytes };
            let batch = Arc::new(Batch::new(items));
            let written = Arc::clone(&batch);
            let answers = self.write(weight, true, move |turn| enqueue::enqueue(turn, &written)).await;
            // Freed here and not by the writer, which has others to serve.
            drop(batch);
            answers
        })
    }
}

impl DrainStore for SqliteStore {
    fn start_worker(&self, start: WorkerStart) -> StoreResult<'_, Timestamp> {
        Box::pin(async move {
            let taken = self.take_lock()?;
            let incarnation = start.incarnation;
            let started = self.write(Weight::default(), true, move |turn| worker::start(turn, &start)).await;
            match &started {
                Ok(_) => self.engine().incarnation = Some(incarnation),
                Err(_) if taken => self.drop_lock(),
                Err(_) => {}
            }
            started
        })
    }

    fn heartbeat(&self, incarnation: Incarnation, lease: Duration) -> StoreResult<'_, Timestamp> {
        self.write(Weight::default(), false, move |turn| worker::heartbeat(turn, incarnation, lease))
    }

    fn stop_worker(&self, incarnation: Incarnation) -> StoreResult<'_, ()> {
        Box::pin(async move {
            self.write(Weight::default(), true, move |turn| worker::stop(turn, incarnation)).await?;
            if self.engine().incarnation == Some(incarnation) {
                self.drop_lock();
            }
            Ok(())
        })
    }

    fn due_destinations(
        &self,
        scope: Scope,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, DuePage> {
        self.look(move |conn, now| due::due_destinations(conn, now, &scope, after.as_ref(), limit))
    }

    fn destination(
        &self,
        tenant: TenantId,
        destination: DestinationName,
    ) -> StoreResult<'_, Option<(Destination, Health)>> {
        self.look(move |conn, _| {
            let Some(found) = catalog::latest(conn, &tenant, &destination)? else { return Ok(None) };
            Ok(Some((found, read_health(conn, &tenant, &destination)?)))
        })
    }

    fn claim(&self, request: ClaimRequest) -> StoreResult<'_, ClaimPage> {
        let weight = Weight { rows: request.limit, bytes: 0 };
        self.write(weight, false, move |turn| claim::claim(turn, &request))
    }

    fn mark_sent(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        let weight = Weight { rows: claims.len(), bytes: 0 };
        self.write(weight, false, move |turn| settle::mark_sent(turn, &claims))
    }

    fn settle(&self, request: SettleRequest) -> StoreResult<'_, SettleAnswer> {
        let weight = Weight { rows: request.settlements.len(), bytes: 0 };
        let waits = |next: &Next| matches!(next, Next::Wait { .. });
        let makes_ready =
            request.health.is_some() || request.settlements.iter().any(|settlement| waits(&settlement.transition.next));
        self.write(weight, makes_ready, move |turn| settle::settle(turn, &request))
    }

    fn release(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>> {
        let weight = Weight { rows: claims.len(), bytes: 0 };
        self.write(weight, true, move |turn| settle::release(turn, &claims))
    }

    fn lost_claims(&self, except: Option<Incarnation>, limit: usize) -> StoreResult<'_, Vec<Entry>> {
        Box::pin(self.sweep(move |conn, now| sweep::lost_claims(conn, now, except, limit)))
    }

    fn overdue(
        &self,
        tenant: TenantId,
        destination: DestinationName,
        max_age: Duration,
        limit: usize,
    ) -> StoreResult<'_, Vec<Entry>> {
        Box::pin(self.sweep(move |conn, now| sweep::overdue(conn, now, &tenant, &destination, max_age, limit)))
    }

    fn prune(&self, request: PruneRequest) -> StoreResult<'_, Pruned> {
        let weight = Weight { rows: request.limit, bytes: 0 };
        self.write(weight, false, move |turn| sweep::prune(turn, request))
    }

    fn on_change(&self, hook: ChangeHook) {
        self.add_hook(hook);
    }
}

impl OfficeStore for SqliteStore {
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>> {
        let weight = Weight { rows: specs.len(), bytes: 0 };
        self.write(weight, true, move |turn| office::apply_destinations(turn.tx, turn.now, &specs, &audit))
    }

    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        let weight = Weight { rows: destinations.len(), bytes: 0 };
        self.write(weight, true, move |turn| {
            office::act_on_destinations(turn.tx, turn.now, &tenant, &destinations, &act, &audit)
        })
    }

    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        let weight = Weight { rows: acts.len(), bytes: 0 };
        self.write(weight, true, move |turn| office::act_on_entries(turn.tx, turn.now, &tenant, &acts, &audit))
    }

    fn redrive(
        &self,
        tenant: TenantId,
        redrive: RedriveId,
        items: Vec<DeadLetterId>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<RedriveResult>> {
        let weight = Weight { rows: items.len(), bytes: 0 };
        self.write(weight, true, move |turn| office::redrive(turn.tx, turn.now, &tenant, redrive, &items, &audit))
    }
}

impl ReadStore for SqliteStore {
    fn entry(&self, tenant: TenantId, entry: EntryId) -> StoreResult<'_, Option<EntryView>> {
        self.view(move |conn, now| read::entry(conn, now, &tenant, entry))
    }

    fn entries(&self, filter: EntryFilter, page: PageRequest) -> StoreResult<'_, Page<EntrySummary>> {
        self.view(move |conn, now| read::entries(conn, now, &filter, page))
    }

    fn dead_letter(&self, tenant: TenantId, id: DeadLetterId) -> StoreResult<'_, Option<DeadLetterView>> {
        self.view(move |conn, _| read::dead_letter(conn, &tenant, id))
    }

    fn dead_letters(&self, filter: DeadLetterFilter, page: PageRequest) -> StoreResult<'_, Page<DeadLetter>> {
        self.view(move |conn, _| read::dead_letters(conn, &filter, page))
    }

    fn groups(&self, filter: DeadLetterFilter, limit: usize) -> StoreResult<'_, Vec<Group>> {
        self.view(move |conn, _| read::groups(conn, &filter, limit))
    }

    fn destinations(
        &self,
        tenant: Option<TenantId>,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, Vec<DestinationView>> {
        self.view(move |conn, now| read::destinations(conn, now, tenant.as_ref(), after.as_ref(), limit))
    }

    fn workers(&self, limit: usize) -> StoreResult<'_, Vec<WorkerView>> {
        self.view(move |conn, _| read::workers(conn, limit))
    }

    fn audit_events(&self, tenant: Option<TenantId>, page: PageRequest) -> StoreResult<'_, Page<AuditView>> {
        self.view(move |conn, _| read::audit_events(conn, tenant.as_ref(), page))
    }

    fn redrive_ledger(&self, tenant: TenantId, page: PageRequest) -> StoreResult<'_, Page<LedgerRow>> {
        self.view(move |conn, _| read::redrive_ledger(conn, &tenant, page))
    }

    fn stats(&self) -> StoreResult<'_, Stats> {
        self.view(read::stats)
    }

    fn check(&self, limit: usize) -> StoreResult<'_, Vec<Violation>> {
        self.view(move |conn, _| check::check(conn, limit))
    }

    fn describe(&self) -> StoreResult<'_, StoreDescription> {
        let file = self.path().to_owned();
        self.view(move |conn, _| read::describe(conn, &file, SCHEMA_VERSION))
    }
}
