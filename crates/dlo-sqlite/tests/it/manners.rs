//! Tidying the file keeps no other process from it.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::support::*;

/// Size of the write-ahead log.
fn log_size(bench: &Bench) -> u64 {
    let mut name = bench.path().into_os_string();
    name.push("-wal");
    std::fs::metadata(name).unwrap().len()
}

/// Waits for something that another thread does, without a promise about when.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn an_idle_store_empties_its_log() {
    let bench = Bench::new();
    bench.enqueue(50).await;
    assert!(log_size(&bench) > 0);
    wait_until("the log is cut when nothing is written", || log_size(&bench) == 0);
}

#[tokio::test]
async fn a_reader_in_the_file_does_not_make_tidying_hold_the_write_lock() {
    let bench = Bench::new();
    bench.enqueue(50).await;
    let reader = bench.other();
    let tx = reader.unchecked_transaction().unwrap();
    let seen: i64 = tx.query_row("SELECT count(*) FROM dlo_entry", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 50);
    bench.enqueue_numbers(50..60).await;
    // A host that never waits: every busy answer would surface here, whoever holds the lock.
    let host = Connection::open(bench.path()).unwrap();
    host.busy_timeout(Duration::ZERO).unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        // The lock alone, without a commit: a commit would keep tidying away.
        host.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }
    drop(tx);
    wait_until("the log is cut once the reader has gone", || log_size(&bench) == 0);
}
