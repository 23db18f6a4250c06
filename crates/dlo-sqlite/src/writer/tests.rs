//! Groups that fail: who is tried again, and who is not.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;
use std::sync::mpsc;

use dlo_core::Timestamp;

use super::*;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1)
    }
}

/// What became of the jobs, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// Called when a job is refused.
type Refused = Box<dyn FnMut() + Send>;

/// A job that fails with a kind, or inserts its number.
struct Probe {
    number: u32,
    fails: Option<StoreErrorKind>,
    log: Log,
    refused: Refused,
}

impl Job for Probe {
    fn weight(&self) -> Weight {
        Weight::default()
    }

    fn run(&mut self, turn: &mut Turn<'_>) -> Result<(), StoreError> {
        self.log.lock().unwrap().push(format!("run {}", self.number));
        match self.fails {
            Some(kind) => Err(StoreError::new(kind, "broken on purpose")),
            None => turn.tx.execute("INSERT INTO t VALUES (?1)", [self.number]).map(drop).doing("insert"),
        }
    }

    fn makes_ready(&self) -> bool {
        false
    }

    fn answer(self: Box<Self>) {
        self.log.lock().unwrap().push(format!("answer {}", self.number));
    }

    fn fail(mut self: Box<Self>, error: StoreError) {
        self.log.lock().unwrap().push(format!("fail {} {}", self.number, error.code()));
        (self.refused)();
    }
}

struct Bench {
    folder: tempfile::TempDir,
    writer: Writer,
    log: Log,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let conn = Connection::open(folder.path().join("t.db")).unwrap();
        conn.pragma_update(None, "journal_mode", "WAL").unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER)").unwrap();
        let writer = Writer {
            conn,
            clock: Arc::new(Still),
            random: Arc::new(|bytes: &mut [u8]| bytes.fill(0)),
            place: "t.db".to_owned(),
            busy_timeout: Duration::ZERO,
            shared: Arc::new(Shared {
                has_engine: AtomicBool::new(false),
                hooks: Mutex::default(),
                closing: AtomicBool::new(false),
            }),
            jobs: mpsc::channel().1,
            caches: Caches::default(),
            manners: Manners::default(),
            tidy: Tidy::default(),
            poisoned: None,
        };
        Self { folder, writer, log: Log::default() }
    }

    fn other(&self) -> Connection {
        Connection::open(self.folder.path().join("t.db")).unwrap()
    }

    fn job(&self, number: u32, fails: Option<StoreErrorKind>) -> Box<dyn Job> {
        self.job_refusing(number, fails, Box::new(|| {}))
    }

    fn job_refusing(&self, number: u32, fails: Option<StoreErrorKind>, refused: Refused) -> Box<dyn Job> {
        Box::new(Probe { number, fails, log: self.log.clone(), refused })
    }

    fn log(&self) -> Vec<String> {
        core::mem::take(&mut self.log.lock().unwrap())
    }

    fn rows(&self) -> Vec<u32> {
        let conn = self.other();
        let mut statement = conn.prepare("SELECT n FROM t ORDER BY n").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

#[test]
fn a_group_that_can_not_begin_is_refused_as_one() {
    let mut bench = Bench::new();
    let other = bench.other();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The lock is free again once the first is refused: whoever tried the others again would save them.
    let first = bench.job_refusing(1, None, Box::new(move || other.execute_batch("ROLLBACK").unwrap()));
    let group = vec![first, bench.job(2, None), bench.job(3, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["fail 1 store.busy", "fail 2 store.busy", "fail 3 store.busy"]);
    assert!(bench.rows().is_empty());
    let group = vec![bench.job(4, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["run 4", "answer 4"], "a busy file is no reason to stop");
}

#[test]
fn an_io_failure_in_a_group_poisons_the_store_and_nothing_is_run_again() {
    let mut bench = Bench::new();
    let group = vec![bench.job(1, None), bench.job(2, Some(StoreErrorKind::Io)), bench.job(3, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["run 1", "run 2", "fail 1 store.io", "fail 2 store.io", "fail 3 store.io"]);
    assert!(bench.rows().is_empty());
    let group = vec![bench.job(4, None), bench.job(5, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["fail 4 store.io", "fail 5 store.io"]);
    assert!(bench.rows().is_empty());
}

#[test]
fn a_verb_alone_that_meets_an_io_failure_poisons_too() {
    let mut bench = Bench::new();
    let group = vec![bench.job(1, Some(StoreErrorKind::Io))];
    bench.writer.commit(group);
    let group = vec![bench.job(2, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["run 1", "answer 1", "fail 2 store.io"]);
}

#[test]
fn an_io_failure_of_one_that_runs_again_stops_those_behind_it() {
    let mut bench = Bench::new();
    // The first full disk breaks the group up; the second job then finds the file system broken.
    let group =
        vec![bench.job(1, Some(StoreErrorKind::DiskFull)), bench.job(2, Some(StoreErrorKind::Io)), bench.job(3, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["run 1", "run 1", "answer 1", "run 2", "answer 2", "fail 3 store.io"]);
    assert!(bench.rows().is_empty());
}

#[test]
fn a_verb_that_spoils_its_group_fails_alone() {
    let mut bench = Bench::new();
    let group = vec![bench.job(1, None), bench.job(2, Some(StoreErrorKind::DiskFull)), bench.job(3, None)];
    bench.writer.commit(group);
    assert_eq!(bench.log(), ["run 1", "run 2", "run 1", "answer 1", "run 2", "answer 2", "run 3", "answer 3"]);
    assert_eq!(bench.rows(), [1, 3]);
}
