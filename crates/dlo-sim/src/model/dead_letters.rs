//! Ends of generations: history and quarantine.

use dlo_core::{
    DeadLetter, DeadLetterDraft, DeadLetterId, DeadLetterState, EntryKey, EntryState, Envelope, Fence, Receipt,
    dead_letter::{PayloadSummary, Unreadable, unreadable},
};

use super::{Transaction, state::EndedRow};

impl Transaction<'_> {
    /// Ends the live generation of a key.
    pub(super) fn end(
        &mut self,
        key: &EntryKey,
        state: EntryState,
        receipt: Option<Receipt>,
        dead_letter: Option<DeadLetterId>,
        fence: Option<Fence>,
    ) {
        let (at, end) = (self.now, self.state.next_end());
        let lineage = self.lineage_mut(key);
        let mut entry = lineage.live.take().expect("only what lives can end").entry;
        entry.claim = None;
        lineage.ended.push(EndedRow { entry, state, at, receipt, dead_letter, fence, end });
    }

    /// Opens a dead letter and ends the generation with it (I-09).
    pub(super) fn quarantine(&mut self, key: &EntryKey, draft: DeadLetterDraft, fence: Option<Fence>) {
        let seq = self.state.dead_letters.len() as u64 + 1;
        let opened = self.now;
        let lineage = self.lineage_mut(key);
        let envelope = lineage.readable.then(|| lineage.envelope.clone());
        let entry = &lineage.live.as_ref().expect("only what lives can be dead-lettered").entry;
        let of_envelope = |field: fn(&Envelope) -> Option<String>| envelope.as_deref().and_then(field);
        let dead_letter = DeadLetter {
            id: draft.id,
            seq,
            key: key.clone(),
            destination: entry.destination.clone(),
            destination_version: 0,
            envelope: entry.envelope,
            event_type: of_envelope(|envelope| Some(envelope.event_type.clone())),
            source_event_id: of_envelope(|envelope| envelope.source_event_id.clone()),
            correlation_id: of_envelope(|envelope| envelope.correlation_id.clone()),
            audit_residue_id: of_envelope(|envelope| envelope.audit_residue_id.clone()),
            payload: envelope.as_deref().map(payload_summary).unwrap_or_default(),
            operation_key: entry.operation_key.clone(),
            class: draft.class,
            reason: draft.reason,
            code: draft.code,
            message: draft.message,
            rule: draft.rule,
            last_failure: entry.progress.last_failure.clone(),
            first_failed: entry.progress.first_failed,
            last_failed: entry.progress.last_failed,
            first_claimed: entry.first_claimed,
            opened,
            attempts: entry.progress.attempts,
            counters: entry.progress.counters,
            unanswered: entry.progress.unanswered,
            fingerprint: draft.fingerprint,
            state: DeadLetterState::Open,
        };
        self.end(key, EntryState::DeadLettered, None, Some(dead_letter.id), fence);
        self.save_dead_letter(dead_letter);
    }

    fn save_dead_letter(&mut self, mut dead_letter: DeadLetter) {
        let tenant = dead_letter.key.tenant.clone();
        let destination = dead_letter.destination.clone();
        dead_letter.destination_version = self.destination_row(&tenant, &destination).destination.version;
        let total = (tenant.clone(), destination, dead_letter.class, dead_letter.reason.clone());
        *self.state.dead_letter_totals.entry(total).or_default() += 1;
        self.state.dead_letters.insert((tenant, dead_letter.id), dead_letter);
    }

    /// Quarantines a row whose envelope can't be read, by itself (trap D10).
    pub(super) fn quarantine_unreadable(&mut self, key: &EntryKey) {
        let lineage = self.state.lineage(&key.tenant, key.entry).expect("looked up in the same transaction");
        let destination = lineage.latest(self.now).0.destination.clone();
        let draft = unreadable(DeadLetterId::new(self.now, self.random10()), &destination, Unreadable::Envelope);
        self.quarantine(key, draft, None);
    }
}

/// An envelope's payload without its bytes.
pub(super) fn payload_summary(envelope: &Envelope) -> PayloadSummary {
    PayloadSummary {
        content_type: envelope.content_type.clone(),
        size: envelope.payload.size(),
        sha256: envelope.payload.sha256(),
    }
}
