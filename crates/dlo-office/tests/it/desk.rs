//! A model store with an office on it, and shortcuts to get entries where a test wants them.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use dlo_core::decide::{Next, Transition};
use dlo_core::entry::Progress;
use dlo_core::observe::Observation;
use dlo_core::policy::DrainMode;
use dlo_core::{
    ClaimRef, DeadLetterDraft, DeadLetterId, DeliveryPolicy, Destination, DestinationName, DestinationSpec, Duplicates,
    EntryId, Envelope, EnvelopeId, Fence, Incarnation, NewEntry, Payload, TenantId, Timestamp, Token, WorkerId,
    fingerprint::fingerprint, reason,
};
use dlo_office::{Grants, Office, local_actor};
use dlo_ports::env::EmitterError;
use dlo_ports::store::{
    AuditView, ClaimKind, ClaimRequest, DrainStore, EnqueueAnswer, EnqueueStore, EntryView, PageRequest, ReadStore,
    SettleRequest, Settlement, WorkerStart,
};
use dlo_ports::{BoxFuture, Clock, Emitter, Env};
use dlo_sim::{ModelStore, counting_randomness};

/// Time that only a test moves, and randomness that counts.
pub(crate) struct TestEnv {
    now: AtomicI64,
    count: AtomicU8,
}

impl Clock for TestEnv {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now.load(Ordering::Relaxed))
    }
}

impl Env for TestEnv {
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        unreachable!("the office never sleeps")
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(self.count.fetch_add(1, Ordering::Relaxed));
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("the office never spawns")
    }

    fn emitter(&self, _: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        unreachable!("the office never emits")
    }
}

pub(crate) struct Desk {
    pub(crate) store: Arc<ModelStore>,
    pub(crate) env: Arc<TestEnv>,
    pub(crate) office: Office,
    pub(crate) tenant: TenantId,
}

pub(crate) fn name(text: &str) -> DestinationName {
    DestinationName::new(text).unwrap()
}

pub(crate) fn spec(tenant: &str, destination: &str, duplicates: Duplicates) -> DestinationSpec {
    DestinationSpec {
        tenant: TenantId::new(tenant).unwrap(),
        name: name(destination),
        emitter: "noop".to_owned(),
        settings: "{}".to_owned(),
        duplicates,
        policy: DeliveryPolicy::default(),
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        let env = Arc::new(TestEnv { now: AtomicI64::new(1_000_000_000_000_000), count: AtomicU8::new(0) });
        let store = Arc::new(ModelStore::new(env.clone(), counting_randomness()));
        let office = Office::new(store.clone(), store.clone(), env.clone(), local_actor("alice"), Grants::operator());
        Self { store, env, office, tenant: TenantId::default_tenant() }
    }

    /// The same store for an actor with these grants.
    pub(crate) fn office_with(&self, grants: Grants) -> Office {
        Office::new(self.store.clone(), self.store.clone(), self.env.clone(), local_actor("bob"), grants)
    }

    /// With destinations of tenant `default`, duplicates tolerated.
    pub(crate) async fn with(destinations: &[&str]) -> Self {
        let desk = Self::new();
        let specs = destinations.iter().map(|d| spec("default", d, Duplicates::Tolerated)).collect();
        desk.office.apply_destinations(specs).await.unwrap();
        desk
    }

    pub(crate) async fn enqueue(&self, destination: &str, count: usize) -> Vec<EntryId> {
        let mut entries = Vec::new();
        for _ in 0..count {
            let mut random = [0; 10];
            self.env.random(&mut random);
            let id = EnvelopeId::new(self.env.now(), random);
            let envelope = Envelope::new(id, self.tenant.clone(), "test", Payload::None);
            let answers = self.store.enqueue(vec![NewEntry::new(envelope).to(name(destination))]).await.unwrap();
            let EnqueueAnswer::Created { entries: created, .. } = &answers[0] else { panic!("{answers:?}") };
            entries.push(created[0].0);
        }
        entries
    }

    /// Claims everything due at a destination and ends it as said; `unanswered` marks the last send.
    pub(crate) async fn settle_all(&self, destination: &str, unanswered: bool, next: impl Fn() -> Next) {
        let mut random = [0; 10];
        self.env.random(&mut random);
        let incarnation = Incarnation::new(self.env.now(), random);
        let worker = WorkerId::new("test").unwrap();
        let lease = Duration::from_mins(1);
        let start = WorkerStart { worker, incarnation, mode: DrainMode::Claim, lease, pid: 1 };
        self.store.start_worker(start).await.unwrap();
        let token = Token::new(self.env.now(), random);
        let request = ClaimRequest {
            tenant: self.tenant.clone(),
            destination: name(destination),
            incarnation,
            token,
            hold_for: lease,
            limit: 1_000,
            kind: ClaimKind::Normal,
        };
        let page = self.store.claim(request).await.unwrap();
        assert!(!page.claimed.is_empty(), "nothing to settle");
        let settlements = page.claimed.iter().map(|claimed| Settlement {
            claim: ClaimRef { key: claimed.entry.key.clone(), fence: Fence::Claim(token) },
            transition: Transition {
                next: next(),
                progress: Progress { unanswered, ..claimed.entry.progress.clone() },
                attempt: None,
                observation: Observation::Nothing,
            },
        });
        let settlements = settlements.collect();
        let tenant = self.tenant.clone();
        let request = SettleRequest { tenant, destination: name(destination), settlements, health: None };
        self.store.settle(request).await.unwrap();
        self.store.stop_worker(incarnation).await.unwrap();
    }

    pub(crate) fn draft(&self, destination: &str) -> DeadLetterDraft {
        let mut random = [0; 10];
        self.env.random(&mut random);
        let class = dlo_core::Class::Deterministic;
        DeadLetterDraft {
            id: DeadLetterId::new(self.env.now(), random),
            class,
            reason: reason::HTTP_BAD_REQUEST,
            code: reason::HTTP_BAD_REQUEST,
            message: "refused".into(),
            rule: None,
            fingerprint: fingerprint(class, &reason::HTTP_BAD_REQUEST, &name(destination), "refused"),
        }
    }

    pub(crate) async fn entry(&self, entry: EntryId) -> EntryView {
        self.store.entry(self.tenant.clone(), entry).await.unwrap().unwrap()
    }

    /// Audit events, oldest first, without the apply that set the test up.
    pub(crate) async fn audit(&self) -> Vec<AuditView> {
        let page = PageRequest { after: None, limit: 1_000 };
        let mut rows = self.store.audit_events(None, page).await.unwrap().rows;
        rows.reverse();
        rows.retain(|row| row.act != dlo_office::acts::APPLY);
        rows
    }
}
