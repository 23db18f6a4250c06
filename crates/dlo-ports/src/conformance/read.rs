//! Reading: lists, filters, groups, figures. No payload byte is in any of it (I-13).

use dlo_core::{
    Class, DeadLetterState, EntryId, EntryState, NewEntry, Status, decide::Event, limits::MAX_PAGE, policy::Alternative,
};

use super::bench::{
    ALL, Bench, HOUR, MAIN, MINUTE, PAYLOAD, SECOND, delivered, name, refused, spec, transient, version_ref,
};
use crate::{
    StoreErrorKind,
    store::{DeadLetterFilter, Depth, EntryAct, EntryFilter, PageRequest},
};

pub(super) fn entries_are_listed_newest_first(b: &mut Bench) {
    b.main(|_| ());
    let mut expected = b.entries_at(MAIN, 5);
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, delivered());
    let dead = b.claim_one(MAIN);
    b.outcome(&dead, refused());
    let dead_letter = b.dead_letter_of(dead.key.entry);
    b.redriven(dead_letter.id);
    // A redriven entry has a new sequence: it is the newest.
    expected.retain(|id| *id != dead.key.entry);
    expected.push(dead.key.entry);
    expected.reverse();
    let mut seen: Vec<EntryId> = Vec::new();
    let mut after = None;
    loop {
        let page = b.run(|store| store.entries(EntryFilter::default(), PageRequest { after, limit: 2 }));
        assert!(page.rows.len() <= 2);
        seen.extend(page.rows.iter().map(|row| row.key.entry));
        match page.next {
            Some(next) => {
                assert_eq!(next, page.rows.last().unwrap().seq);
                after = Some(next);
            }
            None => break,
        }
    }
    assert_eq!(seen, expected, "every entry once, history included");
    let exact = b.run(|store| store.entries(EntryFilter::default(), PageRequest { after: None, limit: 5 }));
    assert_eq!((exact.rows.len(), exact.next), (5, None), "no page follows a full last one");
}

pub(super) fn filters_and_states_agree(b: &mut Bench) {
    b.main(|main| {
        main.policy.max_retry_attempts = 1;
        main.policy.dead_letter_on_max_retry_attempts = false;
        main.policy.alternative = Some(Alternative::ManualReview);
    });
    b.apply(spec("other"));
    b.entry_at("other");
    let reviewed = b.reviewed_at(MAIN);
    let ended = b.claimed_at(MAIN);
    b.outcome(&ended, delivered());
    let dead = b.dead_letter_at(MAIN).key.entry;
    let cancelled = b.entry_at(MAIN);
    b.act(cancelled, EntryAct::Cancel);
    let claimed = b.claimed_at(MAIN).key.entry;
    let ready = b.entry_at(MAIN);
    let later = NewEntry { not_before: Some(b.now().after(HOUR)), ..b.item(MAIN) };
    let waiting = b.save(later);
    for (state, expected, status) in [
        (EntryState::Ready, Some(ready), Some(Status::Pending)),
        (EntryState::Waiting, Some(waiting), Some(Status::Pending)),
        (EntryState::Claimed, Some(claimed), Some(Status::Pending)),
        (EntryState::Blocked, None, None),
        (EntryState::ManualReview, Some(reviewed), Some(Status::Failed)),
        (EntryState::Delivered, Some(ended.key.entry), Some(Status::Delivered)),
        (EntryState::DeadLettered, Some(dead), Some(Status::DeadLettered)),
        (EntryState::Cancelled, Some(cancelled), None),
    ] {
        let filter = EntryFilter {
            destination: Some(name(MAIN)),
            state: Some(state),
            tenant: Some(b.tenant.clone()),
            ..Default::default()
        };
        let rows = b.run(|store| store.entries(filter, ALL)).rows;
        assert_eq!(rows.iter().map(|row| row.key.entry).collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row.state == state && row.status == status), "{state}: {rows:?}");
    }
    let filter = EntryFilter { destination: Some(name("other")), ..Default::default() };
    assert_eq!(b.run(|store| store.entries(filter, ALL)).rows.len(), 1);
}

