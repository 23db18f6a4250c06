//! The maps.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{
    Attempt, Class, DeadLetter, DeadLetterId, Destination, DestinationName, EnqueueKey, Entry, EntryId, EntryKey,
    EntryState, Envelope, EnvelopeId, Fence, Generation, Health, Incarnation, ProducerId, Reason, Receipt, TenantId,
    Timestamp, WorkerId, limits::MAX_ATTEMPTS_KEPT,
};
use dlo_ports::store::{AuditView, LedgerRow};

/// Everything that is stored.
#[derive(Default)]
pub(super) struct State {
    pub(super) destinations: BTreeMap<(TenantId, DestinationName), DestinationRow>,
    pub(super) enqueue_keys: BTreeMap<(TenantId, ProducerId, EnqueueKey), EnqueueKeyRow>,
    pub(super) lineages: BTreeMap<(TenantId, EntryId), Lineage>,
    pub(super) dead_letters: BTreeMap<(TenantId, DeadLetterId), DeadLetter>,
    pub(super) workers: BTreeMap<Incarnation, WorkerRow>,
    pub(super) audit: Vec<AuditView>,
    pub(super) ledger: Vec<(TenantId, LedgerRow)>,
    pub(super) dead_letter_totals: BTreeMap<(TenantId, DestinationName, Class, Reason), u64>,
    /// Latest sequence number given to a row of a generation.
    pub(super) last_seq: u64,
    /// Latest number of an enqueue key: retention takes them in the order of saving.
    pub(super) last_key: u64,
    /// How many generations have ended: retention takes them in this order.
    pub(super) last_end: u64,
}

/// A destination and all that is counted about it.
pub(super) struct DestinationRow {
    pub(super) destination: Destination,
    pub(super) health: Health,
    pub(super) enqueued: u64,
    pub(super) delivered: u64,
    pub(super) cancelled: u64,
    pub(super) failed_attempts: u64,
}

impl DestinationRow {
    pub(super) fn new(destination: Destination) -> Self {
        Self { destination, health: Health::default(), enqueued: 0, delivered: 0, cancelled: 0, failed_attempts: 0 }
    }

    /// Saves health: the store counts its version.
    pub(super) fn save_health(&mut self, health: Health) {
        self.health = Health { version: self.health.version + 1, ..health };
    }
}

/// A dedupe row of enqueue.
pub(super) struct EnqueueKeyRow {
    pub(super) envelope: EnvelopeId,
    pub(super) content_hash: [u8; 32],
    pub(super) first_seen: Timestamp,
    /// Order of saving.
    pub(super) saved: u64,
}

/// All generations of one entry.
pub(super) struct Lineage {
    pub(super) envelope: Arc<Envelope>,
    /// False once the stored envelope was damaged.
    pub(super) readable: bool,
    /// The latest generation, while it lives.
    pub(super) live: Option<LiveRow>,
    /// Ended generations, oldest first.
    pub(super) ended: Vec<EndedRow>,
    /// Attempts over the lineage, oldest first.
    pub(super) attempts: Vec<Attempt>,
}

/// A live generation.
pub(super) struct LiveRow {
    pub(super) entry: Entry,
    /// What ended its latest claim or wait, so that a repeat is known.
    pub(super) last: Option<(Verb, Fence)>,
}

/// Verbs that end a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Settle,
    Release,
}

/// An ended generation.
pub(super) struct EndedRow {
    /// As it was at the end, without a claim.
    pub(super) entry: Entry,
    pub(super) state: EntryState,
    pub(super) at: Timestamp,
    pub(super) receipt: Option<Receipt>,
    pub(super) dead_letter: Option<DeadLetterId>,
    /// Fence of the settle that ended it; none if an operator did.
    pub(super) fence: Option<Fence>,
    /// Order of ending.
    pub(super) end: u64,
}

/// A registered worker.
pub(super) struct WorkerRow {
    pub(super) worker: WorkerId,
    pub(super) plain: bool,
    pub(super) pid: u32,
    pub(super) started: Timestamp,
    pub(super) lease_until: Timestamp,
    pub(super) ended: Option<Timestamp>,
    /// Order of starting.
    pub(super) start: usize,
}

impl WorkerRow {
    pub(super) fn is_alive(&self, now: Timestamp) -> bool {
        self.ended.is_none() && self.lease_until > now
    }
}

impl Lineage {
    /// The latest generation with its state.
    pub(super) fn latest(&self, now: Timestamp) -> (&Entry, EntryState) {
        match (&self.live, self.ended.last()) {
            (Some(live), _) => (&live.entry, live.entry.state(now)),
            (None, Some(ended)) => (&ended.entry, ended.state),
            (None, None) => unreachable!("a lineage has a generation as long as it is stored"),
        }
    }

    pub(super) fn has_dead_letter(&self) -> bool {
        self.ended.iter().any(|ended| ended.dead_letter.is_some())
    }

    /// Keeps an attempt, and of its generation the first and the newest.
    pub(super) fn record(&mut self, attempt: Attempt) {
        let generation: Generation = attempt.generation;
        self.attempts.push(attempt);
        let mut of_generation =
            self.attempts.iter().enumerate().filter(|(_, attempt)| attempt.generation == generation);
        let second = of_generation.nth(1).map(|(index, _)| index);
        let count = self.attempts.iter().filter(|attempt| attempt.generation == generation).count();
        if let Some(second) = second.filter(|_| count > MAX_ATTEMPTS_KEPT) {
            self.attempts.remove(second);
        }
    }
}

impl State {
    pub(super) fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }

    pub(super) fn next_end(&mut self) -> u64 {
        self.last_end += 1;
        self.last_end
    }

    pub(super) fn lineage(&self, tenant: &TenantId, entry: EntryId) -> Option<&Lineage> {
        self.lineages.get(&(tenant.clone(), entry))
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.lineages.values().filter_map(|lineage| lineage.live.as_ref().map(|live| &live.entry))
    }

    /// Live entries of one destination.
    pub(super) fn live_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        destination: &'a DestinationName,
    ) -> impl Iterator<Item = &'a Entry> {
        self.live().filter(move |entry| entry.key.tenant == *tenant && entry.destination == *destination)
    }

    /// The live row of a key, if that generation lives.
    pub(super) fn live_row(&mut self, key: &EntryKey) -> Option<&mut LiveRow> {
        let live = self.lineages.get_mut(&(key.tenant.clone(), key.entry))?.live.as_mut()?;
        (live.entry.key.generation == key.generation).then_some(live)
    }
}
