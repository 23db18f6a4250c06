//! Enqueue inside an application's own transaction.

use dlo_ports::store::*;
use dlo_sqlite::{enqueue_in, system_random};
use rusqlite::TransactionBehavior;

use dlo_ports::Clock;

use crate::support::*;

#[tokio::test]
async fn the_applications_change_and_the_entry_are_one() {
    let bench = Bench::new();
    let mut app = bench.other();
    app.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)").unwrap();
    let random = system_random();
    for commit in [false, true] {
        let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        tx.execute("INSERT INTO orders (id) VALUES (1)", []).unwrap();
        let answers = enqueue_in(&tx, &[item(1)], bench.clock.now(), &*random).unwrap();
        assert!(matches!(answers[..], [EnqueueAnswer::Created { .. }]));
        if commit {
            tx.commit().unwrap();
        } else {
            tx.rollback().unwrap();
        }
        let saved = i64::from(commit);
        assert_eq!((bench.count("orders"), bench.count("dlo_entry"), bench.total("live")), (saved, saved, saved));
    }
    assert_eq!(bench.count("dlo_enqueue_key"), 1);
}

#[tokio::test]
async fn a_refused_item_leaves_the_transaction_usable() {
    let bench = Bench::new();
    let mut app = bench.other();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let unknown = dlo_core::NewEntry::new(envelope(1)).to(name("nowhere"));
    let answers = enqueue_in(&tx, &[unknown, item(2)], bench.clock.now(), &*system_random()).unwrap();
    assert!(matches!(
        answers[..],
        [EnqueueAnswer::Refused(Refusal::UnknownDestination { .. }), EnqueueAnswer::Created { .. }]
    ));
    tx.commit().unwrap();
    assert_eq!(bench.count("dlo_entry"), 1);
}

#[tokio::test]
async fn an_error_takes_back_what_the_call_had_written() {
    let bench = Bench::new();
    let mut app = bench.other();
    app.execute_batch(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY);
         CREATE TEMP TRIGGER fails BEFORE INSERT ON dlo_entry WHEN new.seq = 2
             BEGIN SELECT RAISE(ABORT, 'made to fail'); END;",
    )
    .unwrap();
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO orders (id) VALUES (1)", []).unwrap();
    enqueue_in(&tx, &[item(1), item(2)], bench.clock.now(), &*system_random()).unwrap_err();
    tx.commit().unwrap();
    assert_eq!((bench.count("orders"), bench.count("dlo_entry"), bench.count("dlo_enqueue_key")), (1, 0, 0));
}

#[tokio::test]
async fn a_full_disk_is_told_to_the_application() {
    let bench = Bench::new();
    let mut app = bench.other();
    let pages: u32 = app.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    app.pragma_update(None, "max_page_count", pages + 4).unwrap();
    let mut huge = item(2);
    huge.envelope.payload =
        dlo_core::Payload::Bytes { bytes: vec![1; 1_000_000].into(), form: dlo_core::PayloadForm::Binary };
    let tx = app.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let error = enqueue_in(&tx, &[item(1), huge], bench.clock.now(), &*system_random()).unwrap_err();
    assert_eq!(error.kind(), dlo_ports::StoreErrorKind::DiskFull);
    drop(tx);
    assert_eq!((bench.count("dlo_entry"), bench.count("dlo_enqueue_key")), (0, 0));
}