pub(super) fn an_entry_is_found_in_every_state(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 2);
    b.apply(spec("other"));
    let neighbour = b.item("other");
    b.save(with_event(neighbour, "order.paid", "evt-10"));
    let item = b.item(MAIN);
    let id = b.save(with_event(item, "order.created", "evt-1"));
    let mut states = vec![b.state(id)];
    for outcome in [transient(), transient(), delivered()] {
        if b.state(id) == EntryState::DeadLettered {
            let dead = b.dead_letter_of(id);
            b.redriven(dead.id);
            states.push(b.state(id));
        }
        let claimed = b.claim_one(MAIN);
        states.push(b.state(id));
        b.outcome(&claimed, outcome);
        states.push(b.state(id));
        let filter = EntryFilter { destination: Some(name(MAIN)), state: Some(b.state(id)), ..Default::default() };
        assert_eq!(b.run(|store| store.entries(filter, ALL)).rows.len(), 1, "in exactly one state (I-01)");
        is_found_by_its_event(b, id);
        b.clock.advance(HOUR);
    }
    let seen: Vec<_> = states.into_iter().map(EntryState::as_str).collect();
    assert_eq!(seen, ["ready", "claimed", "waiting", "claimed", "dead_lettered", "ready", "claimed", "delivered"]);
    let unknown = EntryId::from_bytes([1; 16]);
    assert_eq!(b.run(|store| store.entry(b.tenant.clone(), unknown)), None);
}

fn with_event(mut item: NewEntry, event_type: &str, id: &str) -> NewEntry {
    item.envelope.event_type = event_type.into();
    item.envelope.source_event_id = Some(id.into());
    item
}

/// By `evt-1` and `order.created`, exactly, wherever it is.
fn is_found_by_its_event(b: &Bench, entry: EntryId) {
    let found = |event_type: Option<&str>, id: Option<&str>| {
        let filter = EntryFilter {
            event_type: event_type.map(Into::into),
            source_event_id: id.map(Into::into),
            ..Default::default()
        };
        b.run(|store| store.entries(filter, ALL)).rows
    };
    for (event_type, id) in
        [(None, Some("evt-1")), (Some("order.created"), None), (Some("order.created"), Some("evt-1"))]
    {
        let rows = found(event_type, id);
        assert_eq!(rows.iter().map(|row| row.key.entry).collect::<Vec<_>>(), [entry], "{event_type:?} {id:?}");
        let shown = (rows[0].event_type.as_deref(), rows[0].source_event_id.as_deref());
        assert_eq!(shown, (Some("order.created"), Some("evt-1")));
        assert_eq!(rows[0], b.entry(entry).summary, "list and look-up must agree");
    }
    for (event_type, id) in [(Some("order.paid"), Some("evt-1")), (Some("order"), None), (None, Some("evt"))] {
        assert_eq!(found(event_type, id), [], "{event_type:?} {id:?}");
    }
}

