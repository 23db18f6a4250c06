//! What every test starts with: a world, a model store, destinations, entries, a scripted emitter.

use core::future::Future;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dlo_core::{
    Actor, AuditEvent, AuditId, AuthenticationStrength, DestinationSpec, Duplicates, EngineOptions, EntryId, Envelope,
    EnvelopeId, Failure, NewEntry, Observed, Outcome, Payload, PayloadForm, TenantId, Timestamp, TransportKind,
    outcome::Phase,
};
use dlo_engine::{Ended, Engine, EngineError, Until};
use dlo_ports::{
    Emission, Store,
    emitter::emit_each,
    store::{
        DeadLetterFilter, DestinationStats, EnqueueAnswer, EnqueueStore, EntryFilter, EntrySummary, EntryView, HoldAct,
        OfficeStore, PageRequest, ReadStore,
    },
};
use dlo_sim::{ModelStore, counting_randomness};

use crate::faulty::Faulty;
use crate::world::{DatabaseClock, World, WorldEnv};

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_mins(1);
pub const HOUR: Duration = Duration::from_hours(1);

/// A world with a model store.
pub struct Office {
    pub world: Arc<World>,
    pub model: Arc<ModelStore>,
    pub store: Arc<Faulty>,
    pub options: EngineOptions,
}

/// One emission as the emitter saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub entry: EntryId,
    pub key: String,
    pub attempt: u32,
    pub at: Timestamp,
}

/// What an emitter saw, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn by_entry(&self) -> BTreeMap<EntryId, usize> {
        let mut counts = BTreeMap::new();
        for seen in self.seen() {
            *counts.entry(seen.entry).or_default() += 1;
        }
        counts
    }

    pub fn add(&self, emission: &Emission, at: Timestamp) {
        self.0.lock().unwrap().push(Seen {
            entry: emission.entry,
            key: emission.operation_key.as_str().to_owned(),
            attempt: emission.attempt,
            at,
        });
    }
}

pub fn delivered() -> Outcome {
    Outcome::Delivered { receipt: None }
}

pub fn http(status: u16) -> Outcome {
    Outcome::Failed(Failure::new(Observed::Http { status }, format!("HTTP {status}")))
}

pub fn refused_connection() -> Outcome {
    let observed = Observed::Transport { kind: TransportKind::Connect, phase: Phase::NotSent };
    Outcome::Failed(Failure::new(observed, "connection refused"))
}

pub fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub fn spec(name: &str, emitter: &str) -> DestinationSpec {
    DestinationSpec {
        tenant: tenant(),
        name: name.parse().unwrap(),
        emitter: emitter.to_owned(),
        settings: "{}".to_owned(),
        duplicates: Duplicates::Tolerated,
        policy: dlo_core::DeliveryPolicy::default(),
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

/// Emissions in flight at once, now and at most.
#[derive(Clone, Default)]
pub struct Flights(Arc<Mutex<(usize, usize)>>);

impl Flights {
    pub fn most(&self) -> usize {
        self.0.lock().unwrap().1
    }

    pub fn start(&self) -> Flight {
        let mut flights = self.0.lock().unwrap();
        flights.0 += 1;
        flights.1 = flights.1.max(flights.0);
        Flight(self.clone())
    }
}

/// One of them, until it is dropped.
pub struct Flight(Flights);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().0 -= 1;
    }
}

impl Office {
    pub fn new() -> Self {
        let world = World::new();
        let model = Arc::new(
            ModelStore::new(Arc::new(DatabaseClock(Arc::clone(&world))), counting_randomness()).single_engine(),
        );
        let store = Faulty::new(Arc::clone(&model) as Arc<dyn Store>, Arc::clone(&world));
        let options = EngineOptions::new("worker-1".parse().unwrap());
        Self { world, model, store: Arc::new(store), options }
    }

    /// A destination with changed defaults.
    pub fn destination(&self, name: &str, emitter: &str, change: impl FnOnce(&mut DestinationSpec)) {
        let mut spec = spec(name, emitter);
        change(&mut spec);
        spec.policy.validate().unwrap();
        let audit = self.audit("destination.apply", name);
        self.world.run(self.model.apply_destinations(vec![spec], audit)).unwrap();
        // What is claimed at the very time of a version may have been claimed under the one before.
        self.wait(Duration::from_millis(1));
    }

    pub fn audit(&self, act: &'static str, target: &str) -> AuditEvent {
        AuditEvent {
            id: AuditId::new(self.world.time(), [7; 10]),
            tenant: tenant(),
            actor: Actor { name: "local:tester".to_owned(), strength: AuthenticationStrength::Asserted },
            act,
            target: target.to_owned(),
            reason: Some("test".into()),
            detail: BTreeMap::new(),
        }
    }

