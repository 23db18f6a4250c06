//! Acts on live entries.

use core::time::Duration;

use dlo_core::decide::Next;
use dlo_core::{EntryId, EntryState, Lane, Status, Timestamp, reason};
use dlo_office::acts;
use dlo_ports::Clock;
use dlo_ports::store::{ActResult, DeadLetterFilter, PageRequest, ReadStore};

use crate::desk::Desk;

fn later(desk: &Desk) -> Next {
    let due = desk.env.now().after(Duration::from_hours(1));
    Next::Wait { lane: Lane::Retry, due, status: Status::RetryableFailure }
}

#[tokio::test]
async fn cancel_ends_entries_and_names_each_in_the_event() {
    let desk = Desk::with(&["a"]).await;
    let entries = desk.enqueue("a", 2).await;
    assert_eq!(desk.office.cancel(&desk.tenant, &entries, " ").await.unwrap_err().code(), "office.reason_blank");
    let gone = EntryId::from_bytes([9; 16]);
    let all = [entries[0], gone, entries[1]];
    let results = desk.office.cancel(&desk.tenant, &all, "no longer wanted").await.unwrap();
    assert_eq!(results, [ActResult::Done, ActResult::Missing, ActResult::Done]);
    assert_eq!(desk.entry(entries[0]).await.summary.state, EntryState::Cancelled);
    let events = desk.audit().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].act, acts::CANCEL);
    assert_eq!(events[0].target, format!("{} {gone} {}", entries[0], entries[1]));
    assert_eq!(events[0].reason.as_ref().unwrap().as_str(), "no longer wanted");
}

#[tokio::test]
async fn retry_now_spreads_due_times_and_cuts_events_at_a_hundred_items() {
    let desk = Desk::with(&["a"]).await;
    let entries = desk.enqueue("a", 250).await;
    desk.settle_all("a", false, || later(&desk)).await;
    let results = desk.office.retry_now(&desk.tenant, &entries, 60, None).await.unwrap();
    assert!(results.iter().all(|result| *result == ActResult::Done));
    let due = |entry: dlo_ports::store::EntryView| -> Timestamp { entry.live.unwrap().due };
    assert_eq!(due(desk.entry(entries[0]).await), desk.env.now());
    assert_eq!(due(desk.entry(entries[249]).await).since(desk.env.now()), Duration::from_secs(249));
    let sizes: Vec<_> = desk.audit().await.iter().map(|event| event.target.split(' ').count()).collect();
    assert_eq!(sizes, [100, 100, 50]);
    for pace in [0, acts::MAX_RETRIES_PER_MINUTE + 1] {
        let error = desk.office.retry_now(&desk.tenant, &entries, pace, None).await.unwrap_err();
        assert_eq!(error.code(), "office.pace_invalid");
    }
}

#[tokio::test]
async fn retry_now_ends_manual_review_by_a_new_generation() {
    let desk = Desk::with(&["a"]).await;
    let entries = desk.enqueue("a", 1).await;
    desk.settle_all("a", false, || Next::ManualReview).await;
    assert_eq!(desk.entry(entries[0]).await.summary.state, EntryState::ManualReview);
    let results = desk.office.retry_now(&desk.tenant, &entries, 60, Some("fixed")).await.unwrap();
    assert_eq!(results, [ActResult::Done]);
    let entry = desk.entry(entries[0]).await;
    assert_eq!((entry.summary.state, entry.summary.key.generation), (EntryState::Ready, 1));
}

#[tokio::test]
async fn dead_letter_moves_entries_from_manual_review_into_quarantine() {
    let desk = Desk::with(&["a", "b"]).await;
    let reviewed = desk.enqueue("a", 1).await[0];
    desk.settle_all("a", false, || Next::ManualReview).await;
    let ready = desk.enqueue("b", 1).await[0];
    let gone = EntryId::from_bytes([9; 16]);
    let results = desk.office.dead_letter(&desk.tenant, &[gone, reviewed, ready], "nobody can fix it").await.unwrap();
    assert_eq!(results[..2], [ActResult::Missing, ActResult::Done]);
    assert!(matches!(results[2], ActResult::WrongState(_)), "{results:?}");
    let page = PageRequest { after: None, limit: 10 };
    let dead = desk.store.dead_letters(DeadLetterFilter::default(), page).await.unwrap().rows;
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].key.entry, &dead[0].code), (reviewed, &reason::DEAD_LETTERED_BY_OPERATOR));
    assert_eq!(dead[0].message.as_str(), "nobody can fix it");
    let events = desk.audit().await;
    assert_eq!((events.len(), events[0].act.as_str()), (1, acts::DEAD_LETTER));
}
