//! Redrive: a new generation of what was dead-lettered.

use dlo_core::{
    AuditEvent, AuditId, DeadLetterId, DeadLetterState, EntryKey, RedriveId, TenantId,
    dead_letter::{RedriveRefusal, redrive_refusal},
    limits::MAX_REDRIVE_ITEMS,
};
use dlo_ports::{
    StoreError,
    store::{LedgerRow, RedriveResult},
};

use super::{Transaction, bounded, state::LiveRow};

impl Transaction<'_> {
    pub(super) fn redrive(
        &mut self,
        tenant: &TenantId,
        redrive: RedriveId,
        items: &[DeadLetterId],
        audit: AuditEvent,
    ) -> Result<Vec<RedriveResult>, StoreError> {
        bounded("number of dead letters to redrive", items.len(), 0, MAX_REDRIVE_ITEMS)?;
        let event = audit.id;
        self.record(audit);
        Ok(items
            .iter()
            .map(|item| {
                let result = self.redrive_one(tenant, *item);
                self.enter_in_ledger(tenant, redrive, *item, event, &result);
                result
            })
            .collect())
    }

    fn redrive_one(&mut self, tenant: &TenantId, item: DeadLetterId) -> RedriveResult {
        let Some(dead_letter) = self.state.dead_letters.get(&(tenant.clone(), item)) else {
            return RedriveResult::Missing;
        };
        let key = dead_letter.key.clone();
        match self.refusal(item, &key) {
            Some(refusal) => RedriveResult::Refused(refusal),
            None => RedriveResult::Redriven { key: self.start_generation(item, &key) },
        }
    }

    fn refusal(&self, item: DeadLetterId, key: &EntryKey) -> Option<RedriveRefusal> {
        let dead_letter = &self.state.dead_letters[&(key.tenant.clone(), item)];
        let lineage = self.state.lineage(&key.tenant, key.entry).expect("a lineage with a dead letter is kept");
        let ended = lineage.ended.iter().find(|ended| ended.dead_letter == Some(item));
        let destination = self.state.destinations.get(&(key.tenant.clone(), dead_letter.destination.clone()));
        redrive_refusal(
            dead_letter,
            destination.map(|row| &row.destination),
            ended.and_then(|ended| ended.entry.deliver_by),
            lineage.live.as_ref().map(|live| live.entry.key.generation),
            lineage.readable,
            self.now,
        )
    }

    fn start_generation(&mut self, item: DeadLetterId, key: &EntryKey) -> EntryKey {
        let (seq, now) = (self.state.next_seq(), self.now);
        let lineage = self.lineage_mut(key);
        let latest = lineage.latest(now).0;
        let due = latest.not_before.map_or(now, |not_before| not_before.max(now));
        let entry = latest.next_generation(latest.key.generation + 1, seq, due, now);
        let (new, destination) = (entry.key.clone(), entry.destination.clone());
        lineage.live = Some(LiveRow { entry, last: None });
        self.destination_row(&key.tenant, &destination).enqueued += 1;
        if let Some(dead_letter) = self.state.dead_letters.get_mut(&(key.tenant.clone(), item)) {
            dead_letter.state = DeadLetterState::Redriven;
        }
        new
    }

    fn enter_in_ledger(
        &mut self,
        tenant: &TenantId,
        redrive: RedriveId,
        dead_letter: DeadLetterId,
        audit: AuditId,
        result: &RedriveResult,
    ) {
        let (name, code, key) = match result {
            RedriveResult::Redriven { key } => ("redriven", None, Some(key.clone())),
            RedriveResult::Refused(refusal) => ("refused", Some(refusal.code().to_owned()), None),
            RedriveResult::Missing => ("missing", None, None),
        };
        let seq = self.state.ledger.len() as u64 + 1;
        let row = LedgerRow { seq, redrive, dead_letter, result: name.into(), code, key, at: self.now, audit };
        self.state.ledger.push((tenant.clone(), row));
    }
}
