//! Claim: what it does to a row, whom it refuses, pace, suspects, and where work is found.

use bytes::Bytes;
use dlo_core::{
    DeadLetterState, EntryId, EntryState, Lane, NewEntry, Payload, PayloadForm, Status, TenantId, TransitionResult,
    decide::Event,
    destination::Pace,
    health::Admission,
    limits::{CLAIM_BYTES, MAX_PAGE},
    reason,
};

use super::bench::{
    Bench, HOUR, MAIN, MINUTE, SECOND, claim_fence, delivered, ids, name, spec, transient, version_ref,
};
use crate::{
    StoreErrorKind,
    store::{ClaimKind, RedriveResult, Scope},
};

pub(super) fn a_claim_marks_the_row(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.entry_at(MAIN);
    let before = b.live(entry);
    b.clock.advance(SECOND);
    let request = b.request(MAIN, ClaimKind::Normal, 5);
    let page = b.run(|store| store.claim(request.clone()));
    assert_eq!((page.now, page.destination_version, page.more), (b.now(), 1, false));
    let claimed = &page.claimed[0].entry;
    let claim = claimed.claim.unwrap();
    assert_eq!((claim.token, claim.incarnation), (request.token, request.incarnation));
    assert_eq!((claim.claimed, claim.deadline), (b.now(), b.now().after(HOUR)));
    assert_eq!((claim.send_mark, claim.sole_suspect), (false, false));
    assert_eq!((claimed.version, claimed.progress.counters.claims), (before.version + 1, 1));
    assert_eq!((claimed.first_claimed, claimed.updated), (Some(b.now()), b.now()));
    assert_eq!((claimed.lane, claimed.due, claimed.status), (before.lane, before.due, before.status));
    assert_eq!(page.claimed[0].envelope.id, claimed.envelope);
    assert_eq!(b.live(entry), *claimed, "the answer is the row");
    let summary = b.entry(entry).summary;
    assert_eq!(
        (summary.state, summary.status),
        (EntryState::Claimed, Some(Status::Pending)),
        "status as before (S-03)"
    );
    // The first claim is kept: a deduplication window starts there.
    let first = claimed.first_claimed;
    b.outcome(&claimed.clone(), transient());
    b.clock.advance(HOUR);
    let again = b.claim_one(MAIN);
    assert_eq!((again.first_claimed, again.progress.counters.claims), (first, 2));
}

pub(super) fn a_claimed_entry_is_not_claimed_again(b: &mut Bench) {
    b.main(|_| ());
    let claimed = b.claimed_at(MAIN);
    assert!(b.claim(MAIN, 10).is_empty());
    b.clock.advance(HOUR * 2);
    assert!(b.claim(MAIN, 10).is_empty(), "a claim that is over goes through lost_claims first");
    let lost = b.run(|store| store.lost_claims(None, 10));
    assert_eq!(lost[0].key, claimed.key);
}

pub(super) fn workers_that_are_not_alive_are_fenced(b: &mut Bench) {
    b.main(|_| ());
    b.entry_at(MAIN);
    let mut request = b.request(MAIN, ClaimKind::Normal, 1);
    request.incarnation = dlo_core::Incarnation::from_bytes([9; 16]);
    assert_eq!(b.fail(|store| store.claim(request)), StoreErrorKind::Fenced, "never started");
    let lapses = b.new_worker(MINUTE);
    b.clock.advance(MINUTE);
    let request = b.request(MAIN, ClaimKind::Normal, 1);
    assert_eq!(b.fail(|store| store.claim(request.clone())), StoreErrorKind::Fenced, "its lease is over");
    b.run(|store| store.heartbeat(lapses, MINUTE));
    b.run(|store| store.stop_worker(lapses));
    assert_eq!(b.fail(|store| store.claim(request)), StoreErrorKind::Fenced, "it has ended");
    b.new_worker(MINUTE);
    assert_eq!(b.claim(MAIN, 10).len(), 1, "no refused claim took the entry");
}

pub(super) fn claims_are_bounded(b: &mut Bench) {
    b.main(|_| ());
    for limit in [0, MAX_PAGE + 1] {
        let request = b.request(MAIN, ClaimKind::Normal, limit);
        assert_eq!(b.fail(|store| store.claim(request)), StoreErrorKind::Invalid, "limit {limit}");
    }
    let request = b.request("nowhere", ClaimKind::Normal, 1);
    assert_eq!(b.fail(|store| store.claim(request)), StoreErrorKind::Invalid, "no such destination");
}

