//! A store in a folder of its own, with a clock that the test moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use dlo_core::{
    ClaimRef, DeliveryPolicy, DestinationName, DestinationSpec, Duplicates, EntryId, Envelope, EnvelopeId, Fence,
    Incarnation, NewEntry, Payload, PayloadForm, Receipt, Status, TenantId, Timestamp, Token,
    decide::{Next, Transition},
    entry::Lane,
    observe::Observation,
    policy::DrainMode,
};
use dlo_ports::{
    Clock, persisted,
    store::{
        ClaimKind, ClaimPage, ClaimRequest, Claimed, DrainStore, EnqueueAnswer, EnqueueStore, SettleRequest,
        Settlement, WorkerStart,
    },
};
use dlo_sqlite::{OpenOptions, SqliteStore, StoreClock};
use rusqlite::{Connection, params};
use tempfile::TempDir;

pub struct TestClock(AtomicI64);

impl TestClock {
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(span.as_micros() as i64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

pub struct Bench {
    pub store: Arc<SqliteStore>,
    pub clock: Arc<TestClock>,
    pub folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut OpenOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_800_000_000_000_000)));
        let mut options = options(&folder, &clock);
        change(&mut options);
        let store = Arc::new(SqliteStore::open(options).unwrap());
        let bench = Self { store, clock, folder };
        bench.apply(&spec("orders"));
        bench
    }

    pub fn options(&self) -> OpenOptions {
        options(&self.folder, &self.clock)
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("dlo.db")
    }

    /// Another process on the same file.
    pub fn other(&self) -> Connection {
        let conn = Connection::open(self.path()).unwrap();
        conn.busy_timeout(Duration::from_secs(20)).unwrap();
        conn
    }

    /// Applies a destination as another process would.
    pub fn apply(&self, spec: &DestinationSpec) {
        self.other()
            .execute(
                "INSERT INTO dlo_destination (tenant, name, version, schema, spec, applied)
                 SELECT ?1, ?2, coalesce(max(version), 0) + 1, ?3, ?4, ?5 FROM dlo_destination
                 WHERE tenant = ?1 AND name = ?2",
                params![
                    spec.tenant.as_str(),
                    spec.name.as_str(),
                    persisted::DESTINATION_SCHEMA,
                    persisted::encode_destination(spec),
                    self.clock.now().as_micros()
                ],
            )
            .unwrap();
    }

    pub fn count(&self, table: &str) -> i64 {
        self.other().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    pub fn total(&self, name: &str) -> i64 {
        self.other()
            .query_row("SELECT coalesce(sum(value), 0) FROM dlo_total WHERE name = ?1", [name], |row| row.get(0))
            .unwrap()
    }

    pub async fn start(&self, number: u8) -> Incarnation {
        let start = worker(number);
        let incarnation = start.incarnation;
        self.store.start_worker(start).await.unwrap();
        incarnation
    }

    pub async fn enqueue(&self, count: usize) -> Vec<EntryId> {
        self.enqueue_numbers(0..count).await
    }

    pub async fn enqueue_numbers(&self, numbers: std::ops::Range<usize>) -> Vec<EntryId> {
        let items = numbers.map(item).collect();
        let answers = self.store.enqueue(items).await.unwrap();
        answers
            .into_iter()
            .map(|answer| match answer {
                EnqueueAnswer::Created { entries, .. } => entries[0].0,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    pub async fn claim(&self, incarnation: Incarnation, number: u8, limit: usize) -> ClaimPage {
        self.store.claim(claim_request(incarnation, number, limit, ClaimKind::Normal)).await.unwrap()
    }

    pub async fn settle(&self, settlements: Vec<Settlement>) -> Vec<dlo_core::TransitionResult> {
        self.store.settle(settle_request(settlements)).await.unwrap().results
    }
}

fn options(folder: &TempDir, clock: &Arc<TestClock>) -> OpenOptions {
    let mut options = OpenOptions::new(folder.path().join("dlo.db"), StoreClock::Given(clock.clone()));
    options.create = true;
    options
}

pub fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub fn name(text: &str) -> DestinationName {
    text.parse().unwrap()
}

pub fn spec(destination: &str) -> DestinationSpec {
    DestinationSpec {
        tenant: tenant(),
        name: name(destination),
        emitter: "noop".into(),
        settings: "{}".into(),
        duplicates: Duplicates::Tolerated,
        policy: DeliveryPolicy::default(),
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

pub fn id16(number: usize) -> [u8; 16] {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&(number as u64).to_be_bytes());
    id
}

pub fn envelope(number: usize) -> Envelope {
    let payload = Payload::Bytes { bytes: format!("{{\"n\":{number}}}").into(), form: PayloadForm::Json };
    Envelope::new(EnvelopeId::from_bytes(id16(number)), tenant(), "order.placed", payload)
}

pub fn item(number: usize) -> NewEntry {
    NewEntry::new(envelope(number)).to(name("orders"))
}

pub fn worker(number: u8) -> WorkerStart {
    WorkerStart {
        worker: format!("worker-{number}").parse().unwrap(),
        incarnation: Incarnation::from_bytes([number; 16]),
        mode: DrainMode::Claim,
        lease: Duration::from_mins(5),
        pid: std::process::id(),
    }
}

pub fn claim_request(incarnation: Incarnation, number: u8, limit: usize, kind: ClaimKind) -> ClaimRequest {
    ClaimRequest {
        tenant: tenant(),
        destination: name("orders"),
        incarnation,
        token: Token::from_bytes([number; 16]),
        hold_for: Duration::from_mins(10),
        limit,
        kind,
    }
}

pub fn settle_request(settlements: Vec<Settlement>) -> SettleRequest {
    SettleRequest { tenant: tenant(), destination: name("orders"), settlements, health: None }
}

pub fn claim_ref(claimed: &Claimed) -> ClaimRef {
    let token = claimed.entry.claim.unwrap().token;
    ClaimRef { key: claimed.entry.key.clone(), fence: Fence::Claim(token) }
}

pub fn settlement(claimed: &Claimed, next: Next) -> Settlement {
    let transition =
        Transition { next, progress: claimed.entry.progress.clone(), attempt: None, observation: Observation::Nothing };
    Settlement { claim: claim_ref(claimed), transition }
}

pub fn delivered(claimed: &Claimed) -> Settlement {
    let receipt = Some(Receipt { kind: "provider".into(), id: Some("r-1".into()) });
    settlement(claimed, Next::Delivered { receipt })
}

pub fn waits(claimed: &Claimed, due: Timestamp) -> Settlement {
    settlement(claimed, Next::Wait { lane: Lane::Retry, due, status: Status::RetryableFailure })
}
