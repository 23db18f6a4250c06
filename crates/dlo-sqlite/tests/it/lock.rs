//! The engine lock: one engine per file.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use dlo_ports::{StoreErrorKind, store::*};
use dlo_sqlite::SqliteStore;

use crate::support::*;

const CHILD: &str = "DLO_TEST_ENGINE_ON";

#[tokio::test]
async fn two_stores_of_one_process_admit_one_engine() {
    let bench = Bench::new();
    let second = SqliteStore::open(bench.options()).unwrap();
    let first = bench.start(1).await;
    let error = second.start_worker(worker(2)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");

    bench.store.stop_worker(first).await.unwrap();
    second.start_worker(worker(2)).await.unwrap();
}

#[tokio::test]
async fn a_start_again_on_the_same_store_ends_the_earlier_one() {
    let bench = Bench::new();
    let first = bench.start(1).await;
    bench.enqueue(1).await;
    bench.claim(first, 1, 1).await;
    bench.start(2).await;
    assert_eq!(bench.store.lost_claims(None, 10).await.unwrap().len(), 1);
    let error = bench.store.heartbeat(first, std::time::Duration::from_mins(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    // The end of the earlier one does not let go of the lock of the later one.
    bench.store.stop_worker(first).await.unwrap();
    let second = SqliteStore::open(bench.options()).unwrap();
    assert_eq!(second.start_worker(worker(3)).await.unwrap_err().kind(), StoreErrorKind::Fenced);
}

#[tokio::test]
async fn a_start_that_fails_lets_go_of_the_lock() {
    let bench = Bench::new();
    let first = bench.start(1).await;
    bench.store.stop_worker(first).await.unwrap();
    // An incarnation that has ended never starts again.
    assert_eq!(bench.store.start_worker(worker(1)).await.unwrap_err().kind(), StoreErrorKind::Fenced);
    let second = SqliteStore::open(bench.options()).unwrap();
    second.start_worker(worker(2)).await.unwrap();
}

/// Not a test by itself: the engine of the other process in the test below.
#[tokio::test]
async fn child_engine() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let bench = Bench::new();
    let mut options = bench.options();
    options.path = path.into();
    let store = SqliteStore::open(options).unwrap();
    store.start_worker(worker(9)).await.unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "the engine is up").unwrap();
    out.flush().unwrap();
    // Until it is killed.
    std::thread::park();
}

#[tokio::test]
async fn another_process_is_named_and_its_death_frees_the_lock() {
    let bench = Bench::new();
    bench.enqueue(1).await;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::child_engine", "--nocapture"])
        .env(CHILD, bench.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("the engine is up")), "the other engine runs");

    let error = bench.store.start_worker(worker(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");

    child.kill().unwrap();
    child.wait().unwrap();
    bench.start(1).await;
}
