//! Lists: keyset-paged, newest first, bounded.

use std::{cmp::Reverse, collections::BTreeMap};

use dlo_core::{DeadLetter, DeadLetterState, DestinationName, EntryState, TenantId, limits::MAX_PAGE};
use dlo_ports::{
    StoreError,
    store::{
        AuditView, DeadLetterFilter, DestinationView, EntryFilter, EntrySummary, Group, LedgerRow, Page, PageRequest,
        WorkerView,
    },
};

use super::{Transaction, bounded};

/// Cuts a page out of rows in any order.
fn page<T>(
    rows: impl Iterator<Item = T>,
    seq: impl Fn(&T) -> u64,
    request: PageRequest,
) -> Result<Page<T>, StoreError> {
    bounded("limit of a page", request.limit, 1, MAX_PAGE)?;
    let mut rows: Vec<T> = rows.filter(|row| request.after.is_none_or(|after| seq(row) < after)).collect();
    rows.sort_by_key(|row| Reverse(seq(row)));
    let more = rows.len() > request.limit;
    rows.truncate(request.limit);
    let next = rows.last().filter(|_| more).map(&seq);
    Ok(Page { rows, next })
}

/// Whether a filter that may be absent takes a value.
fn takes<T: PartialEq>(filter: Option<&T>, value: &T) -> bool {
    filter.is_none_or(|wanted| wanted == value)
}

fn takes_dead_letter(filter: &DeadLetterFilter, dead_letter: &DeadLetter) -> bool {
    takes(filter.tenant.as_ref(), &dead_letter.key.tenant)
        && takes(filter.destination.as_ref(), &dead_letter.destination)
        && takes(filter.class.as_ref(), &dead_letter.class)
        && takes(filter.reason.as_ref(), &dead_letter.reason)
        && takes(filter.state.as_ref(), &dead_letter.state)
        && takes(filter.fingerprint.as_ref(), &dead_letter.fingerprint.hash)
}

impl Transaction<'_> {
    pub(super) fn entries(&self, filter: &EntryFilter, request: PageRequest) -> Result<Page<EntrySummary>, StoreError> {
        let rows = self.state.lineages.values().map(|lineage| self.summary(lineage)).filter(|row| {
            takes(filter.tenant.as_ref(), &row.key.tenant)
                && takes(filter.destination.as_ref(), &row.destination)
                && takes::<EntryState>(filter.state.as_ref(), &row.state)
                && (filter.event_type.is_none() || filter.event_type == row.event_type)
                && (filter.source_event_id.is_none() || filter.source_event_id == row.source_event_id)
        });
        page(rows, |row| row.seq, request)
    }

    pub(super) fn list_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        request: PageRequest,
    ) -> Result<Page<DeadLetter>, StoreError> {
        let rows = self.state.dead_letters.values().filter(|row| takes_dead_letter(filter, row)).cloned();
        page(rows, |row| row.seq, request)
    }

    pub(super) fn groups(&self, filter: &DeadLetterFilter, limit: usize) -> Result<Vec<Group>, StoreError> {
        bounded("limit of groups", limit, 1, MAX_PAGE)?;
        let mut groups: BTreeMap<_, Group> = BTreeMap::new();
        for dead_letter in self.state.dead_letters.values().filter(|row| takes_dead_letter(filter, row)) {
            let (tenant, destination) = (dead_letter.key.tenant.clone(), dead_letter.destination.clone());
            let key =
                (tenant.clone(), destination.clone(), dead_letter.fingerprint.version, dead_letter.fingerprint.hash);
            let group = groups.entry(key).or_insert_with(|| Group {
                fingerprint: dead_letter.fingerprint.clone(),
                tenant,
                destination,
                class: dead_letter.class,
                reason: dead_letter.reason.clone(),
                count: 0,
                open: 0,
                first: dead_letter.opened,
                last: dead_letter.opened,
            });
            group.count += 1;
            group.open += u64::from(dead_letter.state == DeadLetterState::Open);
            group.first = group.first.min(dead_letter.opened);
            group.last = group.last.max(dead_letter.opened);
        }
        // The sort is stable: ties stay in order of (tenant, destination, fingerprint).
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.count));
        groups.truncate(limit);
        Ok(groups)
    }

    pub(super) fn destinations(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&(TenantId, DestinationName)>,
        limit: usize,
    ) -> Result<Vec<DestinationView>, StoreError> {
        bounded("limit of destinations", limit, 1, MAX_PAGE)?;
        let rows = self.state.destinations.iter();
        Ok(rows
            .filter(|(key, _)| takes(tenant, &key.0) && after.is_none_or(|after| *key > after))
            .take(limit)
            .map(|(_, row)| DestinationView {
                destination: row.destination.clone(),
                health: row.health.clone(),
                depth: self.depth(row),
            })
            .collect())
    }

    pub(super) fn workers(&self, limit: usize) -> Result<Vec<WorkerView>, StoreError> {
        bounded("limit of workers", limit, 1, MAX_PAGE)?;
        let mut rows: Vec<_> = self.state.workers.iter().collect();
        rows.sort_by_key(|(_, row)| Reverse(row.start));
        rows.truncate(limit);
        Ok(rows
            .into_iter()
            .map(|(incarnation, row)| WorkerView {
                worker: row.worker.clone(),
                incarnation: *incarnation,
                pid: row.pid,
                started: row.started,
                lease_until: row.lease_until,
                ended: row.ended,
                claims: self
                    .state
                    .live()
                    .filter(|entry| entry.claim.is_some_and(|claim| claim.incarnation == *incarnation))
                    .count() as u64,
            })
            .collect())
    }

    pub(super) fn audit_events(
        &self,
        tenant: Option<&TenantId>,
        request: PageRequest,
    ) -> Result<Page<AuditView>, StoreError> {
        page(self.state.audit.iter().filter(|row| takes(tenant, &row.tenant)).cloned(), |row| row.seq, request)
    }

    pub(super) fn redrive_ledger(
        &self,
        tenant: &TenantId,
        request: PageRequest,
    ) -> Result<Page<LedgerRow>, StoreError> {
        let rows = self.state.ledger.iter().filter(|(owner, _)| owner == tenant).map(|(_, row)| row.clone());
        page(rows, |row| row.seq, request)
    }
}
