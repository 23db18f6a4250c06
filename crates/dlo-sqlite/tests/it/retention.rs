//! What the store drops by itself beyond what every store must: rows of workers.

use std::time::Duration;

use dlo_core::Incarnation;
use dlo_ports::store::{DrainStore, PruneRequest, WorkerStart};

use crate::support::*;

const HOUR: Duration = Duration::from_hours(1);

fn prune(history: Duration) -> PruneRequest {
    PruneRequest { history, enqueue_keys: history, limit: 100 }
}

#[tokio::test]
async fn ended_workers_go_with_the_history_but_for_the_newest_and_those_with_claims() {
    let bench = Bench::new();
    bench.enqueue(1).await;
    for number in 0..105_u8 {
        let start = WorkerStart { incarnation: Incarnation::from_bytes([number; 16]), ..worker(number) };
        let incarnation = start.incarnation;
        bench.store.start_worker(start).await.unwrap();
        if number == 0 {
            assert_eq!(bench.claim(incarnation, 1, 10).await.claimed.len(), 1);
        }
    }
    assert_eq!(bench.count("dlo_worker"), 105);
    bench.store.prune(prune(HOUR)).await.unwrap();
    assert_eq!(bench.count("dlo_worker"), 105, "they ended just now");
    bench.clock.advance(HOUR * 2);
    bench.store.prune(prune(HOUR)).await.unwrap();
    assert_eq!(bench.count("dlo_worker"), 101, "the newest hundred, and the one whose claim is not recovered");
    let lost = bench.store.lost_claims(None, 10).await.unwrap();
    assert_eq!(lost.len(), 1);
    bench.store.heartbeat(Incarnation::from_bytes([104; 16]), HOUR).await.unwrap();
}
