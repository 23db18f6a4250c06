//! The way of an entry through the store.

use std::time::Duration;

use dlo_core::{EntryState, TransitionResult};
use dlo_ports::{Clock, store::*};

use crate::support::*;

#[tokio::test]
async fn an_entry_is_saved_claimed_and_delivered() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    let ids = bench.enqueue(3).await;

    let due = bench.store.due_destinations(Scope::default(), None, 10).await.unwrap();
    assert_eq!(due.destinations.len(), 1);
    assert_eq!(due.destinations[0].next_due, bench.clock.now());

    let page = bench.claim(worker, 1, 2).await;
    assert!(page.more);
    let claimed: Vec<_> = page.claimed.iter().map(|claimed| claimed.entry.key.entry).collect();
    assert_eq!(claimed, ids[..2]);
    assert_eq!(*page.claimed[0].envelope, envelope(0));
    assert_eq!(page.claimed[0].entry.state(bench.clock.now()), EntryState::Claimed);

    let settlements: Vec<_> = page.claimed.iter().map(delivered).collect();
    assert_eq!(bench.settle(settlements.clone()).await, [TransitionResult::Applied; 2]);
    // The same settle again is the same answer, and changes nothing (I-04).
    assert_eq!(bench.settle(settlements).await, [TransitionResult::Applied; 2]);

    assert_eq!((bench.count("dlo_entry"), bench.count("dlo_history")), (1, 2));
    assert_eq!((bench.count("dlo_envelope"), bench.count("dlo_claim")), (1, 0));
    assert_eq!((bench.total("live"), bench.total("delivered"), bench.total("enqueued")), (1, 2, 3));
}

#[tokio::test]
async fn a_wait_frees_the_entry_until_it_is_due() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue(1).await;
    let page = bench.claim(worker, 1, 10).await;
    let due = bench.clock.now().after(Duration::from_mins(1));
    assert_eq!(bench.settle(vec![waits(&page.claimed[0], due)]).await, [TransitionResult::Applied]);
    assert!(bench.claim(worker, 2, 10).await.claimed.is_empty());
    bench.clock.advance(Duration::from_mins(1));
    let again = bench.claim(worker, 3, 10).await;
    assert_eq!(again.claimed.len(), 1);
    assert_eq!(again.claimed[0].entry.version, 4);
    // The token that settled before is known; another one is stale.
    assert_eq!(bench.settle(vec![waits(&page.claimed[0], due)]).await, [TransitionResult::Applied]);
    assert_eq!(bench.store.release(vec![claim_ref(&page.claimed[0])]).await.unwrap(), [TransitionResult::StaleClaim]);
}

#[tokio::test]
async fn a_stopped_workers_claims_are_lost_at_once() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue(2).await;
    let page = bench.claim(worker, 1, 10).await;
    assert!(bench.store.lost_claims(None, 10).await.unwrap().is_empty());
    bench.store.stop_worker(worker).await.unwrap();
    let lost = bench.store.lost_claims(None, 10).await.unwrap();
    let expected: Vec<_> = page.claimed.iter().map(|claimed| claimed.entry.clone()).collect();
    assert_eq!(lost, expected);
}

#[tokio::test]
async fn a_delivery_that_stands_twice_in_one_settle_is_saved_once() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue(2).await;
    let page = bench.claim(worker, 1, 10).await;
    let twice = vec![delivered(&page.claimed[0]), delivered(&page.claimed[0]), delivered(&page.claimed[1])];
    assert_eq!(bench.settle(twice).await, [TransitionResult::Applied; 3]);
    assert_eq!((bench.count("dlo_history"), bench.count("dlo_entry"), bench.count("dlo_claim")), (2, 0, 0));
    assert_eq!((bench.total("live"), bench.total("delivered")), (0, 2));
}

#[tokio::test]
async fn an_envelope_goes_with_the_last_entry_that_carries_it() {
    let bench = Bench::new();
    bench.apply(&spec("billing"));
    let worker = bench.start(1).await;
    bench.store.enqueue(vec![item(1).to(name("billing")), item(2)]).await.unwrap();
    let page = bench.claim(worker, 1, 10).await;
    bench.settle(page.claimed.iter().map(delivered).collect()).await;
    let refs: Vec<i64> = {
        let other = bench.other();
        let mut statement = other.prepare("SELECT refs FROM dlo_envelope").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(refs, [1], "the one that still goes to `billing`");

    let request = ClaimRequest { destination: name("billing"), ..claim_request(worker, 2, 10, ClaimKind::Normal) };
    let page = bench.store.claim(request).await.unwrap();
    let settlements = page.claimed.iter().map(delivered).collect();
    let request = SettleRequest { destination: name("billing"), ..settle_request(settlements) };
    assert_eq!(bench.store.settle(request).await.unwrap().results, [TransitionResult::Applied]);
    assert_eq!((bench.count("dlo_envelope"), bench.count("dlo_history")), (0, 3));
    assert!(bench.store.check(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_claim_that_another_connection_took_is_settled_all_the_same() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue(1).await;
    let page = bench.claim(worker, 1, 10).await;
    let second = dlo_sqlite::SqliteStore::open(bench.options()).unwrap();
    let answer = second.settle(settle_request(vec![delivered(&page.claimed[0])])).await.unwrap();
    assert_eq!(answer.results, [TransitionResult::Applied]);
    // The first connection remembers a row that is gone: it is told what became of it.
    assert_eq!(bench.settle(vec![delivered(&page.claimed[0])]).await, [TransitionResult::Applied]);
    assert_eq!((bench.count("dlo_history"), bench.total("delivered")), (1, 1));
}
