//! The rest of the workers' verbs: registration, work found, lost claims, sweeps.

use core::time::Duration;

use dlo_core::{
    DestinationName, Entry, EntryId, EntryKey, Incarnation, TenantId, Timestamp, limits::MAX_PAGE, policy::DrainMode,
};
use dlo_ports::{
    StoreError, StoreErrorKind,
    store::{DueDestination, DuePage, PruneRequest, Pruned, Scope, WorkerStart},
};

use super::{
    Transaction, bounded, invalid,
    state::{DestinationRow, Lineage, WorkerRow},
};

/// Most rows of each kind that one turn of pruning takes.
const MAX_PRUNE: usize = 1_000;

fn fenced(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Fenced, message)
}

impl Transaction<'_> {
    pub(super) fn start_worker(&mut self, start: &WorkerStart, single_engine: bool) -> Result<Timestamp, StoreError> {
        let now = self.now;
        if let Some(row) = self.state.workers.get_mut(&start.incarnation) {
            if row.ended.is_some() {
                return Err(fenced(format!("worker {} has ended: start with a new incarnation", start.incarnation)));
            }
            row.lease_until = now.after(start.lease);
            return Ok(now);
        }
        if single_engine {
            // Who starts holds the lock of the store, so nobody else can be alive.
            self.state.workers.values_mut().for_each(|worker| {
                worker.ended.get_or_insert(now);
            });
        }
        // A lease of a plain-mode worker ends for who starts after it, and for nobody else.
        self.state.workers.values_mut().filter(|worker| worker.plain && !worker.is_alive(now)).for_each(|worker| {
            worker.ended.get_or_insert(now);
        });
        if let Some((other, _)) = self.state.workers.iter().find(|(_, worker)| worker.plain && worker.is_alive(now)) {
            return Err(fenced(format!("plain-mode worker {other} is alive: stop it first")));
        }
        let plain = start.mode == DrainMode::Plain;
        if plain && self.state.live().any(|entry| entry.claim.is_some() && !self.is_lost(entry)) {
            return Err(fenced("another worker's live claim exists: stop it or wait until its lease is over".into()));
        }
        let row = WorkerRow {
            worker: start.worker.clone(),
            plain,
            pid: start.pid,
            started: now,
            lease_until: now.after(start.lease),
            ended: None,
            start: self.state.workers.len(),
        };
        self.state.workers.insert(start.incarnation, row);
        Ok(now)
    }

    pub(super) fn heartbeat(&mut self, incarnation: Incarnation, lease: Duration) -> Result<Timestamp, StoreError> {
        let now = self.now;
        match self.state.workers.get_mut(&incarnation).filter(|worker| worker.ended.is_none()) {
            Some(worker) => {
                worker.lease_until = now.after(lease);
                Ok(now)
            }
            None => Err(fenced(format!("worker {incarnation} has ended or never started: start a new incarnation"))),
        }
    }

    pub(super) fn stop_worker(&mut self, incarnation: Incarnation) {
        let now = self.now;
        if let Some(worker) = self.state.workers.get_mut(&incarnation) {
            worker.ended.get_or_insert(now);
        }
    }

    pub(super) fn due_destinations(
        &self,
        scope: &Scope,
        after: Option<&(TenantId, DestinationName)>,
        limit: usize,
    ) -> Result<DuePage, StoreError> {
        bounded("limit of a page of destinations", limit, 1, MAX_PAGE)?;
        let mut destinations = Vec::new();
        for (key, row) in &self.state.destinations {
            if after.is_some_and(|after| key <= after) || !scope.takes(&key.0, &key.1) {
                continue;
            }
            let unclaimed =
                self.state.live_of(&key.0, &key.1).filter(|entry| entry.claim.is_none() && !entry.manual_review);
            let Some(next_due) = unclaimed.map(|entry| entry.due).min() else { continue };
            destinations.push(DueDestination {
                tenant: key.0.clone(),
                destination: key.1.clone(),
                version: row.destination.version,
                next_due,
                admission: row.health.admission(self.now),
            });
        }
        let more = destinations.len() > limit;
        destinations.truncate(limit);
        Ok(DuePage { now: self.now, destinations, more })
    }

    pub(super) fn lost_claims(&self, except: Option<Incarnation>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        bounded("limit of lost claims", limit, 1, MAX_PAGE)?;
        let is_excepted = |entry: &Entry| entry.claim.map(|claim| claim.incarnation) == except;
        let lost = self.state.live().filter(|entry| self.is_lost(entry) && !is_excepted(entry));
        let mut lost: Vec<Entry> = lost.cloned().collect();
        lost.sort_by_key(|entry| entry.seq);
        lost.truncate(limit);
        Ok(lost)
    }

    /// Whether a claim's worker is gone, or its deadline is reached.
    fn is_lost(&self, entry: &Entry) -> bool {
        entry.claim.is_some_and(|claim| {
            let worker = self.state.workers.get(&claim.incarnation).filter(|worker| worker.ended.is_none());
            let holds = worker.is_some_and(|worker| worker.plain || worker.lease_until > self.now);
            !holds || claim.deadline <= self.now
        })
    }

    pub(super) fn overdue(
        &self,
        tenant: &TenantId,
        destination: &DestinationName,
        max_age: Duration,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        bounded("limit of overdue entries", limit, 1, MAX_PAGE)?;
        let mut overdue: Vec<Entry> = self
            .state
            .live_of(tenant, destination)
            .filter(|entry| entry.claim.is_none() && !entry.manual_review && entry.expires(max_age) <= self.now)
            .cloned()
            .collect();
        overdue.sort_by_key(|entry| entry.seq);
        overdue.truncate(limit);
        Ok(overdue)
    }

    pub(super) fn prune(&mut self, request: PruneRequest) -> Result<Pruned, StoreError> {
        bounded("limit of a prune", request.limit, 1, MAX_PRUNE)?;
        let history = self.prune_history(self.now.before(request.history), request.limit);
        let enqueue_keys = self.prune_enqueue_keys(self.now.before(request.enqueue_keys), request.limit);
        let more = history == request.limit || enqueue_keys == request.limit;
        Ok(Pruned { history: history as u64, enqueue_keys: enqueue_keys as u64, more })
    }

    fn prune_history(&mut self, before: Timestamp, limit: usize) -> usize {
        let mut old: Vec<(u64, (TenantId, EntryId))> = self
            .state
            .lineages
            .iter()
            .filter(|(_, lineage)| !lineage.has_dead_letter() && lineage.live.is_none())
            .filter_map(|(key, lineage)| lineage.ended.last().map(|ended| (key, ended)))
            .filter(|(_, ended)| ended.at < before)
            .map(|(key, ended)| (ended.end, key.clone()))
            .collect();
        old.sort();
        old.truncate(limit);
        for (_, key) in &old {
            self.state.lineages.remove(key);
        }
        old.len()
    }

    fn prune_enqueue_keys(&mut self, before: Timestamp, limit: usize) -> usize {
        let mut old: Vec<_> = self
            .state
            .enqueue_keys
            .iter()
            .filter(|(_, row)| row.first_seen < before)
            .map(|(key, row)| (row.saved, key.clone()))
            .collect();
        old.sort();
        old.truncate(limit);
        for (_, key) in &old {
            self.state.enqueue_keys.remove(key);
        }
        old.len()
    }

    /// Fails for a destination that does not exist.
    pub(super) fn known(&self, tenant: &TenantId, destination: &DestinationName) -> Result<(), StoreError> {
        if self.state.destinations.contains_key(&(tenant.clone(), destination.clone())) {
            Ok(())
        } else {
            Err(invalid(format!("destination `{tenant}/{destination}` does not exist: apply it first")))
        }
    }

    pub(super) fn destination_row(&mut self, tenant: &TenantId, destination: &DestinationName) -> &mut DestinationRow {
        self.state
            .destinations
            .get_mut(&(tenant.clone(), destination.clone()))
            .expect("destinations are never dropped, and entries are only saved for existing ones")
    }

    pub(super) fn lineage_mut(&mut self, key: &EntryKey) -> &mut Lineage {
        self.state.lineages.get_mut(&(key.tenant.clone(), key.entry)).expect("looked up in the same transaction")
    }
}
