//! What the scenarios share: options, folders, stores, destinations, items, engines.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use dlo::{Outbox, ProcessEnv, Registry};
use dlo_core::{
    Actor, AuthenticationStrength, DeliveryPolicy, Destination, DestinationName, DestinationSpec, Duplicates,
    EngineOptions, Envelope, EnvelopeId, NewEntry, Payload, PayloadForm, TenantId, Timestamp,
};
use dlo_engine::{Engine, Until};
use dlo_ports::{Clock, Emitter, env::EmitterError, store::EnqueueStore};
use dlo_sqlite::{OpenOptions, SqliteStore, StoreClock};
use tempfile::TempDir;

/// Items of one enqueue.
pub(crate) const BATCH: usize = 500;
/// Bytes of a payload.
pub(crate) const PAYLOAD: usize = 300;
/// Batches that a producer has under way at once: one is written while the next is made.
pub(crate) const IN_FLIGHT: usize = 2;

/// How to run a scenario.
pub(crate) struct Options {
    pub(crate) runs: usize,
    pub(crate) small: bool,
    pub(crate) out: PathBuf,
}

impl Options {
    pub(crate) fn read(arguments: &[String]) -> Self {
        let small = arguments.iter().any(|argument| argument == "--small");
        let runs = arguments.iter().position(|argument| argument == "--runs").and_then(|at| arguments.get(at + 1));
        let runs = runs.map_or(5, |runs| runs.parse().expect("--runs takes a number"));
        let out = std::env::var_os("BENCH_OUT").map_or_else(|| root().join("docs/benchmarks.json"), PathBuf::from);
        Self { runs, small, out }
    }

    /// A number of rows, or a tenth of it with `--small`.
    pub(crate) fn rows(&self, rows: usize) -> usize {
        if self.small { rows / 10 } else { rows }
    }

    /// Words for a note.
    pub(crate) fn size(&self) -> &'static str {
        if self.small { " (--small: a tenth of the rows)" } else { "" }
    }
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fresh folder for databases.
pub(crate) fn folder() -> TempDir {
    let parent = std::env::var_os("BENCH_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/databases"), PathBuf::from);
    std::fs::create_dir_all(&parent).expect("the folder of databases can be made");
    tempfile::Builder::new().prefix("bench-dlo-").tempdir_in(parent).expect("a folder for databases can be made")
}

/// This program, started as another process.
pub(crate) fn child(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().expect("a process knows its program"));
    command.args(arguments);
    command
}

/// Runs asynchronous code as an application would: a runtime with default settings.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts").block_on(work)
}

pub(crate) fn now() -> Timestamp {
    ProcessEnv::new(Registry::builtin()).now()
}

pub(crate) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) fn name(number: usize) -> DestinationName {
    DestinationName::new(&format!("orders-{number}")).expect("a valid name")
}