    /// An emitter that answers by a function of the emission.
    pub fn scripted<F, R>(&self, kind: &str, script: F) -> Log
    where
        F: Fn(Emission) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let log = Log::default();
        let (world, seen) = (Arc::clone(&self.world), log.clone());
        let emitter = emit_each(move |emission: Emission| {
            seen.add(&emission, world.time());
            script(emission)
        });
        self.world.emitter(kind, emitter);
        log
    }

    /// An emitter that always answers the same at once.
    pub fn answering(&self, kind: &str, outcome: Outcome) -> Log {
        self.scripted(kind, move |_| core::future::ready(outcome.clone()))
    }

    /// An emitter that never answers.
    pub fn hanging(&self, kind: &str) -> Log {
        self.scripted(kind, |_| core::future::pending())
    }

    /// An emitter that needs some time.
    pub fn slow(&self, kind: &str, span: Duration, outcome: Outcome) -> (Log, Flights) {
        let (world, flights) = (Arc::clone(&self.world), Flights::default());
        let counted = flights.clone();
        let log = self.scripted(kind, move |_| {
            let (sleep, flight, outcome) = (world.sleep(span), counted.start(), outcome.clone());
            async move {
                sleep.await;
                drop(flight);
                outcome
            }
        });
        (log, flights)
    }

    /// Lets virtual time pass without an engine.
    pub fn wait(&self, span: Duration) {
        self.world.run(self.world.sleep(span));
    }

    pub fn act(&self, destination: &str, act: HoldAct) {
        let audit = self.audit("destination.act", destination);
        self.world
            .run(self.model.act_on_destinations(tenant(), vec![destination.parse().unwrap()], act, audit))
            .unwrap();
    }

    pub fn enqueue(&self, destination: &str, count: usize) -> Vec<EntryId> {
        self.enqueue_with(destination, count, |_| {})
    }

    pub fn enqueue_with(&self, destination: &str, count: usize, change: impl Fn(&mut NewEntry)) -> Vec<EntryId> {
        let items: Vec<NewEntry> = (0..count).map(|_| self.item(destination, &change)).collect();
        let mut entries = Vec::new();
        for batch in items.chunks(dlo_core::limits::MAX_ENQUEUE_BATCH) {
            for answer in self.world.run(self.model.enqueue(batch.to_vec())).unwrap() {
                let EnqueueAnswer::Created { entries: created, .. } = answer else { panic!("not created: {answer:?}") };
                entries.extend(created.into_iter().map(|(entry, _)| entry));
            }
        }
        entries
    }

    pub fn item(&self, destination: &str, change: impl Fn(&mut NewEntry)) -> NewEntry {
        let mut random = [0; 10];
        dlo_ports::Env::random(&WorldEnv(Arc::clone(&self.world)), &mut random);
        let id = EnvelopeId::new(self.world.time(), random);
        let payload = Payload::Bytes { bytes: Bytes::from_static(b"{\"n\":1}"), form: PayloadForm::Json };
        let mut item =
            NewEntry::new(Envelope::new(id, tenant(), "test.happened", payload)).to(destination.parse().unwrap());
        change(&mut item);
        item
    }

    pub fn engine(&self) -> Engine {
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        Engine::new(store, Arc::new(WorldEnv(Arc::clone(&self.world))), self.options.clone()).unwrap()
    }

    pub fn run_until(&self, until: Until) -> Result<Ended, EngineError> {
        let engine = self.engine();
        self.world.run(engine.run_until(until, core::future::pending()))
    }

    /// Runs for a span of virtual time, then shuts down.
    pub fn run_for(&self, span: Duration) -> Result<Ended, EngineError> {
        let engine = self.engine();
        let shutdown = self.world.sleep(span);
        self.world.run(engine.run(shutdown))
    }

    /// Runs for a span of virtual time, then drops everything, like a process that is killed.
    pub fn run_and_kill_after(&self, span: Duration) {
        let engine = self.engine();
        let killed = self.world.sleep(span);
        self.world.run(async move {
            tokio::select! {
                biased;
                () = killed => {}
                _ = engine.run(core::future::pending()) => panic!("ended before it was killed"),
            }
        });
    }

    pub fn entry(&self, entry: EntryId) -> EntryView {
        self.world.run(self.model.entry(tenant(), entry)).unwrap().expect("the entry is there (I-01)")
    }

    pub fn stats(&self, destination: &str) -> DestinationStats {
        let stats = self.world.run(self.model.stats()).unwrap();
        stats.destinations.into_iter().find(|d| d.destination.as_str() == destination).expect("destination has stats")
    }

    pub fn health(&self, destination: &str) -> dlo_core::Health {
        use dlo_ports::store::DrainStore;
        self.world.run(self.model.destination(tenant(), destination.parse().unwrap())).unwrap().unwrap().1
    }

    pub fn dead_letters(&self) -> Vec<dlo_core::DeadLetter> {
        let page = PageRequest { after: None, limit: 1_000 };
        self.world.run(self.model.dead_letters(DeadLetterFilter::default(), page)).unwrap().rows
    }

    pub fn live(&self) -> Vec<EntrySummary> {
        let page = PageRequest { after: None, limit: 1_000 };
        let rows = self.world.run(self.model.entries(EntryFilter::default(), page)).unwrap().rows;
        rows.into_iter().filter(|row| !row.state.is_terminal()).collect()
    }

    /// The invariants that a database alone can show.
    pub fn check(&self) {
        assert_eq!(self.world.run(self.model.check(100)).unwrap(), []);
    }
}
