//! Many destinations, and destinations that can't be read: each has its turn, and none is in the way of the others.

use core::time::Duration;

use dlo_core::destination::Pace;
use dlo_engine::{Until, limits};
use dlo_ports::store::EnqueueStore;

use crate::support::{HOUR, MINUTE, Office, SECOND, delivered};

/// Rows of one destination that can't be read: the others are drained, nothing ends, and it goes on when it can be read.
#[test]
fn d10_an_unreadable_destination_stops_no_other() {
    for verb in ["destination", "claim"] {
        let office = Office::new();
        let log = office.answering("own", delivered());
        for name in ["bad", "good", "left"] {
            office.destination(name, "own", |spec| spec.policy.max_age = HOUR);
        }
        // A lost claim and an overdue entry meet it, too.
        office.hanging("hangs");
        office.destination("bad", "hangs", |spec| spec.policy.max_age = HOUR);
        office.enqueue("bad", 3);
        office.run_and_kill_after(SECOND);
        office.destination("bad", "own", |spec| spec.policy.max_age = HOUR);
        office.enqueue("bad", 3);
        office.enqueue("good", 3);
        office.store.unreadable(&[(verb, "bad")]);
        office.run_until(Until::Empty).unwrap();
        assert_eq!((log.len(), office.stats("good").delivered_total), (3, 3), "{verb}");
        office.run_for(20 * MINUTE).unwrap();
        assert!(office.store.count(verb).0 < 1_000, "{verb}: asked again and again: {:?}", office.store.count(verb));
        office.store.unreadable(&[]);
        office.run_until(Until::Empty).unwrap();
        assert_eq!(office.stats("bad").delivered_total, 6, "{verb}");
        office.check();
    }
}

/// With more destinations than lanes, those that only wait for their pace make room for the others.
#[test]
fn a_paced_destination_keeps_no_place_from_others() {
    let office = Office::new();
    office.answering("own", delivered());
    let names: Vec<String> = (0..limits::MAX_LANES + 20).map(|n| format!("d{n:05}")).collect();
    for name in &names {
        office.destination(name, "own", |spec| spec.pace = Some(Pace { per_minute: 1, burst: 1 }));
        office.enqueue(name, 2);
    }
    office.run_for(20 * SECOND).unwrap();
    let stats = office.world.run(dlo_ports::store::ReadStore::stats(&*office.model)).unwrap();
    let starved = stats.destinations.iter().filter(|of| of.delivered_total == 0).count();
    assert_eq!(starved, 0, "destinations had no turn");
}

/// Looks that take long are spaced by what they take, however many commits wake them.
#[test]
fn a_storm_of_commits_does_not_keep_the_store_looking() {
    let office = Office::new();
    let log = office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    office.store.latency("due_destinations", 100 * Duration::from_millis(1));
    let (engine, world, model) = (office.engine(), office.world.clone(), office.model.clone());
    let items: Vec<_> = (0..1_000).map(|_| office.item("one", |_| {})).collect();
    office.world.run(async {
        let storm = async {
            for item in items {
                world.sleep(Duration::from_millis(10)).await;
                model.enqueue(vec![item]).await.unwrap();
            }
        };
        futures_util::future::join(engine.run(world.sleep(11 * SECOND)), storm).await.0.unwrap();
    });
    assert_eq!(log.len(), 1_000);
    let looks = office.store.count("due_destinations").0;
    assert!(looks <= 11_000 / 400 + 4, "{looks} looks of 100 ms in 11 s");
}
