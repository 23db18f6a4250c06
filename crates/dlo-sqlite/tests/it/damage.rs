//! Rows that can't be read (trap D10) and text of any kind (trap D11).

use core::fmt::Debug;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dlo_core::{
    Attempt, Class, DeadLetterDraft, DeadLetterId, Phase, Reason, TransitionResult, dead_letter,
    decide::Next,
    entry::LastFailure,
    text::{Code, ErrorText},
};
use dlo_ports::{Clock, store::*};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::*;

/// The fields of the last warning.
#[derive(Clone, Default)]
struct Warned(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Warned {
    fn fields(&self) -> BTreeMap<&'static str, String> {
        self.0.lock().unwrap().clone()
    }
}

impl Visit for Warned {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.lock().unwrap().insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Warned {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Every way to damage one row of a page of three, and what is left to deliver.
#[tokio::test]
async fn one_unreadable_row_is_quarantined_by_itself() {
    for damage in [
        "UPDATE dlo_envelope SET meta = '{' WHERE id = ?1",
        "UPDATE dlo_envelope SET meta_schema = 99 WHERE id = ?1",
        "UPDATE dlo_envelope SET payload_form = 'odd' WHERE id = ?1",
        "UPDATE dlo_envelope SET payload = x'00ff' WHERE id = ?1",
        "UPDATE dlo_envelope SET payload = NULL WHERE id = ?1",
        "UPDATE dlo_envelope SET key_id = 'key-of-nobody' WHERE id = ?1",
        "UPDATE dlo_envelope SET tenant = 'another' WHERE id = ?1",
        "DELETE FROM dlo_envelope WHERE id = ?1",
        "UPDATE dlo_entry SET status = 'odd' WHERE seq = ?1",
        "UPDATE dlo_entry SET operation_key = 'not a key' WHERE seq = ?1",
        "UPDATE dlo_entry SET operation_key = CAST(x'ff00fe' AS TEXT) WHERE seq = ?1",
        "UPDATE dlo_entry SET failed = -1 WHERE seq = ?1",
        "UPDATE dlo_entry SET claims = 1 << 40 WHERE seq = ?1",
        "UPDATE dlo_entry SET last_class = 'odd' WHERE seq = ?1",
        "UPDATE dlo_entry SET version = -5 WHERE seq = ?1",
    ] {
        let bench = Bench::new();
        let worker = bench.start(1).await;
        let ids = bench.enqueue(3).await;
        let changed = bench.other().execute(damage, [2]).unwrap();
        assert_eq!(changed, 1, "{damage}");

        let page = bench.claim(worker, 1, 10).await;
        let claimed: Vec<_> = page.claimed.iter().map(|claimed| claimed.entry.key.entry).collect();
        assert_eq!(claimed, [ids[0], ids[2]], "{damage}");
        assert_eq!(page.quarantined.iter().map(|key| key.entry).collect::<Vec<_>>(), [ids[1]], "{damage}");
        let settled = bench.settle(page.claimed.iter().map(delivered).collect()).await;
        assert_eq!(settled, [TransitionResult::Applied; 2], "{damage}");

        let (reason, state): (String, String) = bench
            .other()
            .query_row("SELECT reason, state FROM dlo_dead_letter", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        assert_eq!((reason.as_str(), state.as_str()), ("outbox.entry_unreadable", "open"), "{damage}");
        assert_eq!((bench.total("live"), bench.total("dead_letters_open"), bench.count("dlo_claim")), (0, 1, 0));
    }
}

#[tokio::test]
async fn a_lost_claim_that_became_unreadable_stalls_no_other() {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    let ids = bench.enqueue(3).await;
    bench.claim(worker, 1, 10).await;
    bench.other().execute("UPDATE dlo_entry SET status = 'odd', send_mark = 1 WHERE seq = 1", []).unwrap();
    bench.store.stop_worker(worker).await.unwrap();
    let warned = Warned::default();
    let lost = {
        let _guard = tracing::subscriber::set_default(warned.clone());
        bench.store.lost_claims(None, 10).await.unwrap()
    };
    let (entry, warned) = (ids[0].to_string(), warned.fields());
    let told = [("tenant", "default"), ("destination", "orders"), ("entry", &entry), ("generation", "0")];
    for (field, value) in told.into_iter().chain([("code", "outbox.entry_unreadable")]) {
        assert_eq!(warned.get(field).map(String::as_str), Some(value), "{field}");
    }
    assert_eq!(lost.iter().map(|entry| entry.key.entry).collect::<Vec<_>>(), ids[1..]);
    // The mark says that the first byte may have left: nobody may repeat it blindly (I-10).
    let unanswered: bool =
        bench.other().query_row("SELECT unanswered FROM dlo_dead_letter", [], |row| row.get(0)).unwrap();
    assert!(unanswered);
    let open: i64 = bench.other().query_row("SELECT open FROM dlo_claim", [], |row| row.get(0)).unwrap();
    assert_eq!(open, 2);
}

#[tokio::test]
async fn an_overdue_entry_that_is_unreadable_stalls_no_other() {
    let bench = Bench::new();
    let ids = bench.enqueue(2).await;
    bench.other().execute("UPDATE dlo_entry SET status = 'odd' WHERE seq = 1", []).unwrap();
    let week = std::time::Duration::from_hours(7 * 24);
    bench.clock.advance(week);
    let overdue = bench.store.overdue(tenant(), name("orders"), week, 10).await.unwrap();
    assert_eq!(overdue.iter().map(|entry| entry.key.entry).collect::<Vec<_>>(), ids[1..]);
    assert_eq!(bench.count("dlo_dead_letter"), 1);
}

#[tokio::test]
async fn health_that_is_unreadable_holds_its_destination_alone() {
    let bench = Bench::new();
    bench.apply(&spec("billing"));
    bench.enqueue(1).await;
    bench.store.enqueue(vec![dlo_core::NewEntry::new(envelope(9)).to(name("billing"))]).await.unwrap();
    bench
        .other()
        .execute(
            "INSERT INTO dlo_health (tenant, destination, version, schema, body) VALUES ('default', 'billing', 1, 1, '{')",
            [],
        )
        .unwrap();
    let page = bench.store.due_destinations(Scope::default(), None, 10).await.unwrap();
    let admissions: Vec<_> = page.destinations.iter().map(|due| (due.destination.as_str(), due.admission)).collect();
    use dlo_core::{Timestamp, health::Admission};
    assert_eq!(admissions, [("billing", Admission::Held(Timestamp::MAX)), ("orders", Admission::Open(None))]);
}

#[tokio::test]
async fn recording_a_failure_takes_any_text() {
    for text in ["", "nul \0 inside", "\u{7f}\u{1b}[31mred", &"long ".repeat(100_000), "quote ' \" ; -- \u{202e}"] {
        let bench = Bench::new();
        let worker = bench.start(1).await;
        bench.enqueue(2).await;
        let page = bench.claim(worker, 1, 10).await;
        let due = bench.clock.now();
        let mut retried = waits(&page.claimed[0], due);
        fail(&mut retried, text);
        let draft = draft(text);
        let mut dead = settlement(&page.claimed[1], Next::DeadLetter(draft));
        fail(&mut dead, text);
        assert_eq!(bench.settle(vec![retried, dead]).await, [TransitionResult::Applied; 2]);

        let again = bench.claim(worker, 2, 10).await;
        let failure = again.claimed[0].entry.progress.last_failure.as_ref().unwrap();
        assert_eq!(failure.text, ErrorText::new(text));
        let dead = bench.store.dead_letters(DeadLetterFilter::default(), PageRequest { after: None, limit: 10 }).await;
        let dead = dead.unwrap().rows.remove(0);
        assert_eq!(dead.message, ErrorText::new(text));
        assert_eq!(dead.last_failure.unwrap().text, ErrorText::new(text));
    }
}

fn draft(text: &str) -> DeadLetterDraft {
    let id = DeadLetterId::from_bytes([5; 16]);
    let base = dead_letter::unreadable(id, &name("orders"), dead_letter::Unreadable::Entry);
    DeadLetterDraft { message: ErrorText::new(text), rule: Some(Code::new(text)), ..base }
}

fn fail(settlement: &mut Settlement, text: &str) {
    let transition = &mut settlement.transition;
    let reason = Reason::new("http.server_error").unwrap();
    transition.progress.counters.failed += 1;
    transition.progress.attempts += 1;
    transition.progress.last_failure = Some(LastFailure {
        class: Class::Transient,
        reason: reason.clone(),
        provider_code: Some(Code::new(text)),
        text: ErrorText::new(text),
    });
    let Next::Wait { .. } = transition.next else { return };
    transition.attempt = Some(Attempt {
        number: transition.progress.attempts,
        generation: 0,
        started: dlo_core::Timestamp::EPOCH,
        finished: dlo_core::Timestamp::EPOCH,
        outcome: Code::new(text),
        class: Some(Class::Transient),
        reason: Some(reason),
        rule: Some(Code::new(text)),
        phase: Phase::Answered,
        http_status: Some(500),
        provider_code: Some(Code::new(text)),
        text: ErrorText::new(text),
        charged: true,
        token: None,
        destination_version: 1,
    });
}
