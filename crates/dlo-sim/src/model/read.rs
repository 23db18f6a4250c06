//! Reading single things, and figures.

use dlo_core::{DeadLetterId, DeadLetterState, Entry, EntryId, EntryState, Envelope, Status, TenantId};
use dlo_ports::store::{
    DeadLetterTotal, DeadLetterView, Depth, DestinationStats, Ended, EntrySummary, EntryView, EnvelopeView, Stats,
};

use super::{
    Transaction,
    dead_letters::payload_summary,
    state::{DestinationRow, EndedRow, Lineage},
};

impl Transaction<'_> {
    pub(super) fn entry_view(&self, tenant: &TenantId, entry: EntryId) -> Option<EntryView> {
        let lineage = self.state.lineage(tenant, entry)?;
        let (latest, _) = lineage.latest(self.now);
        Some(EntryView {
            summary: self.summary(lineage),
            operation_key: latest.operation_key.clone(),
            envelope: envelope_view(lineage),
            live: lineage.live.as_ref().map(|live| live.entry.clone()),
            ended: lineage.ended.iter().map(ended_view).collect(),
            attempts: lineage.attempts.clone(),
            last_failure: latest.progress.last_failure.clone(),
        })
    }

    /// The latest generation as a row of a list.
    pub(super) fn summary(&self, lineage: &Lineage) -> EntrySummary {
        let (entry, state) = lineage.latest(self.now);
        let envelope = lineage.readable.then_some(&lineage.envelope);
        let held = self
            .state
            .destinations
            .get(&(entry.key.tenant.clone(), entry.destination.clone()))
            .is_some_and(|row| row.health.is_held());
        EntrySummary {
            key: entry.key.clone(),
            seq: entry.seq,
            destination: entry.destination.clone(),
            state,
            held: held && state == EntryState::Ready,
            status: status(entry, state),
            created: entry.created,
            due: (state == EntryState::Waiting).then_some(entry.due),
            attempts: entry.progress.attempts,
            last_failure: entry.progress.last_failure.as_ref().map(|last| (last.class, last.reason.clone())),
            event_type: envelope.map(|envelope| envelope.event_type.clone()),
            source_event_id: envelope.and_then(|envelope| envelope.source_event_id.clone()),
        }
    }

    pub(super) fn dead_letter_view(&self, tenant: &TenantId, id: DeadLetterId) -> Option<DeadLetterView> {
        let dead_letter = self.state.dead_letters.get(&(tenant.clone(), id))?.clone();
        let lineage = self.state.lineage(tenant, dead_letter.key.entry)?;
        Some(DeadLetterView { dead_letter, envelope: envelope_view(lineage), attempts: lineage.attempts.clone() })
    }

    pub(super) fn depth(&self, row: &DestinationRow) -> Depth {
        let spec = &row.destination.spec;
        let mut depth = Depth::default();
        for entry in self.state.live_of(&spec.tenant, &spec.name) {
            match entry.state(self.now) {
                EntryState::Ready => depth.ready += 1,
                EntryState::Waiting | EntryState::Blocked => depth.waiting += 1,
                EntryState::Claimed => depth.claimed += 1,
                EntryState::ManualReview => depth.manual_review += 1,
                EntryState::Delivered | EntryState::DeadLettered | EntryState::Cancelled => {}
            }
        }
        let open = self.state.dead_letters.values().filter(|dead_letter| {
            dead_letter.key.tenant == spec.tenant
                && dead_letter.destination == spec.name
                && dead_letter.state == DeadLetterState::Open
        });
        depth.dead_letters_open = open.count() as u64;
        depth
    }

    pub(super) fn stats(&self) -> Stats {
        let destinations = self.state.destinations.values().map(|row| self.destination_stats(row)).collect();
        let totals = self.state.dead_letter_totals.iter();
        let dead_letters = totals
            .map(|((tenant, destination, class, reason), total)| DeadLetterTotal {
                tenant: tenant.clone(),
                destination: destination.clone(),
                class: *class,
                reason: reason.clone(),
                total: *total,
            })
            .collect();
        Stats { now: self.now, destinations, dead_letters }
    }

    fn destination_stats(&self, row: &DestinationRow) -> DestinationStats {
        let spec = &row.destination.spec;
        let ready = self
            .state
            .live_of(&spec.tenant, &spec.name)
            .filter(|entry| entry.state(self.now) == EntryState::Ready)
            .map(|entry| entry.due);
        DestinationStats {
            tenant: spec.tenant.clone(),
            destination: spec.name.clone(),
            depth: self.depth(row),
            oldest_due: ready.min(),
            held: row.health.is_held(),
            enqueued_total: row.enqueued,
            delivered_total: row.delivered,
            cancelled_total: row.cancelled,
            failed_attempts_total: row.failed_attempts,
        }
    }
}

/// Status is a function of state (S-03).
fn status(entry: &Entry, state: EntryState) -> Option<Status> {
    match state {
        EntryState::Delivered => Some(Status::Delivered),
        EntryState::DeadLettered => Some(Status::DeadLettered),
        EntryState::Cancelled => None,
        EntryState::Ready
        | EntryState::Waiting
        | EntryState::Claimed
        | EntryState::Blocked
        | EntryState::ManualReview => Some(entry.status),
    }
}

fn ended_view(row: &EndedRow) -> Ended {
    Ended {
        generation: row.entry.key.generation,
        state: row.state,
        at: row.at,
        receipt: row.receipt.clone(),
        dead_letter: row.dead_letter,
        counters: row.entry.progress.counters,
    }
}

fn envelope_view(lineage: &Lineage) -> Option<EnvelopeView> {
    let envelope: &Envelope = &lineage.envelope;
    lineage.readable.then(|| EnvelopeView {
        id: envelope.id,
        event_type: envelope.event_type.clone(),
        source: envelope.source.clone(),
        source_event_id: envelope.source_event_id.clone(),
        subject: envelope.subject.clone(),
        occurred: envelope.occurred,
        correlation_id: envelope.correlation_id.clone(),
        audit_residue_id: envelope.audit_residue_id.clone(),
        payload: payload_summary(envelope),
    })
}
