//! Enqueue: save first.

use std::{collections::BTreeSet, sync::Arc};

use dlo_core::{
    Counters, DestinationName, EnqueueKey, Entry, EntryId, EntryKey, Lane, NewEntry, ProducerId, Status, TenantId,
    Timestamp,
    entry::Progress,
    limits::{MAX_ENQUEUE_BATCH, MAX_FAN_OUT},
};
use dlo_ports::{
    StoreError,
    store::{EnqueueAnswer, Refusal},
};

use super::{
    Transaction, bounded,
    state::{EnqueueKeyRow, Lineage, LiveRow},
};

impl Transaction<'_> {
    pub(super) fn enqueue(&mut self, items: Vec<NewEntry>) -> Result<Vec<EnqueueAnswer>, StoreError> {
        bounded("number of items of one enqueue", items.len(), 0, MAX_ENQUEUE_BATCH)?;
        Ok(items.into_iter().map(|item| self.enqueue_item(item)).collect())
    }

    fn enqueue_item(&mut self, item: NewEntry) -> EnqueueAnswer {
        let key = enqueue_key(&item);
        if let Err(error) = item.envelope.validate() {
            return EnqueueAnswer::Refused(error.into());
        }
        if item.destinations.len() > MAX_FAN_OUT {
            return fan_out(item.destinations.len());
        }
        if let Some(row) = self.state.enqueue_keys.get(&key) {
            let envelope = row.envelope;
            return if row.content_hash == item.envelope.content_hash() {
                EnqueueAnswer::Existing { envelope }
            } else {
                EnqueueAnswer::Conflict { envelope }
            };
        }
        let destinations = match self.route(&item) {
            Ok(destinations) => destinations,
            Err(refusal) => return EnqueueAnswer::Refused(refusal),
        };
        if destinations.len() > MAX_FAN_OUT {
            return fan_out(destinations.len());
        }
        let earliest = item.not_before.map_or(self.now, |not_before| not_before.max(self.now));
        if let Some(deliver_by) = item.deliver_by.filter(|deliver_by| *deliver_by <= earliest) {
            return EnqueueAnswer::Refused(Refusal::DeadlinePassed { deliver_by, earliest });
        }
        if let Some(refusal) = self.full_backlog(&item.envelope.tenant, &destinations) {
            return EnqueueAnswer::Refused(refusal);
        }
        self.save(key, item, destinations, earliest)
    }

    /// Named destinations once each, or those whose event-type rules take the envelope.
    fn route(&self, item: &NewEntry) -> Result<Vec<DestinationName>, Refusal> {
        let tenant = &item.envelope.tenant;
        if item.destinations.is_empty() {
            let of_tenant = self.state.destinations.iter().filter(|((owner, _), _)| owner == tenant);
            let takers: Vec<_> = of_tenant
                .filter(|(_, row)| {
                    row.destination.spec.event_types.iter().any(|rule| rule.matches(&item.envelope.event_type))
                })
                .map(|((_, name), _)| name.clone())
                .collect();
            return if takers.is_empty() { Err(Refusal::NoRoute { tenant: tenant.clone() }) } else { Ok(takers) };
        }
        let mut seen = BTreeSet::new();
        let named: Vec<_> = item.destinations.iter().filter(|name| seen.insert((*name).clone())).cloned().collect();
        match named.iter().find(|name| !self.state.destinations.contains_key(&(tenant.clone(), (*name).clone()))) {
            Some(destination) => {
                Err(Refusal::UnknownDestination { tenant: tenant.clone(), destination: destination.clone() })
            }
            None => Ok(named),
        }
    }

    fn full_backlog(&self, tenant: &TenantId, destinations: &[DestinationName]) -> Option<Refusal> {
        destinations.iter().find_map(|name| {
            let limit = self.state.destinations[&(tenant.clone(), name.clone())].destination.spec.policy.backlog_limit;
            let seen = self.state.live_of(tenant, name).count() as u64;
            (seen >= limit).then(|| Refusal::BacklogFull { destination: name.clone(), seen, limit })
        })
    }

    fn save(
        &mut self,
        key: (TenantId, ProducerId, EnqueueKey),
        item: NewEntry,
        destinations: Vec<DestinationName>,
        due: Timestamp,
    ) -> EnqueueAnswer {
        let envelope = Arc::new(item.envelope);
        let (tenant, id) = (envelope.tenant.clone(), envelope.id);
        self.state.last_key += 1;
        let row = EnqueueKeyRow {
            envelope: id,
            content_hash: envelope.content_hash(),
            first_seen: self.now,
            saved: self.state.last_key,
        };
        self.state.enqueue_keys.insert(key, row);
        let mut entries = Vec::with_capacity(destinations.len());
        for destination in destinations {
            let entry = EntryId::new(self.now, self.random10());
            let row = Entry {
                key: EntryKey { tenant: tenant.clone(), entry, generation: 0 },
                seq: self.state.next_seq(),
                envelope: id,
                destination: destination.clone(),
                operation_key: item.operation_key.clone().unwrap_or_else(|| entry.operation_key()),
                created: self.now,
                updated: self.now,
                not_before: item.not_before,
                deliver_by: item.deliver_by,
                lane: Lane::Pending,
                due,
                status: Status::Pending,
                manual_review: false,
                version: 1,
                first_claimed: None,
                baseline: Counters::default(),
                progress: Progress::default(),
                claim: None,
            };
            let lineage = Lineage {
                envelope: envelope.clone(),
                readable: true,
                live: Some(LiveRow { entry: row, last: None }),
                ended: Vec::new(),
                attempts: Vec::new(),
            };
            self.state.lineages.insert((tenant.clone(), entry), lineage);
            self.destination_row(&tenant, &destination).enqueued += 1;
            entries.push((entry, destination));
        }
        EnqueueAnswer::Created { envelope: id, entries }
    }
}

fn enqueue_key(item: &NewEntry) -> (TenantId, ProducerId, EnqueueKey) {
    let key = item.enqueue_key.clone().unwrap_or_else(|| item.envelope.default_enqueue_key());
    (item.envelope.tenant.clone(), item.producer.clone(), key)
}

fn fan_out(seen: usize) -> EnqueueAnswer {
    EnqueueAnswer::Refused(Refusal::FanOut { seen, limit: MAX_FAN_OUT })
}
