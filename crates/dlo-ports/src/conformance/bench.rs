//! The bench that cases work at: a store, a clock, and short words for verbs.

use core::time::Duration;
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use dlo_core::{
    Actor, AuditEvent, AuditId, AuthenticationStrength, ClaimRef, Class, DeadLetter, DeadLetterId, DeliveryPolicy,
    DestinationName, DestinationSpec, Duplicates, Entry, EntryId, EntryKey, EntryState, Envelope, EnvelopeId, Failure,
    Fence, Health, Incarnation, NewEntry, Outcome, Payload, PayloadForm, Phase, Reason, Receipt, RedriveId, TenantId,
    Timestamp, Token, TransitionResult, WorkerId,
    decide::{Context, Event, Transition, decide},
    observe::observe,
    policy::{DrainMode, Jitter},
};

use super::{Harness, ManualClock, block_on};
use crate::{
    Clock, Store, StoreError, StoreErrorKind,
    store::{
        ActResult, ClaimKind, ClaimPage, ClaimRequest, Claimed, DeadLetterFilter, EnqueueAnswer, EntryAct, EntryView,
        HealthChange, HoldAct, PageRequest, RedriveResult, SettleAnswer, SettleRequest, Settlement, StoreResult,
        Violation, WorkerStart,
    },
};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const DAY: Duration = Duration::from_hours(24);

/// The destination that most cases use: `tolerated`, no jitter, otherwise defaults.
pub(super) const MAIN: &str = "main";

/// The payload that no view may show.
pub(super) const PAYLOAD: &str = r#"{"secret":"do-not-show"}"#;

/// A page of everything.
pub(super) const ALL: PageRequest = PageRequest { after: None, limit: dlo_core::limits::MAX_PAGE };

pub(super) struct Bench {
    harness: Box<dyn Harness>,
    store: Option<Arc<dyn Store>>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) tenant: TenantId,
    ids: u64,
    worker: Option<Incarnation>,
}

/// Worlds: store, time, ids.
impl Bench {
    pub(super) fn new(harness: Box<dyn Harness>, clock: Arc<ManualClock>) -> Self {
        let store = Some(harness.store());
        Self { harness, store, clock, tenant: TenantId::default_tenant(), ids: 0, worker: None }
    }

    pub(super) fn harness(&mut self) -> &mut dyn Harness {
        &mut *self.harness
    }

    pub(super) fn store(&self) -> &dyn Store {
        &**self.store.as_ref().expect("open except while it is reopened")
    }

    /// Closes and opens the store; false if it keeps nothing.
    pub(super) fn reopen(&mut self) -> bool {
        self.store = None;
        let durable = self.harness.reopen();
        self.store = Some(self.harness.store());
        durable
    }

    /// Runs a verb that must succeed.
    pub(super) fn run<'a, T>(&'a self, verb: impl FnOnce(&'a dyn Store) -> StoreResult<'a, T>) -> T {
        block_on(verb(self.store())).unwrap()
    }

    /// Runs a verb that must fail, and tells how.
    pub(super) fn fail<'a, T>(&'a self, verb: impl FnOnce(&'a dyn Store) -> StoreResult<'a, T>) -> StoreErrorKind {
        let answer: Result<T, StoreError> = block_on(verb(self.store()));
        answer.err().expect("the verb must fail").kind()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        self.run(|store| store.check(100))
    }

    /// Randomness of an id that no other id of the bench has.
    pub(super) fn random(&mut self) -> [u8; 10] {
        self.ids += 1;
        let mut random = [0x5a; 10];
        random[2..].copy_from_slice(&self.ids.to_be_bytes());
        random
    }

    pub(super) fn token(&mut self) -> Token {
        Token::new(self.now(), self.random())
    }

    pub(super) fn audit(&mut self, act: &'static str) -> AuditEvent {
        AuditEvent {
            id: AuditId::new(self.now(), self.random()),
            tenant: self.tenant.clone(),
            actor: Actor { name: "local:alice".into(), strength: AuthenticationStrength::Asserted },
            act,
            target: "target".into(),
            reason: Some("because".into()),
            detail: BTreeMap::from([("count", "1".into())]),
        }
    }
}

