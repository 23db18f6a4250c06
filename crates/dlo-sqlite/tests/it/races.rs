//! Two that want the same at once: an index of the file decides, and what only grows stays as it is.

use std::collections::BTreeMap;

use dlo_core::{
    Actor, AuditEvent, AuditId, AuthenticationStrength, DeadLetterId, RedriveId,
    dead_letter::{Unreadable, unreadable},
    decide::Next,
};
use dlo_ports::{Clock, store::*};
use dlo_sqlite::SqliteStore;

use crate::support::*;

/// Saves one event after the other.
async fn save_all(store: &SqliteStore, numbers: impl Iterator<Item = usize>) -> Vec<EnqueueAnswer> {
    let mut answers = Vec::new();
    for number in numbers {
        answers.extend(store.enqueue(vec![item(number)]).await.unwrap());
    }
    answers
}

/// Saves of the same events by two processes: each event is one entry, and both are told its envelope (S-06).
#[tokio::test]
async fn first_inserts_of_one_key_are_settled_by_its_row() {
    let bench = Bench::new();
    let other = SqliteStore::open(bench.options()).unwrap();
    let (mine, theirs) = tokio::join!(save_all(&bench.store, 0..100), save_all(&other, (0..100).rev()));
    let created = mine.iter().chain(&theirs).filter(|answer| matches!(answer, EnqueueAnswer::Created { .. })).count();
    let existing = mine.iter().chain(&theirs).filter(|answer| matches!(answer, EnqueueAnswer::Existing { .. })).count();
    assert_eq!((created, existing), (100, 100));
    assert_eq!((bench.count("dlo_entry"), bench.total("enqueued")), (100, 100));
    assert_eq!(bench.store.check(100).await.unwrap(), []);
}

fn redrive(number: u8, bench: &Bench) -> (RedriveId, AuditEvent) {
    let now = bench.clock.now();
    let audit = AuditEvent {
        id: AuditId::new(now, [number; 10]),
        tenant: tenant(),
        actor: Actor { name: "local:alice".into(), strength: AuthenticationStrength::Asserted },
        act: "dead_letter.redrive",
        target: "target".into(),
        reason: Some("mended".into()),
        detail: BTreeMap::new(),
    };
    (RedriveId::new(now, [number; 10]), audit)
}

async fn with_dead_letters(count: usize) -> (Bench, Vec<DeadLetterId>) {
    let bench = Bench::new();
    let worker = bench.start(1).await;
    bench.enqueue(count).await;
    let page = bench.claim(worker, 1, count).await;
    let dead: Vec<_> = (0..count).map(|number| DeadLetterId::from_bytes(id16(number + 1))).collect();
    let settlements = page.claimed.iter().zip(&dead).map(|(claimed, id)| {
        settlement(claimed, Next::DeadLetter(unreadable(*id, &name("orders"), Unreadable::Entry)))
    });
    bench.settle(settlements.collect()).await;
    (bench, dead)
}

/// Redrives one dead letter after the other, each as an act of its own.
async fn redrive_each(bench: &Bench, store: &SqliteStore, dead: &[DeadLetterId], first: u8) -> Vec<RedriveResult> {
    let mut results = Vec::new();
    for (number, dead) in (first..).zip(dead) {
        let (redrive, audit) = redrive(number, bench);
        results.extend(store.redrive(tenant(), redrive, vec![*dead], audit).await.unwrap());
    }
    results
}

/// Two redrives of the same dead letters at once: each is released once, the other is told (I-15, C-090).
#[tokio::test]
async fn two_redrives_at_once_release_each_dead_letter_once() {
    let (bench, dead) = with_dead_letters(50).await;
    let other = SqliteStore::open(bench.options()).unwrap();
    let (mine, theirs) =
        tokio::join!(redrive_each(&bench, &bench.store, &dead, 0), redrive_each(&bench, &other, &dead, 100));
    for results in mine.into_iter().zip(theirs) {
        let refused = <[RedriveResult; 2]>::from(results).into_iter().filter_map(|result| match result {
            RedriveResult::Refused(refusal) => Some(refusal.code()),
            _ => None,
        });
        assert_eq!(refused.collect::<Vec<_>>(), ["redrive.not_open"]);
    }
    assert_eq!((bench.count("dlo_entry"), bench.count("dlo_redrive_item")), (50, 100));
    assert_eq!(bench.store.check(100).await.unwrap(), []);
}

/// Audit events and the ledger take new rows only, whoever has the file open (S-02, C-122).
#[tokio::test]
async fn evidence_can_be_added_to_and_not_changed() {
    let (bench, dead) = with_dead_letters(1).await;
    let (id, audit) = redrive(1, &bench);
    bench.store.redrive(tenant(), id, dead, audit).await.unwrap();
    let file = bench.other();
    for table in ["dlo_audit_event", "dlo_redrive_item"] {
        assert_eq!(bench.count(table), 1, "{table}");
        for change in [format!("UPDATE {table} SET at = at + 1"), format!("DELETE FROM {table}")] {
            let error = file.execute(&change, []).unwrap_err();
            assert!(error.to_string().contains("insert-only"), "{change}: {error}");
        }
        assert_eq!(bench.count(table), 1, "{table}");
    }
}