pub(super) fn dead_letters_are_listed_and_grouped(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 1);
    b.apply(spec("other"));
    let first = b.dead_letter_at(MAIN);
    b.clock.advance(MINUTE);
    let second = b.dead_letter_at(MAIN);
    b.dead_letter_at("other");
    let entry = b.claimed_at(MAIN);
    b.outcome(&entry, transient());
    let busy = b.dead_letter_of(entry.key.entry);
    b.redriven(second.id);
    let all = b.dead_letters();
    assert!(all.windows(2).all(|pair| pair[0].seq > pair[1].seq), "newest first");
    assert_eq!(all.len(), 4);
    let here = DeadLetterFilter { destination: Some(name(MAIN)), ..Default::default() };
    for (filter, count) in [
        (DeadLetterFilter { tenant: Some(b.tenant.clone()), ..Default::default() }, 4),
        (here.clone(), 3),
        (DeadLetterFilter { class: Some(Class::Transient), ..Default::default() }, 1),
        (DeadLetterFilter { reason: Some(first.reason.clone()), ..here.clone() }, 2),
        (DeadLetterFilter { state: Some(DeadLetterState::Open), ..here.clone() }, 2),
        (DeadLetterFilter { state: Some(DeadLetterState::Disposed), ..here.clone() }, 0),
        (DeadLetterFilter { fingerprint: Some(first.fingerprint.hash), ..Default::default() }, 2),
        (DeadLetterFilter { fingerprint: Some(busy.fingerprint.hash), ..here.clone() }, 1),
        (DeadLetterFilter { fingerprint: Some([0; 16]), ..here.clone() }, 0),
    ] {
        assert_eq!(b.run(|store| store.dead_letters(filter.clone(), ALL)).rows.len(), count, "{filter:?}");
    }
    let of_group =
        DeadLetterFilter { tenant: Some(b.tenant.clone()), fingerprint: Some(first.fingerprint.hash), ..here.clone() };
    let mut request = PageRequest { after: None, limit: 1 };
    for expected in [(second.id, Some(second.seq)), (first.id, None)] {
        let page = b.run(|store| store.dead_letters(of_group.clone(), request));
        assert_eq!((page.rows[0].id, page.next), expected, "a group is listed newest first too");
        request.after = page.next;
    }
    let groups = b.run(|store| store.groups(of_group, 10));
    assert_eq!(groups.iter().map(|group| &group.fingerprint).collect::<Vec<_>>(), [&first.fingerprint]);
    let page = b.run(|store| store.dead_letters(here.clone(), PageRequest { after: None, limit: 1 }));
    assert_eq!((page.rows[0].id, page.next), (busy.id, Some(busy.seq)));
    let groups = b.run(|store| store.groups(here.clone(), 10));
    let counts: Vec<_> = groups.iter().map(|group| (group.reason.as_str(), group.count, group.open)).collect();
    assert_eq!(counts, [("test.refused", 2, 1), ("test.busy", 1, 1)], "most numerous first");
    assert_eq!((groups[0].first, groups[0].last), (first.opened, second.opened));
    assert_eq!((&groups[0].fingerprint, groups[0].class), (&first.fingerprint, Class::Deterministic));
    assert_eq!(b.run(|store| store.groups(here, 1)).len(), 1);
    assert_eq!(b.run(|store| store.groups(DeadLetterFilter::default(), 10)).len(), 3, "a group is of one destination");
}

pub(super) fn totals_are_exact(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 3);
    for outcome in [delivered(), delivered(), refused(), transient(), transient()] {
        let entry = b.claimed_at(MAIN);
        b.outcome(&entry, outcome);
    }
    let cancelled = b.entry_at(MAIN);
    b.act(cancelled, EntryAct::Cancel);
    let dead = b.dead_letters().remove(0);
    b.redriven(dead.id);
    let again = b.claim_one(MAIN);
    b.outcome(&again, refused());
    let stats = b.run(|store| store.stats());
    let row = &stats.destinations[0];
    assert_eq!((stats.now, stats.destinations.len()), (b.now(), 1));
    assert_eq!((row.enqueued_total, row.delivered_total, row.cancelled_total), (7, 2, 1));
    let charged: u32 = b
        .run(|store| store.entries(EntryFilter::default(), ALL))
        .rows
        .iter()
        .flat_map(|row| b.entry(row.key.entry).attempts)
        .map(|attempt| u32::from(attempt.charged))
        .sum();
    assert_eq!(row.failed_attempts_total, u64::from(charged), "as many as the attempts say");
    let totals: Vec<_> = stats.dead_letters.iter().map(|total| (total.reason.as_str(), total.total)).collect();
    assert_eq!(totals, [("test.refused", 2)], "the second generation's too");
}