pub(super) fn name(text: &str) -> DestinationName {
    DestinationName::new(text).unwrap()
}

/// What most cases apply: `tolerated`, no jitter.
pub(super) fn spec(destination: &str) -> DestinationSpec {
    DestinationSpec {
        tenant: TenantId::default_tenant(),
        name: name(destination),
        emitter: "noop".into(),
        settings: "{}".into(),
        duplicates: Duplicates::Tolerated,
        policy: DeliveryPolicy { jitter: Jitter::None, ..Default::default() },
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

/// Destinations and what is enqueued for them.
impl Bench {
    pub(super) fn apply(&mut self, spec: DestinationSpec) {
        let audit = self.audit("destination.apply");
        self.run(|store| store.apply_destinations(vec![spec], audit));
    }

    /// Applies the destination of most cases, changed.
    pub(super) fn main(&mut self, change: impl FnOnce(&mut DestinationSpec)) {
        let mut main = spec(MAIN);
        change(&mut main);
        self.apply(main);
    }

    pub(super) fn health(&self, destination: &str) -> Health {
        self.run(|store| store.destination(self.tenant.clone(), name(destination))).unwrap().1
    }

    /// A new item for a destination, unlike any other.
    pub(super) fn item(&mut self, destination: &str) -> NewEntry {
        self.item_for(&[destination])
    }

    pub(super) fn item_for(&mut self, destinations: &[&str]) -> NewEntry {
        let id = EnvelopeId::new(self.now(), self.random());
        let payload = Payload::Bytes { bytes: Bytes::from_static(PAYLOAD.as_bytes()), form: PayloadForm::Json };
        let mut envelope = Envelope::new(id, self.tenant.clone(), "order.created", payload);
        envelope.content_type = Some("application/json".into());
        NewEntry { destinations: destinations.iter().map(|text| name(text)).collect(), ..NewEntry::new(envelope) }
    }

    pub(super) fn enqueue(&self, item: NewEntry) -> EnqueueAnswer {
        self.run(|store| store.enqueue(vec![item])).remove(0)
    }

    /// Enqueues an item that must be saved for one destination.
    pub(super) fn save(&self, item: NewEntry) -> EntryId {
        match self.enqueue(item) {
            EnqueueAnswer::Created { entries, .. } if entries.len() == 1 => entries[0].0,
            other => panic!("must create one entry: {other:?}"),
        }
    }

    /// A new entry at a destination.
    pub(super) fn entry_at(&mut self, destination: &str) -> EntryId {
        let item = self.item(destination);
        self.save(item)
    }

    pub(super) fn entries_at(&mut self, destination: &str, count: usize) -> Vec<EntryId> {
        (0..count).map(|_| self.entry_at(destination)).collect()
    }
}

/// Workers.
impl Bench {
    pub(super) fn start(&mut self, mode: DrainMode, lease: Duration) -> Result<Incarnation, StoreErrorKind> {
        let incarnation = Incarnation::new(self.now(), self.random());
        let worker = WorkerId::new("worker-1").unwrap();
        let start = WorkerStart { worker, incarnation, mode, lease, pid: 7 };
        block_on(self.store().start_worker(start)).map(|_| incarnation).map_err(|error| error.kind())
    }

    /// The worker of the case; its lease does not end by itself.
    pub(super) fn worker(&mut self) -> Incarnation {
        match self.worker {
            Some(worker) => worker,
            None => self.new_worker(Duration::MAX),
        }
    }

    /// A further start, which is the worker of the case from now on.
    pub(super) fn new_worker(&mut self, lease: Duration) -> Incarnation {
        let incarnation = self.start(DrainMode::Claim, lease).unwrap();
        self.worker = Some(incarnation);
        incarnation
    }

    /// A further start in plain mode, which is the worker of the case from now on.
    pub(super) fn new_plain_worker(&mut self, lease: Duration) -> Incarnation {
        let incarnation = self.start(DrainMode::Plain, lease).unwrap();
        self.worker = Some(incarnation);
        incarnation
    }

    pub(super) fn request(&mut self, destination: &str, kind: ClaimKind, limit: usize) -> ClaimRequest {
        ClaimRequest {
            tenant: self.tenant.clone(),
            destination: name(destination),
            incarnation: self.worker(),
            token: self.token(),
            hold_for: HOUR,
            limit,
            kind,
        }
    }

    pub(super) fn page(&mut self, destination: &str, kind: ClaimKind, limit: usize) -> ClaimPage {
        let request = self.request(destination, kind, limit);
        self.run(|store| store.claim(request))
    }

    /// Claims normally.
    pub(super) fn claim(&mut self, destination: &str, limit: usize) -> Vec<Claimed> {
        self.page(destination, ClaimKind::Normal, limit).claimed
    }

    /// Claims the one entry that is there.
    pub(super) fn claim_one(&mut self, destination: &str) -> Entry {
        let mut claimed = self.claim(destination, 1);
        assert_eq!(claimed.len(), 1, "one entry must be due at {destination}");
        claimed.remove(0).entry
    }

    /// What `decide` says now about an event.
    pub(super) fn decide(&mut self, entry: &Entry, event: &Event) -> Transition {
        let mut random = [0; 18];
        random[..10].copy_from_slice(&self.random());
        let found = self.run(|store| store.destination(entry.key.tenant.clone(), entry.destination.clone()));
        let (destination, health) = found.unwrap();
        let now = self.now();
        let last_success = health.last_success;
        decide(entry, event, &Context { destination: &destination, last_success, now, started: now, random })
    }

    pub(super) fn settle(&self, destination: &str, settlements: Vec<Settlement>) -> SettleAnswer {
        self.settle_with(destination, settlements, None)
    }

    pub(super) fn settle_with(
        &self,
        destination: &str,
        settlements: Vec<Settlement>,
        health: Option<HealthChange>,
    ) -> SettleAnswer {
        let destination = name(destination);
        let tenant = self.tenant.clone();
        self.run(|store| store.settle(SettleRequest { tenant, destination, settlements, health }))
    }

    /// Settles a claimed entry by its outcome; says nothing about the destination's health.
    pub(super) fn outcome(&mut self, entry: &Entry, outcome: Outcome) -> TransitionResult {
        let transition = self.decide(entry, &Event::Emitted(outcome));
        self.settle_under(entry, claim_fence(entry), transition)
    }

    pub(super) fn settle_under(&self, entry: &Entry, fence: Fence, transition: Transition) -> TransitionResult {
        let claim = ClaimRef { key: entry.key.clone(), fence };
        let answer = self.settle(entry.destination.as_str(), vec![Settlement { claim, transition }]);
        answer.results[0]
    }

    /// Settles claimed entries with one outcome each, and saves what `observe` makes of it.
    pub(super) fn observed(&mut self, destination: &str, claimed: &[Claimed], outcome: &Outcome) -> SettleAnswer {
        let settlements: Vec<Settlement> = claimed
            .iter()
            .map(|claimed| Settlement {
                claim: claim_ref(&claimed.entry),
                transition: self.decide(&claimed.entry, &Event::Emitted(outcome.clone())),
            })
            .collect();
        let (stored, health) = self.run(|store| store.destination(self.tenant.clone(), name(destination))).unwrap();
        let observations: Vec<_> =
            settlements.iter().map(|settlement| settlement.transition.observation.clone()).collect();
        let waiting = claimed.len() as u64;
        let change = observe(&health, &stored.spec.policy, &observations, waiting, self.now())
            .map(|new| HealthChange { expected: health.version, health: new });
        self.settle_with(destination, settlements, change)
    }
}

/// Whole ways of an entry.
impl Bench {
    /// A new entry that was claimed.
    pub(super) fn claimed_at(&mut self, destination: &str) -> Entry {
        self.entry_at(destination);
        self.claim_one(destination)
    }

    /// A new entry that ended in quarantine for a deterministic cause.
    pub(super) fn dead_letter_at(&mut self, destination: &str) -> DeadLetter {
        let entry = self.claimed_at(destination);
        assert_eq!(self.outcome(&entry, refused()), TransitionResult::Applied);
        self.dead_letter_of(entry.key.entry)
    }

    /// A new entry in manual review; the destination must have that as its alternative, with an allowance of one.
    pub(super) fn reviewed_at(&mut self, destination: &str) -> EntryId {
        let entry = self.claimed_at(destination);
        self.outcome(&entry, transient());
        let id = entry.key.entry;
        assert_eq!(self.state(id), EntryState::ManualReview);
        id
    }

    pub(super) fn entry(&self, id: EntryId) -> EntryView {
        self.run(|store| store.entry(self.tenant.clone(), id)).expect("the entry is stored")
    }

    /// The live row of an entry.
    pub(super) fn live(&self, id: EntryId) -> Entry {
        self.entry(id).live.expect("the entry lives")
    }

    pub(super) fn state(&self, id: EntryId) -> EntryState {
        self.entry(id).summary.state
    }

    pub(super) fn dead_letters(&self) -> Vec<DeadLetter> {
        self.run(|store| store.dead_letters(DeadLetterFilter::default(), ALL)).rows
    }

    /// The latest dead letter of an entry.
    pub(super) fn dead_letter_of(&self, id: EntryId) -> DeadLetter {
        let found = self.dead_letters().into_iter().find(|dead_letter| dead_letter.key.entry == id);
        found.expect("the entry has a dead letter")
    }
}

/// Operators.
impl Bench {
    pub(super) fn hold_act(&mut self, destination: &str, act: HoldAct) -> ActResult {
        let audit = self.audit("destination.act");
        let tenant = self.tenant.clone();
        self.run(|store| store.act_on_destinations(tenant, vec![name(destination)], act, audit)).remove(0)
    }

    pub(super) fn hold(&mut self, destination: &str) -> ActResult {
        self.hold_act(destination, HoldAct::Hold { reason: "maintenance".into() })
    }

    pub(super) fn act(&mut self, entry: EntryId, act: EntryAct) -> ActResult {
        let audit = self.audit("entry.act");
        let tenant = self.tenant.clone();
        self.run(|store| store.act_on_entries(tenant, vec![(entry, act)], audit)).remove(0)
    }

    pub(super) fn redrive(&mut self, items: Vec<DeadLetterId>) -> Vec<RedriveResult> {
        let audit = self.audit("dead_letter.redrive");
        let redrive = RedriveId::new(self.now(), self.random());
        let tenant = self.tenant.clone();
        self.run(|store| store.redrive(tenant, redrive, items, audit))
    }

    /// Redrives one dead letter, which must not be refused.
    pub(super) fn redriven(&mut self, item: DeadLetterId) -> EntryKey {
        match self.redrive(vec![item]).remove(0) {
            RedriveResult::Redriven { key } => key,
            other => panic!("must be redriven: {other:?}"),
        }
    }
}

/// The fence of an entry's claim.
pub(super) fn claim_fence(entry: &Entry) -> Fence {
    Fence::Claim(entry.claim.expect("the entry is claimed").token)
}

pub(super) fn claim_ref(entry: &Entry) -> ClaimRef {
    ClaimRef { key: entry.key.clone(), fence: claim_fence(entry) }
}

pub(super) fn version_ref(entry: &Entry) -> ClaimRef {
    ClaimRef { key: entry.key.clone(), fence: Fence::Version(entry.version) }
}

/// The fence of maintenance.
pub(super) fn maintenance_fence(entry: &Entry) -> Fence {
    Fence::Maintenance(entry.version)
}

pub(super) fn ids(claimed: &[Claimed]) -> Vec<EntryId> {
    claimed.iter().map(|claimed| claimed.entry.key.entry).collect()
}

pub(super) fn delivered() -> Outcome {
    Outcome::Delivered { receipt: Some(Receipt { kind: "provider".into(), id: Some("r-1".into()) }) }
}

fn failure(class: Class, reason: &str, phase: Phase) -> Failure {
    Failure::custom(class, Reason::new(reason).unwrap(), phase, format!("composed text about {reason}"))
}

/// Not taken, for a passing cause.
pub(super) fn transient() -> Outcome {
    Outcome::RetryableFailure(failure(Class::Transient, "test.busy", Phase::Answered))
}

/// Refused: the same input will fail again.
pub(super) fn refused() -> Outcome {
    Outcome::Failed(failure(Class::Deterministic, "test.refused", Phase::Answered))
}

/// Sent, and no answer.
pub(super) fn unanswered() -> Outcome {
    Outcome::Ambiguous(failure(Class::Ambiguous, "test.no_answer", Phase::Sent))
}
