//! Other processes on the same file: a busy host, and what they write.

use std::sync::Arc;
use std::time::Duration;

use dlo_ports::{StoreErrorKind, store::*};
use tokio::sync::Notify;

use crate::support::*;

#[tokio::test]
async fn a_verb_waits_for_a_busy_host() {
    let bench = Bench::new();
    let other = bench.other();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let saving = bench.store.enqueue(vec![item(1)]);
    tokio::pin!(saving);
    // The verb is queued and can't be done while the other process holds the file.
    tokio::select! {
        biased;
        answer = &mut saving => panic!("{answer:?}"),
        () = std::future::ready(()) => {}
    }
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(saving.await.unwrap()[..], [EnqueueAnswer::Created { .. }]));
}

#[tokio::test]
async fn a_host_that_never_ends_is_named_after_the_bound() {
    let bench = Bench::with(|options| options.busy_timeout = Duration::ZERO);
    let other = bench.other();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = bench.store.enqueue(vec![item(1)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    assert!(error.is_passing() && error.to_string().contains("dlo.db"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    bench.store.enqueue(vec![item(1)]).await.unwrap();
}

#[tokio::test]
async fn an_engine_is_woken_by_what_another_process_saves() {
    let bench = Bench::new();
    bench.start(1).await;
    let woken = Arc::new(Notify::new());
    let hook = woken.clone();
    bench.store.on_change(Arc::new(move || hook.notify_one()));
    // Whatever was noticed of the start itself is taken first.
    bench.enqueue(1).await;
    woken.notified().await;

    let (other, notified) = (bench.other(), woken.notified());
    other.execute("UPDATE dlo_entry SET due = due - 1", []).unwrap();
    tokio::time::timeout(Duration::from_secs(30), notified).await.expect("woken by the other process");
}

#[tokio::test]
async fn a_destination_that_another_process_changes_is_seen_at_once() {
    let bench = Bench::new();
    bench.enqueue(1).await;
    let mut changed = spec("orders");
    changed.policy.backlog_limit = 1;
    bench.apply(&changed);
    let answers = bench.store.enqueue(vec![item(7)]).await.unwrap();
    assert!(matches!(answers[..], [EnqueueAnswer::Refused(Refusal::BacklogFull { seen: 1, limit: 1, .. })]));
}