pub(super) fn depth_and_age_follow_the_clock(b: &mut Bench) {
    b.main(|_| ());
    let start = b.now();
    b.entry_at(MAIN);
    let later = NewEntry { not_before: Some(start.after(HOUR)), ..b.item(MAIN) };
    b.save(later);
    let figures = |b: &Bench| {
        let row = b.run(|store| store.stats()).destinations.remove(0);
        (row.depth.ready, row.depth.waiting, row.depth.claimed, row.oldest_due)
    };
    assert_eq!(figures(b), (1, 1, 0, Some(start)));
    b.claim_one(MAIN);
    assert_eq!(figures(b), (0, 1, 1, None));
    b.clock.advance(HOUR);
    assert_eq!(figures(b), (1, 0, 1, Some(start.after(HOUR))));
    b.clock.step_back(MINUTE);
    assert_eq!(figures(b), (0, 1, 1, None), "the clock may go back");
    let view = b.run(|store| store.destinations(None, None, 10)).remove(0);
    assert_eq!(view.depth, Depth { waiting: 1, claimed: 1, ..Depth::default() });
    b.hold(MAIN);
    assert!(b.run(|store| store.stats()).destinations[0].held);
}

pub(super) fn workers_are_listed(b: &mut Bench) {
    b.main(|_| ());
    let first = b.new_worker(HOUR);
    b.clock.advance(SECOND);
    b.run(|store| store.stop_worker(first));
    let ended = b.now();
    b.clock.advance(SECOND);
    let second = b.new_worker(HOUR);
    b.claimed_at(MAIN);
    let rows = b.run(|store| store.workers(10));
    let seen: Vec<_> = rows.iter().map(|row| (row.incarnation, row.claims, row.ended)).collect();
    assert_eq!(seen, [(second, 1, None), (first, 0, Some(ended))], "newest first");
    assert_eq!((rows[0].started, rows[0].lease_until), (b.now(), b.now().after(HOUR)));
    assert_eq!((rows[0].worker.as_str(), rows[0].pid), ("worker-1", 7));
    assert_eq!(b.run(|store| store.workers(1)).len(), 1);
}

pub(super) fn lists_are_bounded(b: &mut Bench) {
    b.main(|_| ());
    let tenant = b.tenant.clone();
    for limit in [0, MAX_PAGE + 1] {
        let page = PageRequest { after: None, limit };
        assert_eq!(b.fail(|store| store.entries(EntryFilter::default(), page)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.dead_letters(DeadLetterFilter::default(), page)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.groups(DeadLetterFilter::default(), limit)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.destinations(None, None, limit)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.workers(limit)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.audit_events(None, page)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.redrive_ledger(tenant.clone(), page)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.check(limit)), StoreErrorKind::Invalid);
        assert_eq!(b.fail(|store| store.overdue(tenant.clone(), name(MAIN), HOUR, limit)), StoreErrorKind::Invalid);
    }
    b.apply(spec("other"));
    let after = Some((tenant.clone(), name(MAIN)));
    let rest = b.run(|store| store.destinations(Some(tenant), after, 10));
    assert_eq!((rest.len(), rest[0].destination.spec.name.as_str()), (1, "other"));
}

pub(super) fn no_payload_byte_is_shown(b: &mut Bench) {
    b.main(|_| ());
    let live = b.entry_at(MAIN);
    let claimed = b.claim_one(MAIN);
    let transition = b.decide(&claimed, &Event::Emitted(transient()));
    b.settle_under(&claimed, version_ref(&claimed).fence, transition);
    let dead = b.dead_letter_at(MAIN);
    let shown = format!(
        "{:?} {:?} {:?} {:?}",
        b.entry(live),
        b.run(|store| store.entries(EntryFilter::default(), ALL)),
        b.run(|store| store.dead_letter(b.tenant.clone(), dead.id)),
        b.run(|store| store.stats()),
    );
    assert!(!shown.contains("do-not-show") && PAYLOAD.contains("do-not-show"), "I-13");
    let described = b.run(|store| store.describe());
    assert!(!described.kind.is_empty() && !described.promises.is_empty());
}