pub(super) fn an_unreadable_row_is_quarantined_by_itself(b: &mut Bench) {
    b.main(|_| ());
    let entries = b.entries_at(MAIN, 3);
    let damaged = b.live(entries[1]).key;
    if !b.harness().make_unreadable(&damaged) {
        return;
    }
    let page = b.page(MAIN, ClaimKind::Normal, 10);
    assert_eq!(ids(&page.claimed), [entries[0], entries[2]], "the rest is not stalled (trap D10)");
    assert_eq!(page.quarantined, [damaged]);
    let dead_letter = b.dead_letter_of(entries[1]);
    assert_eq!((dead_letter.code, dead_letter.state), (reason::ENTRY_UNREADABLE, DeadLetterState::Open));
    assert_eq!(b.state(entries[1]), EntryState::DeadLettered);
    assert!(b.claim(MAIN, 10).is_empty());
    let RedriveResult::Refused(refusal) = b.redrive(vec![dead_letter.id]).remove(0) else { panic!("must be refused") };
    assert_eq!(refusal.code(), "redrive.unreadable");
}

/// A destination whose bucket lets two go at once, and then one a second.
fn paced(b: &mut Bench) {
    b.main(|main| main.pace = Some(Pace { per_minute: 60, burst: 2 }));
}

pub(super) fn pace_delays_and_is_durable(b: &mut Bench) {
    paced(b);
    assert_eq!(b.page(MAIN, ClaimKind::Normal, 10).health.version, 0, "nothing due takes no pace");
    let entries = b.entries_at(MAIN, 4);
    let page = b.page(MAIN, ClaimKind::Normal, 3);
    assert_eq!(ids(&page.claimed), entries[..2]);
    assert_eq!(page.paced_until, Some(b.now().after(SECOND)));
    assert!(!page.more, "what pace stopped is not what the limit left");
    assert_eq!((page.health.version, page.health.pace_at.is_some()), (1, true));
    assert_eq!(b.health(MAIN), page.health, "the bucket is durable");
    let page = b.page(MAIN, ClaimKind::Normal, 10);
    assert!(page.claimed.is_empty() && page.paced_until.is_some());
    assert_eq!(page.health.version, 1, "a bucket that gives nothing is as it was");
    b.clock.advance(SECOND);
    assert_eq!(ids(&b.claim(MAIN, 10)), entries[2..3]);
    b.clock.advance(HOUR);
    let page = b.page(MAIN, ClaimKind::Normal, 10);
    assert_eq!((ids(&page.claimed), page.paced_until), (entries[3..].to_vec(), None));
}

pub(super) fn pace_is_the_limit_of_the_selection(b: &mut Bench) {
    paced(b);
    // Two retries that are due first, then two that were never tried.
    b.entries_at(MAIN, 2);
    for claimed in b.claim(MAIN, 2) {
        b.outcome(&claimed.entry, transient());
    }
    b.clock.advance(HOUR);
    b.entries_at(MAIN, 2);
    let page = b.page(MAIN, ClaimKind::Normal, 10);
    let lanes: Vec<_> = page.claimed.iter().map(|claimed| claimed.entry.lane).collect();
    assert_eq!(lanes, [Lane::Retry, Lane::Pending], "two were granted: half of them for retries");
}

pub(super) fn more_is_about_the_limit(b: &mut Bench) {
    b.main(|_| ());
    b.entries_at(MAIN, 3);
    let page = b.page(MAIN, ClaimKind::Normal, 2);
    assert_eq!((page.claimed.len(), page.more), (2, true));
    let later = NewEntry { not_before: Some(b.now().after(HOUR)), ..b.item(MAIN) };
    b.save(later);
    let page = b.page(MAIN, ClaimKind::Normal, 2);
    assert_eq!((page.claimed.len(), page.more), (1, false), "what is due later is not more");
}

/// Entries with bodies of which two go into one claim.
fn large_entries(b: &mut Bench, count: usize) -> Vec<EntryId> {
    let bytes = Bytes::from(vec![b'7'; CLAIM_BYTES / 2 - 7]);
    let items: Vec<_> = (0..count)
        .map(|_| {
            let mut item = b.item(MAIN);
            item.envelope.payload = Payload::Bytes { bytes: bytes.clone(), form: PayloadForm::Binary };
            item
        })
        .collect();
    items.into_iter().map(|item| b.save(item)).collect()
}

pub(super) fn large_bodies_make_small_pages(b: &mut Bench) {
    b.main(|_| ());
    let retries = large_entries(b, 3);
    let page = b.page(MAIN, ClaimKind::Normal, 100);
    assert_eq!((ids(&page.claimed), page.more), (retries[..2].to_vec(), true), "a third body is too much");
    for claimed in page.claimed {
        b.outcome(&claimed.entry, transient());
    }
    b.clock.advance(HOUR);
    let page = b.page(MAIN, ClaimKind::Normal, 100);
    assert_eq!((ids(&page.claimed), page.more), (vec![retries[0], retries[2]], true), "lanes keep their shares");
    let page = b.page(MAIN, ClaimKind::Normal, 100);
    assert_eq!((ids(&page.claimed), page.more), (vec![retries[1]], false));
}

