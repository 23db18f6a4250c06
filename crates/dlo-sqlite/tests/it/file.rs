//! The file: how it is opened, how large it gets, what happens when it can't grow.

use std::time::Duration;

use dlo_core::{Payload, PayloadForm, TransitionResult};
use dlo_ports::{StoreErrorKind, store::*};
use dlo_sqlite::{Attach, SqliteStore};
use rusqlite::Connection;

use crate::support::*;

fn large(number: usize) -> dlo_core::NewEntry {
    let mut item = item(number);
    item.envelope.payload = Payload::Bytes { bytes: vec![b'x'; 8_000].into(), form: PayloadForm::Binary };
    item
}

#[test]
fn a_file_that_is_not_there_is_not_made_unasked() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.path = bench.folder.path().join("missing.db");
    options.create = false;
    let error = SqliteStore::open(options.clone()).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("missing.db") && error.to_string().contains("dlo init"), "{error}");
    assert!(!options.path.exists());
}

#[test]
fn a_file_that_is_no_database_is_told_apart() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.path = bench.folder.path().join("notes.db");
    std::fs::write(&options.path, "these are notes and no database".repeat(100)).unwrap();
    let error = SqliteStore::open(options).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

#[test]
fn an_applications_file_keeps_its_settings() {
    let bench = Bench::new();
    let mut options = bench.options();
    options.path = bench.folder.path().join("app.db");
    let app = Connection::open(&options.path).unwrap();
    app.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)").unwrap();
    options.attach = Attach::Application;
    let error = SqliteStore::open(options.clone()).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("PRAGMA journal_mode=WAL"), "{error}");
    let mode: String = app.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");

    options.attach = Attach::ApplicationSetWal;
    drop(SqliteStore::open(options.clone()).unwrap());
    options.attach = Attach::Application;
    drop(SqliteStore::open(options).unwrap());
    let vacuum: i64 = app.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
    assert_eq!(vacuum, 0);
}

#[test]
fn our_own_file_is_set_up_to_give_pages_back() {
    let bench = Bench::new();
    let vacuum: i64 = bench.other().pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
    assert_eq!(vacuum, 2);
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_passing() {
    let bench = Bench::with(|options| options.max_page_count = Some(200));
    let worker = bench.start(1).await;
    let mut saved = 0;
    let error = loop {
        match bench.store.enqueue((saved..saved + 10).map(large).collect()).await {
            Ok(answers) => saved += answers.len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), StoreErrorKind::DiskFull);
    assert!(error.to_string().contains("dlo.db") && error.to_string().contains("free space"), "{error}");
    assert!(saved > 0);
    assert_eq!(bench.count("dlo_entry"), saved as i64);
    assert_eq!(bench.total("live"), saved as i64);

    // What is there can still be delivered, and that makes room.
    let page = bench.claim(worker, 1, 20).await;
    let results = bench.settle(page.claimed.iter().map(delivered).collect()).await;
    assert!(results.iter().all(|result| *result == TransitionResult::Applied));
    bench.store.enqueue((saved..saved + 10).map(large).collect()).await.unwrap();
    assert!(bench.store.check(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_verb_that_does_not_fit_spoils_no_other_of_its_group() {
    let bench = Bench::with(|options| options.max_page_count = Some(200));
    let large = bench.store.enqueue((0..1_000).map(large).collect());
    let small = bench.store.enqueue(vec![item(5_000)]);
    let (large, small) = tokio::join!(large, small);
    assert_eq!(large.unwrap_err().kind(), StoreErrorKind::DiskFull);
    assert!(matches!(small.unwrap()[..], [EnqueueAnswer::Created { .. }]));
    assert_eq!(bench.count("dlo_entry"), 1);
}

#[tokio::test]
async fn the_write_ahead_log_stays_bounded() {
    let bench = Bench::new();
    for batch in 0..240 {
        bench.store.enqueue((batch * 100..batch * 100 + 100).map(large).collect()).await.unwrap();
    }
    let log = std::fs::metadata(bench.folder.path().join("dlo.db-wal")).unwrap().len();
    let file = std::fs::metadata(bench.path()).unwrap().len();
    assert!(file > 20 * 1_024 * 1_024, "checkpoints moved the pages into the file: {file}");
    // 32 MiB, what may come on top before the writer waits for the mover, and the group that crosses the mark.
    assert!(log < 56 * 1_024 * 1_024, "{log}");
}

/// Whoever copies the file of a store that was closed has everything.
#[tokio::test]
async fn a_closed_store_leaves_one_file() {
    for round in 0..30 {
        let bench = Bench::new();
        bench.store.enqueue((0..20).map(large).collect()).await.unwrap();
        bench.store.stats().await.unwrap();
        let Bench { store, folder, .. } = bench;
        drop(store);
        let log = std::fs::metadata(folder.path().join("dlo.db-wal")).map_or(0, |log| log.len());
        assert_eq!(log, 0, "round {round}");
    }
}

#[tokio::test]
async fn retention_bounds_the_file() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    let window = PruneRequest { history: Duration::from_mins(1), enqueue_keys: Duration::from_mins(1), limit: 1_000 };
    let mut sizes = Vec::new();
    for round in 0..6_u8 {
        let first = usize::from(round) * 200;
        bench.store.enqueue((first..first + 200).map(large).collect()).await.unwrap();
        let page = bench.claim(worker, round, 200).await;
        bench.settle(page.claimed.iter().map(delivered).collect()).await;
        bench.clock.advance(Duration::from_secs(61));
        bench.store.heartbeat(worker, Duration::from_mins(5)).await.unwrap();
        let pruned = bench.store.prune(window).await.unwrap();
        assert_eq!((pruned.history, pruned.enqueue_keys), (200, 200));
        sizes.push(bench.other().pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0)).unwrap());
    }
    assert_eq!((bench.count("dlo_history"), bench.count("dlo_enqueue_key"), bench.count("dlo_envelope")), (0, 0, 0));
    assert!(sizes[5] <= sizes[1] + 8, "pages are used again: {sizes:?}");
}
