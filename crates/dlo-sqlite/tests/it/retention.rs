//! What the store drops by itself beyond what every store must: rows of workers.

use std::time::Duration;

use dlo_core::Incarnation;
use dlo_ports::{
    Clock,
    store::{DrainStore, PruneRequest, WorkerStart},
};

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

/// Rows as the store saves them, with stamps of a clock at `saved`: history (sequence `from` on) and enqueue keys.
fn insert(bench: &Bench, from: i64, count: i64, saved: i64) {
    let conn = bench.other();
    conn.execute(
        "WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1 + ?2 - 1)
         INSERT INTO dlo_history (ended_seq, tenant, entry, generation, seq, destination, state, operation_key, created,
             ended, envelope, event_type, payload_size, attempts, claims, failed, crashed, deferred, interrupted)
         SELECT n, 'default', CAST(printf('%016d', n) AS BLOB), 1, n, 'orders', 'delivered', 'key', ?3,
             ?3, CAST(printf('%016d', n) AS BLOB), 'order.placed', 0, 0, 1, 0, 0, 0, 0 FROM n",
        [from, count, saved],
    )
    .unwrap();
    conn.execute(
        "INSERT INTO dlo_enqueue_key (id, tenant, producer, key, envelope, content_hash, first_seen)
         SELECT ended_seq, tenant, 'producer', ended_seq, envelope, envelope, ended FROM dlo_history WHERE ended_seq >= ?1",
        [from],
    )
    .unwrap();
}

/// More rows than one look sees were saved by a clock that was a year ahead, and then it was put right.
#[tokio::test]
async fn rows_from_a_clock_that_was_ahead_keep_nothing_behind_them() {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    let bench = Bench::new();
    let now = bench.clock.now();
    insert(&bench, 1, 7_000, now.after(YEAR).as_micros());
    insert(&bench, 7_001, 250, now.as_micros());
    bench.clock.advance(HOUR * 2);
    insert(&bench, 7_251, 10, bench.clock.now().as_micros());
    let (mut gone, mut turns) = ((0, 0), 0);
    loop {
        let pruned = bench.store.prune(prune(HOUR)).await.unwrap();
        gone = (gone.0 + pruned.history, gone.1 + pruned.enqueue_keys);
        turns += 1;
        if !pruned.more {
            break;
        }
    }
    assert_eq!(gone, (250, 250), "what is behind them goes; they stay, and so does what is young");
    assert!(turns <= 10, "each look goes on where the last one ended: {turns} turns");
    insert(&bench, 7_261, 5, now.as_micros());
    let pruned = bench.store.prune(prune(HOUR)).await.unwrap();
    assert_eq!((pruned.history, pruned.more), (5, false), "where it ended is not looked through again");
    bench.clock.advance(YEAR + HOUR * 2);
    let mut left = 7_010;
    while bench.store.prune(prune(HOUR)).await.unwrap().more {
        left -= 100;
        assert_eq!((bench.count("dlo_history"), bench.count("dlo_enqueue_key")), (left, left));
    }
    assert_eq!((bench.count("dlo_history"), bench.count("dlo_enqueue_key")), (0, 0));
}
