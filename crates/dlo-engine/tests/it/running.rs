//! A running engine: wake-up, handle, unreadable rows, history, figures.

use core::time::Duration;

use dlo_core::{EntryKey, EntryState, reason};
use dlo_engine::{Ended, Metrics, Phase, Until, metrics::FAMILIES, render_openmetrics};
use dlo_ports::store::{EnqueueStore, ReadStore};

use crate::support::{HOUR, MINUTE, Office, SECOND, delivered, http, tenant};

/// An enqueue wakes the engine: nothing waits for the idle poll.
#[test]
fn an_enqueue_wakes_the_engine() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    let log = office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    let engine = office.engine();
    let item = office.item("one", |_| {});
    let (world, model) = (office.world.clone(), office.model.clone());
    office.world.run(async {
        let enqueue = async {
            world.sleep(10 * SECOND).await;
            let enqueued = world.time();
            model.enqueue(vec![item]).await.unwrap();
            enqueued
        };
        let (ended, enqueued) = futures_util::future::join(engine.run(world.sleep(30 * SECOND)), enqueue).await;
        ended.unwrap();
        assert!(log.seen()[0].at.since(enqueued) <= Duration::from_millis(5));
    });
}

/// A retry that is due before the next idle poll is not late.
#[test]
fn a_short_wait_is_not_rounded_up_to_the_idle_poll() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    office.store.mute.store(true, core::sync::atomic::Ordering::Relaxed);
    let log = office.answering("own", http(503));
    office.destination("one", "own", |spec| {
        spec.policy.schedule = vec![SECOND];
        spec.policy.retry_delay = SECOND;
        spec.policy.jitter = dlo_core::policy::Jitter::None;
    });
    office.enqueue("one", 1);
    office.run_for(Duration::from_millis(2_500)).unwrap();
    assert_eq!(log.len(), 3);
}

#[test]
fn a_handle_shows_and_stops_the_engine() {
    let office = Office::new();
    office.hanging("hangs");
    office.destination("one", "hangs", |_| {});
    office.enqueue("one", 30);
    let engine = office.engine();
    let handle = engine.handle();
    let world = office.world.clone();
    let ended = office.world.run(async {
        let look = async {
            world.sleep(SECOND).await;
            let status = handle.status();
            assert_eq!((status.phase, status.store_trouble), (Phase::Running, None));
            let lane = &status.lanes[0];
            assert_eq!((lane.queued, lane.in_flight, lane.unsaved), (14, 16, 0));
            assert!(status.to_string().contains("default/one: 14 queued, 16 in flight, 0 to save"), "{status}");
            handle.stop();
        };
        futures_util::future::join(engine.run(core::future::pending()), look).await.0
    });
    assert_eq!(ended.unwrap(), Ended::Stopped);
    assert_eq!(handle.status().phase, Phase::Ended);
    assert_eq!(office.stats("one").depth.ready, 30);
}

/// A row that can't be read is quarantined by itself and stalls nobody.
#[test]
fn d10_an_unreadable_row_stalls_nobody() {
    let office = Office::new();
    office.destination("one", "noop", |_| {});
    let entries = office.enqueue("one", 20);
    let key = EntryKey { tenant: tenant(), entry: entries[3], generation: 0 };
    assert!(office.model.make_unreadable(&key));
    office.run_until(Until::Empty).unwrap();
    assert_eq!(office.stats("one").delivered_total, 19);
    let [dead] = office.dead_letters().try_into().unwrap();
    assert_eq!((dead.key, dead.code), (key, reason::ENTRY_UNREADABLE));
}

/// History goes after its time.
#[test]
fn history_is_pruned_after_its_time() {
    let mut office = Office::new();
    office.options.history = HOUR;
    office.options.enqueue_key_window = HOUR;
    office.options.idle_poll = MINUTE;
    office.destination("one", "noop", |_| {});
    let entries = office.enqueue("one", 10);
    office.run_until(Until::Empty).unwrap();
    assert_eq!(office.entry(entries[0]).summary.state, EntryState::Delivered);
    office.run_for(2 * HOUR).unwrap();
    let gone = office.world.run(office.model.entry(tenant(), entries[0])).unwrap();
    assert_eq!(gone, None);
    assert_eq!(office.stats("one").delivered_total, 10, "totals stay");
}

/// Every sample belongs to a family that was announced, and the text ends as OpenMetrics wants.
#[test]
fn metrics_are_open_metrics_text() {
    let office = Office::new();
    office.answering("bad", http(400));
    office.destination("one", "bad", |_| {});
    office.destination("two", "noop", |_| {});
    office.enqueue("one", 3);
    office.enqueue("two", 7);
    let engine = office.engine();
    let handle = engine.handle();
    office.world.run(engine.run_until(Until::Empty, core::future::pending())).unwrap();
    let stats = office.world.run(office.model.stats()).unwrap();
    let text = render_openmetrics(&stats, handle.metrics());
    for line in [
        "dlo_emissions_total{tenant=\"default\",destination=\"two\",outcome=\"delivered\"} 7",
        "dlo_emissions_total{tenant=\"default\",destination=\"one\",outcome=\"failed\"} 3",
        "dead_letters_total{tenant=\"default\",destination=\"one\",class=\"deterministic\",reason=\"http.bad_request\"} 3",
        "dlo_delivered_total{tenant=\"default\",destination=\"two\"} 7",
        "dlo_delivered_total{tenant=\"default\",destination=\"one\"} 0",
        "dlo_settled_total{tenant=\"default\",destination=\"one\"} 3",
        "dlo_emissions_in_flight{tenant=\"default\",destination=\"one\"} 0",
        "dlo_emission_duration_seconds_bucket{tenant=\"default\",destination=\"two\",le=\"+Inf\"} 1",
        "# UNIT dlo_emission_duration_seconds seconds",
    ] {
        assert!(text.lines().any(|seen| seen == line), "missing: {line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    for family in FAMILIES {
        assert_eq!(text.matches(&format!("# TYPE {} ", family.name)).count(), 1, "{}", family.name);
        assert!(family.unit.is_none_or(|unit| family.name.ends_with(unit)));
    }
    let empty = render_openmetrics(&stats, &Metrics::default());
    assert!(empty.contains("dead_letters_total{") && empty.ends_with("# EOF\n"));
}