/// A destination where a duplicate does no harm, with the default policy.
pub(crate) fn destination(number: usize, emitter: &str) -> DestinationSpec {
    DestinationSpec {
        tenant: tenant(),
        name: name(number),
        emitter: emitter.to_owned(),
        settings: "{}".to_owned(),
        duplicates: Duplicates::Tolerated,
        policy: DeliveryPolicy::default(),
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

/// A store as the product opens it.
pub(crate) fn open(path: &Path) -> Arc<SqliteStore> {
    let mut options = OpenOptions::new(path, StoreClock::Database(Arc::new(ProcessEnv::new(Registry::builtin()))));
    options.create = true;
    Arc::new(SqliteStore::open(options).expect("the store opens"))
}

pub(crate) async fn apply(store: &Arc<SqliteStore>, specs: Vec<DestinationSpec>) {
    office(store).apply_destinations(specs).await.expect("destinations are applied");
}

/// Holds a destination as a person does.
pub(crate) async fn hold(store: &Arc<SqliteStore>, destination: DestinationName) {
    let held = office(store).hold(&tenant(), vec![destination], "held for the measurement").await;
    held.expect("a destination is held");
}

fn office(store: &Arc<SqliteStore>) -> dlo::office::Office {
    let actor = Actor { name: "local:bench".to_owned(), strength: AuthenticationStrength::Asserted };
    Outbox::on(store.clone(), Registry::builtin(), tenant()).office(actor)
}

/// One item: a JSON object of [`PAYLOAD`] bytes for one named destination.
pub(crate) fn item(number: usize, destination: &DestinationName) -> NewEntry {
    let payload = Payload::Bytes { bytes: payload(number), form: PayloadForm::Json };
    let mut envelope = Envelope::new(envelope_id(number), tenant(), "order.placed", payload);
    envelope.content_type = Some("application/json".to_owned());
    NewEntry::new(envelope).to(destination.clone())
}

fn envelope_id(number: usize) -> EnvelopeId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    EnvelopeId::new(now(), random)
}

pub(crate) fn payload(number: usize) -> Bytes {
    use std::io::Write;
    let mut text = Vec::with_capacity(PAYLOAD);
    let (customer, cents) = (number % 1_000, number * 7 % 100_000);
    write!(text, "{{\"order_id\":{number},\"customer\":\"c-{customer}\",\"amount_cents\":{cents},\"note\":\"")
        .expect("a vector takes bytes");
    text.resize(PAYLOAD - 2, b'x');
    text.extend(b"\"}");
    Bytes::from(text)
}

/// Enqueues `count` items in batches through the public verb; the answer is how long it took. Items are made by the
/// caller inside the measured time, as an application makes them.
pub(crate) async fn enqueue(store: &Arc<SqliteStore>, destinations: usize, count: usize, batch: usize) -> Duration {
    let names: Vec<DestinationName> = (0..destinations).map(name).collect();
    let started = Instant::now();
    let mut flying = std::collections::VecDeque::new();
    let mut from = 0;
    while from < count || !flying.is_empty() {
        if from < count && flying.len() < IN_FLIGHT {
            let upto = count.min(from + batch);
            let items = (from..upto).map(|number| item(number, &names[number % destinations])).collect();
            from = upto;
            let store = Arc::clone(store);
            flying.push_back(tokio::spawn(async move { store.enqueue(items).await }));
        } else if let Some(next) = flying.pop_front() {
            let answers = next.await.expect("an enqueue does not panic").expect("an enqueue works");
            assert!(answers.iter().all(|answer| matches!(answer, dlo_ports::store::EnqueueAnswer::Created { .. })));
        }
    }
    started.elapsed()
}

/// An engine with default options and one emitter for every kind asked for.
pub(crate) fn engine(store: &Arc<SqliteStore>, kind: &str, emitter: Arc<dyn Emitter>) -> Engine {
    let factory = move |_: &Destination| Ok::<_, EmitterError>(Arc::clone(&emitter));
    engine_of(store, Registry::builtin().with(kind, Arc::new(factory)))
}

pub(crate) fn engine_of(store: &Arc<SqliteStore>, registry: Registry) -> Engine {
    let options = EngineOptions::new("bench".parse().expect("a valid name"));
    Engine::new(store.clone(), Arc::new(ProcessEnv::new(registry)), options).expect("default options are valid")
}

/// Drains until nothing is left; the answer is how long it took, start and end of the engine included.
pub(crate) async fn drain(engine: Engine) -> Duration {
    let started = Instant::now();
    engine.run_until(Until::Empty, core::future::pending()).await.expect("the engine runs");
    started.elapsed()
}

/// Copies a closed database. When its connections closed at the same time, none of them moved the log into the file.
pub(crate) fn copy(from: &Path, to: &Path) {
    rusqlite::Connection::open(from)
        .and_then(|conn| conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
        .expect("the log goes into the file");
    std::fs::copy(from, to).expect("a database file can be copied");
    std::fs::File::open(to).and_then(|file| file.sync_all()).expect("a copy reaches the disk");
}

/// A counter that emitters and loops share.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Rows a second.
pub(crate) fn rate(rows: usize, span: Duration) -> f64 {
    rows as f64 / span.as_secs_f64()
}

/// Processor time of this process so far, in seconds.
pub(crate) fn cpu() -> f64 {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").expect("this runs on Linux");
    let fields = text.rsplit_once(')').expect("the name ends").1;
    let ticks = |index: usize| fields.split_whitespace().nth(index).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).expect("user time") + ticks(12).expect("system time")) / TICKS
}

/// Runs what gives a rate; the answer is the rate, and the processor time of one row in microseconds.
pub(crate) fn metered(rows: usize, run: impl FnOnce() -> f64) -> (f64, f64) {
    let before = cpu();
    let rate = run();
    (rate, (cpu() - before) / rows as f64 * 1e6)
}