pub(super) fn large_bodies_take_no_pace_for_what_is_left(b: &mut Bench) {
    b.main(|main| main.pace = Some(Pace { per_minute: 60, burst: 3 }));
    let entries = large_entries(b, 3);
    let page = b.page(MAIN, ClaimKind::Normal, 100);
    assert_eq!((ids(&page.claimed), page.more, page.paced_until), (entries[..2].to_vec(), true, None));
    let page = b.page(MAIN, ClaimKind::Normal, 100);
    assert_eq!((ids(&page.claimed), page.more, page.paced_until), (entries[2..].to_vec(), false, None));
}

pub(super) fn a_suspect_is_claimed_alone(b: &mut Bench) {
    b.main(|_| ());
    let entries = b.entries_at(MAIN, 2);
    for claimed in b.claim(MAIN, 2) {
        let transition = b.decide(&claimed.entry, &Event::ClaimLost);
        b.settle_under(&claimed.entry, version_ref(&claimed.entry).fence, transition);
    }
    assert_eq!(b.live(entries[0]).lane, Lane::Suspect);
    let fresh = b.entry_at(MAIN);
    assert_eq!(ids(&b.claim(MAIN, 10)), [fresh], "suspects are in no normal page");
    let page = b.page(MAIN, ClaimKind::Suspect, 10);
    assert_eq!(ids(&page.claimed), entries[..1], "one at a time, whatever the limit");
    assert!(page.more);
    let suspect = &page.claimed[0].entry;
    assert!(suspect.claim.unwrap().sole_suspect);
    let transition = b.decide(suspect, &Event::Emitted(delivered()));
    assert_eq!(b.settle_under(suspect, claim_fence(suspect), transition), TransitionResult::Applied);
    let page = b.page(MAIN, ClaimKind::Suspect, 1);
    assert_eq!((ids(&page.claimed), page.more), (entries[1..].to_vec(), false));
}

pub(super) fn due_destinations_are_found(b: &mut Bench) {
    for destination in ["claimed", "empty", "held", "later", "retry"] {
        b.apply(spec(destination));
    }
    b.claimed_at("claimed");
    b.entry_at("held");
    b.hold("held");
    let later = b.now().after(HOUR);
    let item = NewEntry { not_before: Some(later), ..b.item("later") };
    b.save(item);
    let failed = b.claimed_at("retry");
    b.outcome(&failed, transient());
    let retry_due = b.live(failed.key.entry).due;
    b.clock.advance(SECOND);
    let page = b.run(|store| store.due_destinations(Scope::default(), None, 10));
    assert_eq!((page.now, page.more), (b.now(), false));
    let found: Vec<_> = page.destinations.iter().map(|due| (due.destination.as_str(), due.next_due)).collect();
    assert_eq!(found, [("held", b.now().before(SECOND)), ("later", later), ("retry", retry_due)]);
    assert_eq!(page.destinations[0].admission, Admission::Held(dlo_core::Timestamp::MAX));
    assert_eq!((page.destinations[1].admission, page.destinations[1].version), (Admission::Open(None), 1));
}

pub(super) fn due_destinations_are_paged_and_scoped(b: &mut Bench) {
    for destination in ["a", "b", "c"] {
        b.apply(spec(destination));
        b.entry_at(destination);
    }
    let tenant = b.tenant.clone();
    let first = b.run(|store| store.due_destinations(Scope::default(), None, 2));
    assert_eq!((first.destinations.len(), first.more), (2, true));
    let after = Some((tenant.clone(), name("b")));
    let rest = b.run(|store| store.due_destinations(Scope::default(), after, 2));
    assert_eq!((rest.destinations.len(), rest.destinations[0].destination.as_str(), rest.more), (1, "c", false));
    let only = Scope { tenants: vec![tenant], destinations: vec![name("b")] };
    let page = b.run(|store| store.due_destinations(only, None, 1));
    assert_eq!((page.destinations.len(), page.destinations[0].destination.as_str(), page.more), (1, "b", false));
    let elsewhere = Scope { tenants: vec![TenantId::new("elsewhere").unwrap()], destinations: Vec::new() };
    assert!(b.run(|store| store.due_destinations(elsewhere, None, 10)).destinations.is_empty());
    assert_eq!(b.fail(|store| store.due_destinations(Scope::default(), None, 0)), StoreErrorKind::Invalid);
}
