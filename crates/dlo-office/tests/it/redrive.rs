//! The redrive by explicit ids.

use dlo_core::decide::Next;
use dlo_core::{DeadLetterId, Duplicates, EntryState, limits};
use dlo_office::acts;
use dlo_ports::store::{DeadLetterFilter, PageRequest, ReadStore, RedriveResult};

use crate::desk::{Desk, spec};

const PAGE: PageRequest = PageRequest { after: None, limit: 1_000 };

/// A desk with dead letters on `a`, newest first.
async fn with_dead_letters(duplicates: Duplicates, count: usize, unanswered: bool) -> (Desk, Vec<DeadLetterId>) {
    let desk = Desk::new();
    desk.office.apply_destinations(vec![spec("default", "a", duplicates)]).await.unwrap();
    desk.enqueue("a", count).await;
    desk.settle_all("a", unanswered, || Next::DeadLetter(desk.draft("a"))).await;
    let rows = desk.store.dead_letters(DeadLetterFilter::default(), PAGE).await.unwrap().rows;
    assert_eq!(rows.len(), count);
    let ids = rows.into_iter().map(|row| row.id).collect();
    (desk, ids)
}

#[tokio::test]
async fn each_item_gets_a_generation_a_ledger_row_and_the_act_one_event() {
    let (desk, ids) = with_dead_letters(Duplicates::Tolerated, 2, false).await;
    let missing = DeadLetterId::from_bytes([9; 16]);
    let items = vec![ids[0], missing, ids[1]];
    let (redrive, results) = desk.office.redrive(&desk.tenant, items, "endpoint fixed").await.unwrap();
    let RedriveResult::Redriven { key } = &results[0] else { panic!("{results:?}") };
    assert_eq!(key.generation, 1);
    assert_eq!(desk.entry(key.entry).await.summary.state, EntryState::Ready);
    assert_eq!(results[1], RedriveResult::Missing);
    let ledger = desk.store.redrive_ledger(desk.tenant.clone(), PAGE).await.unwrap().rows;
    assert_eq!(ledger.len(), 3);
    let events = desk.audit().await;
    assert_eq!((events.len(), events[0].act.as_str()), (1, acts::REDRIVE));
    assert!(ledger.iter().all(|row| row.redrive == redrive && row.audit == events[0].id));
    assert!(events[0].detail_json.contains(&redrive.to_string()));
}

#[tokio::test]
async fn a_second_redrive_of_the_same_item_is_refused() {
    let (desk, ids) = with_dead_letters(Duplicates::Tolerated, 1, false).await;
    desk.office.redrive(&desk.tenant, ids.clone(), "first").await.unwrap();
    let (_, results) = desk.office.redrive(&desk.tenant, ids, "second").await.unwrap();
    assert!(matches!(&results[0], RedriveResult::Refused(refusal) if refusal.code() == "redrive.not_open"));
}

#[tokio::test]
async fn an_unanswered_send_on_a_harmful_destination_is_refused() {
    let (desk, ids) = with_dead_letters(Duplicates::Harmful, 1, true).await;
    let (_, results) = desk.office.redrive(&desk.tenant, ids, "looks fine").await.unwrap();
    assert!(matches!(&results[0], RedriveResult::Refused(refusal) if refusal.code() == "redrive.unanswered"));
}

#[tokio::test]
async fn a_redrive_needs_a_reason_and_at_most_a_hundred_items_once_each() {
    let (desk, ids) = with_dead_letters(Duplicates::Tolerated, 1, false).await;
    let redrive = |items: Vec<DeadLetterId>, reason: &'static str| desk.office.redrive(&desk.tenant, items, reason);
    assert_eq!(redrive(ids.clone(), "").await.unwrap_err().code(), "office.reason_blank");
    assert_eq!(redrive(Vec::new(), "why").await.unwrap_err().code(), "office.no_items");
    assert_eq!(redrive(vec![ids[0], ids[0]], "why").await.unwrap_err().code(), "office.duplicate_item");
    let many = (0..=limits::MAX_REDRIVE_ITEMS).map(|at| DeadLetterId::from_bytes([at as u8; 16])).collect();
    assert_eq!(redrive(many, "why").await.unwrap_err().code(), "office.too_many_items");
    assert!(
        desk.audit().await.is_empty()
            && desk.store.redrive_ledger(desk.tenant.clone(), PAGE).await.unwrap().rows.is_empty()
    );
}
