//! Group commit: verbs that are queued together.

use std::sync::Arc;

use dlo_ports::{StoreErrorKind, store::*};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn verbs_of_many_callers_are_all_answered_after_their_commit() {
    let bench = Arc::new(Bench::new());
    let tasks: Vec<_> = (0..50)
        .map(|task| {
            let bench = bench.clone();
            tokio::spawn(async move {
                for number in 0..4 {
                    let answers = bench.store.enqueue(vec![item(task * 100 + number)]).await.unwrap();
                    let [EnqueueAnswer::Created { entries, .. }] = &answers[..] else { panic!("{answers:?}") };
                    // Answered means committed: another connection sees it.
                    let seen: bool = bench
                        .other()
                        .query_row(
                            "SELECT EXISTS (SELECT 1 FROM dlo_entry WHERE entry = ?1)",
                            [entries[0].0.as_bytes()],
                            |row| row.get(0),
                        )
                        .unwrap();
                    assert!(seen);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((bench.count("dlo_entry"), bench.total("live")), (200, 200));
}

#[tokio::test]
async fn a_verb_that_is_refused_spoils_no_other() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    let dead = dlo_core::Incarnation::from_bytes([77; 16]);
    let (first, fenced, invalid, last) = tokio::join!(
        bench.store.enqueue(vec![item(1)]),
        bench.store.claim(claim_request(dead, 9, 10, ClaimKind::Normal)),
        bench.store.claim(claim_request(worker, 8, 100_000, ClaimKind::Normal)),
        bench.store.enqueue(vec![item(2)]),
    );
    assert_eq!(fenced.unwrap_err().kind(), StoreErrorKind::Fenced);
    assert_eq!(invalid.unwrap_err().kind(), StoreErrorKind::Invalid);
    assert!(matches!(first.unwrap()[..], [EnqueueAnswer::Created { .. }]));
    assert!(matches!(last.unwrap()[..], [EnqueueAnswer::Created { .. }]));
    assert_eq!(bench.count("dlo_entry"), 2);
}

#[tokio::test]
async fn a_verb_that_fails_midway_is_rolled_back_alone() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue_numbers(0..4).await;
    bench.claim(worker, 1, 1).await;
    // The same token again: the claim fails when its page is saved, after rows were changed.
    let (before, again, after) = tokio::join!(
        bench.store.enqueue(vec![item(10)]),
        bench.store.claim(claim_request(worker, 1, 2, ClaimKind::Normal)),
        bench.store.enqueue(vec![item(11)]),
    );
    assert!(again.is_err());
    assert!(before.is_ok() && after.is_ok());
    let claimed: i64 = bench
        .other()
        .query_row("SELECT count(*) FROM dlo_entry WHERE claim_token IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!((bench.count("dlo_entry"), claimed), (6, 1));
    assert!(bench.store.check(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_caller_that_goes_away_loses_nothing() {
    let bench = Bench::new();
    {
        let saving = bench.store.enqueue(vec![item(1)]);
        // Polled once, so that it is queued, and then dropped.
        tokio::select! {
            biased;
            answer = saving => drop(answer),
            () = std::future::ready(()) => {}
        }
    }
    bench.enqueue_numbers(2..3).await;
    assert_eq!(bench.count("dlo_entry"), 2);
}
