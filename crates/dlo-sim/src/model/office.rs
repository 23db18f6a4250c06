//! Acts on live entries, and the audit event of every act.

use dlo_core::{AuditEvent, DeadLetterDraft, EntryId, EntryKey, EntryState, TenantId, Timestamp, limits::MAX_PAGE};
use dlo_ports::{
    StoreError,
    store::{ActResult, AuditView, EntryAct},
};

use super::{Transaction, bounded, state::LiveRow};

impl Transaction<'_> {
    /// Stores an audit event, in the transaction of its act (I-12).
    pub(super) fn record(&mut self, audit: AuditEvent) {
        let view = AuditView {
            seq: self.state.audit.len() as u64 + 1,
            at: self.now,
            id: audit.id,
            tenant: audit.tenant,
            actor: audit.actor.name,
            strength: audit.actor.strength.as_str().into(),
            act: audit.act.into(),
            target: audit.target,
            reason: audit.reason,
            detail_json: serde_json::to_string(&audit.detail).expect("a map of texts can be written as JSON"),
        };
        self.state.audit.push(view);
    }

    pub(super) fn act_on_entries(
        &mut self,
        tenant: &TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> Result<Vec<ActResult>, StoreError> {
        bounded("number of entries to act on", acts.len(), 0, MAX_PAGE)?;
        self.record(audit);
        Ok(acts.into_iter().map(|(entry, act)| self.act_on_entry(tenant, entry, act)).collect())
    }

    fn act_on_entry(&mut self, tenant: &TenantId, entry: EntryId, act: EntryAct) -> ActResult {
        let Some((latest, state)) = self.state.lineage(tenant, entry).map(|lineage| lineage.latest(self.now)) else {
            return ActResult::Missing;
        };
        let key = latest.key.clone();
        if state.is_terminal() || state == EntryState::Claimed {
            return ActResult::WrongState(state.as_str());
        }
        match act {
            EntryAct::Cancel => self.cancel(&key),
            EntryAct::RetryNow { due } if state == EntryState::ManualReview => self.retry_reviewed(&key, due),
            EntryAct::RetryNow { due } => self.retry_waiting(&key, due),
            EntryAct::DeadLetter(draft) if state == EntryState::ManualReview => self.give_up(&key, *draft),
            EntryAct::DeadLetter(_) => ActResult::WrongState(state.as_str()),
        }
    }

    fn cancel(&mut self, key: &EntryKey) -> ActResult {
        let destination = self.live_row(key).entry.destination.clone();
        self.destination_row(&key.tenant, &destination).cancelled += 1;
        self.end(key, EntryState::Cancelled, None, None, None);
        ActResult::Done
    }

    fn retry_waiting(&mut self, key: &EntryKey, due: Timestamp) -> ActResult {
        let now = self.now;
        let entry = &mut self.live_row(key).entry;
        if entry.due <= due {
            return ActResult::Unchanged;
        }
        entry.due = due;
        entry.version += 1;
        entry.updated = now;
        ActResult::Done
    }

    /// Out of manual review: the row moves to the next generation.
    fn retry_reviewed(&mut self, key: &EntryKey, due: Timestamp) -> ActResult {
        let (seq, now) = (self.state.next_seq(), self.now);
        let row = self.live_row(key);
        let next = row.entry.next_generation(key.generation + 1, seq, due, now);
        let destination = next.destination.clone();
        *row = LiveRow { entry: next, last: None };
        self.destination_row(&key.tenant, &destination).enqueued += 1;
        ActResult::Done
    }

    fn give_up(&mut self, key: &EntryKey, draft: DeadLetterDraft) -> ActResult {
        self.quarantine(key, draft, None);
        ActResult::Done
    }

    fn live_row(&mut self, key: &EntryKey) -> &mut LiveRow {
        self.state.live_row(key).expect("looked up in the same transaction")
    }
}
