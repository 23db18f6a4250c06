//! What a running engine says: one event for each thing that happens, and never content (I-13).

use core::fmt::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dlo_core::{Duplicates, Payload, PayloadForm};
use dlo_engine::Until;
use dlo_ports::{StoreErrorKind, store::HoldAct};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::faulty::Fault;
use crate::support::{HOUR, MINUTE, Office, SECOND, delivered, http};

/// Lines of everything that was logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("dlo_engine") && *metadata.level() <= Level::DEBUG
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Lines {
    fn during(work: impl FnOnce()) -> Self {
        let lines = Self::default();
        tracing::subscriber::with_default(lines.clone(), work);
        lines
    }

    fn count(&self, parts: &[&str]) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }
}

impl core::fmt::Debug for Lines {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.lock().unwrap().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// An entry that fails until it is dead-lettered: each failure once, the alert before the last one, the dead letter.
#[test]
fn p10_an_alert_comes_before_the_dead_letter() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    office.answering("down", http(503));
    office.destination("one", "down", |spec| {
        spec.policy.max_retry_attempts = 3;
        spec.policy.breaker.failures = 1_000;
    });
    office.enqueue_with("one", 1, |item| item.envelope.correlation_id = Some("order-17".to_owned()));
    let lines = Lines::during(|| {
        office.run_for(HOUR).unwrap();
    });
    let at_one = "destination=one";
    assert_eq!(
        lines.count(&["INFO", "emission failed", at_one, "class=\"transient\"", "http.unavailable"]),
        2,
        "{lines:?}"
    );
    assert_eq!(lines.count(&["WARN", "next failure of this entry will dead-letter it", "attempt=2"]), 1, "{lines:?}");
    assert_eq!(
        lines.count(&["WARN", "dead letter opened", at_one, "outbox.max_retry_attempts_exceeded"]),
        1,
        "{lines:?}"
    );
    assert_eq!(lines.count(&["WARN", "correlation_id=\"order-17\""]), 2, "both alerts lead to the traces: {lines:?}");
    assert_eq!((lines.count(&["engine started"]), lines.count(&["engine stopped"])), (1, 1));
}

/// The store's trouble is told once when it begins and once when it ends, although reads work all the time.
#[test]
fn d06_trouble_is_told_once_per_change_of_state() {
    let office = Office::new();
    office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    office.enqueue("one", 3);
    office.store.faults("settle", [Fault::Fail(StoreErrorKind::DiskFull); 6]);
    let lines = Lines::during(|| {
        office.run_for(MINUTE).unwrap();
    });
    assert_eq!(lines.count(&["ERROR", "store fails", "store.disk_full", "settle"]), 1, "{lines:?}");
    assert_eq!(lines.count(&["store works again"]), 1, "{lines:?}");
}

/// A destination that can't be read is told once, and once more when it can be.
#[test]
fn an_unreadable_destination_is_told_once() {
    let office = Office::new();
    office.answering("own", delivered());
    office.destination("one", "own", |_| {});
    office.enqueue("one", 3);
    let lines = Lines::during(|| {
        office.store.unreadable(&[("claim", "one")]);
        let (engine, world) = (office.engine(), office.world.clone());
        office.world.run(async {
            let healed = async {
                world.sleep(5 * MINUTE).await;
                office.store.unreadable(&[]);
            };
            futures_util::future::join(engine.run(world.sleep(6 * MINUTE)), healed).await.0.unwrap();
        });
    });
    assert_eq!(lines.count(&["ERROR", "can't be read", "destination=one", "store.corrupt"]), 1, "{lines:?}");
    assert_eq!(lines.count(&["INFO", "can be read again", "destination=one"]), 1, "{lines:?}");
    assert_eq!(office.stats("one").delivered_total, 3);
}

/// Holds are told when they open and end; overdue entries have one line for their destination.
#[test]
fn holds_and_overdue_entries_are_told_once() {
    let office = Office::new();
    office.answering("own", http(401));
    office.destination("one", "own", |_| {});
    office.enqueue("one", 20);
    office.destination("old", "noop", |spec| spec.policy.max_age = MINUTE);
    office.enqueue("old", 7);
    office.act("old", HoldAct::Hold { reason: "maintenance".into() });
    let lines = Lines::during(|| {
        office.run_for(2 * MINUTE).unwrap();
        office.answering("own", delivered());
        office.run_for(6 * MINUTE).unwrap();
    });
    assert_eq!(lines.count(&["WARN", "destination held", "destination=one", "http.unauthorized"]), 1, "{lines:?}");
    assert!(lines.count(&["probe failed", "destination=one"]) >= 1, "{lines:?}");
    assert_eq!(lines.count(&["hold ended", "destination=one"]), 1, "{lines:?}");
    assert_eq!(lines.count(&["WARN", "past their age or deadline", "destination=old", "count=7"]), 1, "{lines:?}");
    assert_eq!(lines.count(&["dead letter opened"]), 0, "{lines:?}");
}

/// No byte of a payload reaches a log or a metric, whatever goes wrong.
#[test]
fn i13_no_payload_byte_in_logs_or_metrics() {
    let office = Office::new();
    let secret = "s3cr3t-in-payload";
    for (name, status) in [("a", 400), ("b", 401), ("c", 503), ("d", 200)] {
        office.answering(name, if status == 200 { delivered() } else { http(status) });
        office.destination(name, name, |spec| spec.duplicates = Duplicates::Harmful);
        office.enqueue_with(name, 3, |item| {
            let bytes = Bytes::from_static(b"{\"card\":\"s3cr3t-in-payload\"}");
            item.envelope.payload = Payload::Bytes { bytes, form: PayloadForm::Json };
        });
    }
    office.scripted("e", |_| async { panic!("on purpose") });
    office.destination("e", "e", |_| {});
    office.enqueue("e", 1);
    let engine = office.engine();
    let handle = engine.handle();
    let lines = Lines::during(|| {
        let run = engine.run(office.world.sleep(SECOND));
        office.world.run(run).unwrap();
        office.run_until(Until::Idle).unwrap();
    });
    assert!(lines.count(&["dead letter opened"]) >= 3, "{lines:?}");
    assert_eq!(lines.count(&[secret]), 0, "{lines:?}");
    let stats = office.world.run(dlo_ports::store::ReadStore::stats(&*office.model)).unwrap();
    assert!(!dlo_engine::render_openmetrics(&stats, handle.metrics()).contains(secret));
}
