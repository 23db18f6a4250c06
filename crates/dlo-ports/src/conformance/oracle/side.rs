//! One of the two stores that are compared, and what it takes to run an operation on it.

use core::{fmt::Debug, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use dlo_core::{
    Actor, AuditEvent, AuditId, AuthenticationStrength, ClaimRef, DeadLetterId, DestinationName, EnqueueKey, Entry,
    EntryId, EntryState, Envelope, EnvelopeId, Fence, Incarnation, NewEntry, Payload, PayloadForm, RedriveId, TenantId,
    Timestamp, Token, WorkerId,
    dead_letter::by_operator,
    decide::{Context, Event, Transition, decide},
    health::Admission,
    observe::observe,
    policy::DrainMode,
};

use super::{
    super::{Harness, ManualClock, bench::ALL, block_on},
    names::Names,
    ops::{Act, End, Hold, Item, Observe, Op},
    world::{TARGETS, destination, shifted, spec},
};
use crate::{
    Clock, Store, StoreError,
    store::{
        ClaimKind, ClaimRequest, DeadLetterFilter, EnqueueAnswer, EntryAct, EntryFilter, HealthChange, HoldAct,
        PruneRequest, Scope, SettleRequest, Settlement, StoreResult, WorkerStart,
    },
};

pub(super) struct Side {
    harness: Box<dyn Harness>,
    store: Option<Arc<dyn Store>>,
    clock: Arc<ManualClock>,
    tenant: TenantId,
    /// Counts ids that both sides make alike.
    ids: u64,
    pub(super) names: Names,
    /// Entries in order of creation.
    pub(super) entries: Vec<EntryId>,
    /// What was claimed and not yet settled by this sequence, as it was claimed.
    claimed: Vec<Entry>,
    settled: Vec<SettleRequest>,
    worker: Incarnation,
    /// Whether a stored envelope was damaged.
    pub(super) damaged: bool,
}

impl Side {
    pub(super) fn new(harness: Box<dyn Harness>, clock: Arc<ManualClock>) -> Self {
        Self {
            store: Some(harness.store()),
            harness,
            clock,
            tenant: TenantId::default_tenant(),
            ids: 0,
            names: Names::default(),
            entries: Vec::new(),
            claimed: Vec::new(),
            settled: Vec::new(),
            worker: Incarnation::from_bytes([0; 16]),
            damaged: false,
        }
    }

    pub(super) fn single_engine(&self) -> bool {
        self.harness.single_engine()
    }

    /// Destinations and a worker.
    pub(super) fn prepare(&mut self) {
        for destination in ["a", "b", "c"] {
            self.apply(destination, 0);
        }
        self.start(false);
    }

    pub(super) fn store(&self) -> &dyn Store {
        &**self.store.as_ref().expect("open except while it is reopened")
    }

    pub(super) fn get<'a, T>(&'a self, verb: impl FnOnce(&'a dyn Store) -> StoreResult<'a, T>) -> T {
        block_on(verb(self.store())).unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn random(&mut self) -> [u8; 10] {
        self.ids += 1;
        let mut random = [0xee; 10];
        random[2..].copy_from_slice(&self.ids.to_be_bytes());
        random
    }

    fn audit(&mut self, act: &'static str) -> AuditEvent {
        AuditEvent {
            id: AuditId::new(self.now(), self.random()),
            tenant: self.tenant.clone(),
            actor: Actor { name: "local:oracle".into(), strength: AuthenticationStrength::Asserted },
            act,
            target: "target".into(),
            reason: None,
            detail: BTreeMap::new(),
        }
    }

    /// Runs an operation and tells its answer, with names instead of ids.
    pub(super) fn step(&mut self, op: &Op) -> String {
        let answer = match op {
            Op::Enqueue(items) => self.enqueue(items),
            Op::Claim { target, limit, kind, hold_for } => {
                let request = self.request(*target, *limit, *kind, *hold_for);
                self.claim(request)
            }
            Op::Drain { target, limit, end } => self.drain(*target, *limit, *end),
            Op::Crash { target, limit } => self.crash(*target, *limit),
            Op::Settle { which, ends, by_version, observe } => self.settle(which, ends, *by_version, *observe),
            Op::SettleAgain { which } => self.settle_again(*which),
            Op::Release { which, by_version, twice } => self.release(*which, *by_version, *twice),
            Op::Mark { which, by_version } => match self.nth_claimed(*which, *by_version) {
                Some(claim) => answer(block_on(self.store().mark_sent(vec![claim]))),
                None => String::new(),
            },
            Op::SweepLost { limit } => self.sweep_lost(*limit),
            Op::SweepOverdue { target } => self.sweep_overdue(*target),
            Op::Start { plain } => self.start(*plain),
            Op::Heartbeat { lease } => {
                answer(block_on(self.store().heartbeat(self.worker, Duration::from_secs(u64::from(*lease)))))
            }
            Op::Stop => answer(block_on(self.store().stop_worker(self.worker))),
            Op::Wait { .. } | Op::StepBack { .. } => String::new(),
            Op::Hold { target, hold } => self.hold(*target, *hold),
            Op::Apply { target, variant } => self.apply(destination(*target).as_str(), *variant),
            Op::Act { which, act } => self.act(*which, *act),
            Op::Redrive { which, missing } => self.redrive(which, *missing),
            Op::Prune { history, enqueue_keys, limit } => {
                let request = PruneRequest {
                    history: Duration::from_secs(u64::from(*history)),
                    enqueue_keys: Duration::from_secs(u64::from(*enqueue_keys)),
                    limit: *limit,
                };
                answer(block_on(self.store().prune(request)))
            }
            Op::Damage { which } => self.damage(*which),
            Op::Reopen => {
                self.store = None;
                self.harness.reopen();
                self.store = Some(self.harness.store());
                String::new()
            }
            Op::List { limit } => self.list(*limit),
        };
        self.names.replace(&answer)
    }

    fn enqueue(&mut self, items: &[Item]) -> String {
        let items: Vec<NewEntry> = items.iter().map(|item| self.item(item)).collect();
        let answers = block_on(self.store().enqueue(items));
        for created in answers.iter().flatten() {
            let EnqueueAnswer::Created { entries, .. } = created else { continue };
            for (entry, _) in entries {
                self.names.name("entry-", entry.as_bytes());
                self.entries.push(*entry);
            }
        }
        answer(answers)
    }

    fn item(&mut self, item: &Item) -> NewEntry {
        let bytes = Bytes::from(vec![item.content; 4]);
        let id = EnvelopeId::new(self.now(), self.random());
        let payload = Payload::Bytes { bytes, form: PayloadForm::Binary };
        let mut envelope = Envelope::new(id, self.tenant.clone(), "order.created", payload);
        envelope.correlation_id = Some(format!("correlation-{}", item.content));
        NewEntry {
            destinations: TARGETS[item.target].iter().map(|name| DestinationName::new(name).unwrap()).collect(),
            enqueue_key: item.key.map(|key| EnqueueKey::new(&format!("key-{key}")).unwrap()),
            not_before: item.not_before.map(|seconds| shifted(self.now(), seconds)),
            deliver_by: item.deliver_by.map(|seconds| shifted(self.now(), seconds)),
            ..NewEntry::new(envelope)
        }
    }

    fn request(&mut self, target: usize, limit: usize, kind: ClaimKind, hold_for: u16) -> ClaimRequest {
        ClaimRequest {
            tenant: self.tenant.clone(),
            destination: destination(target),
            incarnation: self.worker,
            token: Token::new(self.now(), self.random()),
            hold_for: Duration::from_secs(u64::from(hold_for)),
            limit,
            kind,
        }
    }

    /// Claims in the way that the destination admits now, suspects first.
    fn claim_admitted(&mut self, target: usize, limit: usize) -> String {
        let found = self.get(|store| store.destination(self.tenant.clone(), destination(target)));
        let admission = found.map(|(_, health)| health.admission(self.now()));
        if admission == Some(Admission::Probe) {
            let request = self.request(target, limit, ClaimKind::Probe, 900);
            return self.claim(request);
        }
        let suspect = self.request(target, limit, ClaimKind::Suspect, 900);
        let normal = self.request(target, limit, ClaimKind::Normal, 900);
        self.claim(suspect) + &self.claim(normal)
    }

    fn drain(&mut self, target: usize, limit: usize, end: End) -> String {
        let before = self.claimed.len();
        let claimed = self.claim_admitted(target, limit);
        let settlements: Vec<Settlement> = self
            .claimed
            .split_off(before)
            .iter()
            .map(|entry| {
                let transition = self.decide(entry, &Event::Emitted(end.outcome(self.now())));
                Settlement { claim: claim_ref(entry, false), transition }
            })
            .collect();
        claimed + &self.save(destination(target), settlements, Observe::Now)
    }

    fn crash(&mut self, target: usize, limit: usize) -> String {
        let claimed = self.claim_admitted(target, limit);
        let stopped = answer(block_on(self.store().stop_worker(self.worker)));
        claimed + &stopped + &self.start(false) + &self.sweep_lost(ALL.limit)
    }

    fn claim(&mut self, request: ClaimRequest) -> String {
        let page = block_on(self.store().claim(request));
        if let Ok(page) = &page {
            self.claimed.extend(page.claimed.iter().map(|claimed| claimed.entry.clone()));
            for key in &page.quarantined {
                let view = self.get(|store| store.entry(key.tenant.clone(), key.entry)).unwrap();
                let made = view.ended.last().and_then(|ended| ended.dead_letter).unwrap();
                self.names.name("dead-letter-", made.as_bytes());
            }
        }
        answer(page)
    }

    /// Settles claims that this sequence holds; the newest is number 0.
    fn settle(&mut self, which: &[usize], ends: &[End], by_version: bool, watch: Observe) -> String {
        let mut chosen: Vec<usize> = which.iter().filter_map(|which| nth(self.claimed.len(), *which)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let Some(last) = chosen.last() else { return String::new() };
        // One settle is about one destination.
        let destination = self.claimed[*last].destination.clone();
        chosen.retain(|index| self.claimed[*index].destination == destination);
        let settlements: Vec<Settlement> = chosen
            .iter()
            .zip(ends)
            .map(|(index, end)| {
                let entry = self.claimed[*index].clone();
                let outcome = end.outcome(self.now());
                let transition = self.decide(&entry, &Event::Emitted(outcome));
                Settlement { claim: claim_ref(&entry, by_version), transition }
            })
            .collect();
        for index in chosen.iter().rev() {
            self.claimed.remove(*index);
        }
        self.save(destination, settlements, watch)
    }

    fn save(&mut self, destination: DestinationName, settlements: Vec<Settlement>, watch: Observe) -> String {
        let health = self.watched(&destination, &settlements, watch);
        let request = SettleRequest { tenant: self.tenant.clone(), destination, settlements, health };
        self.settled.push(request.clone());
        answer(block_on(self.store().settle(request)))
    }

    /// What `observe` makes of transitions.
    fn watched(
        &self,
        destination: &DestinationName,
        settlements: &[Settlement],
        watch: Observe,
    ) -> Option<HealthChange> {
        let (stored, health) = self.get(|store| store.destination(self.tenant.clone(), destination.clone()))?;
        let observations: Vec<_> =
            settlements.iter().map(|settlement| settlement.transition.observation.clone()).collect();
        let expected = match watch {
            Observe::Not => return None,
            Observe::Now => health.version,
            Observe::Stale => health.version.wrapping_sub(1),
        };
        observe(&health, &stored.spec.policy, &observations, observations.len() as u64, self.now())
            .map(|new| HealthChange { expected, health: new })
    }

    fn decide(&mut self, entry: &Entry, event: &Event) -> Transition {
        let mut random = [0; 18];
        random[..10].copy_from_slice(&self.random());
        random[10..].copy_from_slice(&self.ids.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        let (destination, health) =
            self.get(|store| store.destination(self.tenant.clone(), entry.destination.clone())).unwrap();
        let (now, last_success) = (self.now(), health.last_success);
        decide(entry, event, &Context { destination: &destination, last_success, now, started: now, random })
    }

    fn settle_again(&self, which: usize) -> String {
        match nth(self.settled.len(), which) {
            Some(index) => answer(block_on(self.store().settle(self.settled[index].clone()))),
            None => String::new(),
        }
    }

    fn nth_claimed(&self, which: usize, by_version: bool) -> Option<ClaimRef> {
        nth(self.claimed.len(), which).map(|index| claim_ref(&self.claimed[index], by_version))
    }

    fn release(&self, which: usize, by_version: bool, twice: bool) -> String {
        let Some(claim) = self.nth_claimed(which, by_version) else { return String::new() };
        let claims = if twice { vec![claim.clone(), claim] } else { vec![claim] };
        answer(block_on(self.store().release(claims)))
    }

    fn sweep_lost(&mut self, limit: usize) -> String {
        let lost = self.get(|store| store.lost_claims(None, limit));
        self.sweep(&lost, &Event::ClaimLost)
    }

    fn sweep_overdue(&mut self, target: usize) -> String {
        let destination = destination(target);
        let (tenant, max_age) = (self.tenant.clone(), Duration::from_secs(50_000));
        let mut overdue = self.get(|store| store.overdue(tenant, destination, max_age, ALL.limit));
        // Its order is not promised.
        overdue.sort_by_key(|entry| entry.seq);
        self.sweep(&overdue, &Event::Overdue)
    }

    /// Settles entries as maintenance does: one by one, under the version that was read.
    fn sweep(&mut self, entries: &[Entry], event: &Event) -> String {
        let mut answers = format!("{entries:?}\n");
        for entry in entries {
            let transition = self.decide(entry, event);
            let claim = ClaimRef { key: entry.key.clone(), fence: Fence::Maintenance(entry.version) };
            let settlement = Settlement { claim, transition };
            answers += &self.save(entry.destination.clone(), vec![settlement], Observe::Now);
        }
        answers
    }

    fn start(&mut self, plain: bool) -> String {
        let incarnation = Incarnation::new(self.now(), self.random());
        let start = WorkerStart {
            worker: WorkerId::new("oracle").unwrap(),
            incarnation,
            mode: if plain { DrainMode::Plain } else { DrainMode::Claim },
            lease: Duration::from_hours(1),
            pid: 1,
        };
        let started = block_on(self.store().start_worker(start));
        if started.is_ok() {
            self.worker = incarnation;
        }
        answer(started)
    }

    fn hold(&mut self, target: usize, hold: Hold) -> String {
        let audit = self.audit("destination.hold");
        let act = match hold {
            Hold::Begin => HoldAct::Hold { reason: "maintenance".into() },
            Hold::Release => HoldAct::Release,
            Hold::Probe => HoldAct::Probe,
        };
        let names = vec![destination(target)];
        answer(block_on(self.store().act_on_destinations(self.tenant.clone(), names, act, audit)))
    }

    fn apply(&mut self, name: &str, variant: u8) -> String {
        let audit = self.audit("destination.apply");
        let spec = spec(name, variant);
        answer(block_on(self.store().apply_destinations(vec![spec], audit)))
    }

    fn act(&mut self, which: usize, act: Act) -> String {
        let Some(index) = nth(self.entries.len(), which) else { return String::new() };
        let mut entry = self.entries[index];
        let reviewed = EntryFilter { state: Some(EntryState::ManualReview), ..EntryFilter::default() };
        let reviewed = self.get(|store| store.entries(reviewed, ALL)).rows;
        // Manual review is rare, and has acts of its own.
        if let Some(index) = nth(reviewed.len(), which).filter(|_| !matches!(act, Act::Cancel)) {
            entry = reviewed[index].key.entry;
        }
        let act = match act {
            Act::Cancel => EntryAct::Cancel,
            Act::RetryNow(seconds) => EntryAct::RetryNow { due: shifted(self.now(), seconds) },
            Act::GiveUp => {
                let id = DeadLetterId::new(self.now(), self.random());
                let view = self.get(|store| store.entry(self.tenant.clone(), entry));
                let Some(row) = view.and_then(|view| view.live) else { return String::new() };
                let failure = row.progress.last_failure.as_ref();
                EntryAct::DeadLetter(Box::new(by_operator(id, failure, &row.destination, &"given up".into())))
            }
        };
        let audit = self.audit("entry.act");
        answer(block_on(self.store().act_on_entries(self.tenant.clone(), vec![(entry, act)], audit)))
    }

    fn redrive(&mut self, which: &[usize], missing: bool) -> String {
        let stored = self.get(|store| store.dead_letters(DeadLetterFilter::default(), ALL)).rows;
        let mut items: Vec<DeadLetterId> =
            which.iter().filter_map(|which| stored.get(*which)).map(|dead_letter| dead_letter.id).collect();
        if missing {
            items.push(DeadLetterId::from_bytes([0xdd; 16]));
        }
        let audit = self.audit("dead_letter.redrive");
        let redrive = RedriveId::new(self.now(), self.random());
        answer(block_on(self.store().redrive(self.tenant.clone(), redrive, items, audit)))
    }

    fn damage(&mut self, which: usize) -> String {
        let Some(index) = nth(self.entries.len(), which) else { return String::new() };
        let view = self.get(|store| store.entry(self.tenant.clone(), self.entries[index]));
        // Only what waits unclaimed: a store need not keep the body of what has ended.
        let Some(row) = view.and_then(|view| view.live).filter(|row| row.claim.is_none()) else {
            return String::new();
        };
        self.damaged |= self.harness.make_unreadable(&row.key);
        String::new()
    }

    fn list(&self, limit: usize) -> String {
        let page = |after| crate::store::PageRequest { after, limit };
        let first = self.get(|store| store.entries(Default::default(), page(None)));
        let due = self.get(|store| store.due_destinations(Scope::default(), None, limit));
        let next = first.next.map(|after| self.get(|store| store.entries(Default::default(), page(Some(after)))));
        let pages = [Some(first), next].map(|page| {
            page.map(|page| (page.rows.iter().map(|row| (row.key.clone(), row.seq)).collect::<Vec<_>>(), page.next))
        });
        format!("{pages:?}\n{due:?}")
    }
}

/// An answer as text; of an error its kind.
fn answer<T: Debug>(result: Result<T, StoreError>) -> String {
    format!("{:?}\n", result.map_err(|error| error.kind()))
}

/// Number `which` from the end, around.
fn nth(count: usize, which: usize) -> Option<usize> {
    (count > 0).then(|| count - 1 - which % count)
}

fn claim_ref(entry: &Entry, by_version: bool) -> ClaimRef {
    let fence = match entry.claim {
        Some(claim) if !by_version => Fence::Claim(claim.token),
        _ => Fence::Version(entry.version),
    };
    ClaimRef { key: entry.key.clone(), fence }
}
