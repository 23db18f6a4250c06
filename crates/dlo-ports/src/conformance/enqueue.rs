//! Enqueue: what is saved, what is answered, what is refused.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dlo_core::{
    EnqueueKey, EntryState, NewEntry, OperationKey, Payload, ProducerId, Status, TenantId, TransitionResult,
    limits::{MAX_ENQUEUE_BATCH, MAX_FAN_OUT},
};

use super::bench::{Bench, HOUR, MAIN, MINUTE, SECOND, delivered, ids, name, spec};
use crate::{
    StoreErrorKind,
    store::{EnqueueAnswer, EntryFilter, Refusal},
};

pub(super) fn created_entries_stand_in_order(b: &mut Bench) {
    b.apply(spec("b"));
    b.apply(spec("a"));
    let item = b.item_for(&["b", "a"]);
    let sent = item.envelope.clone();
    let EnqueueAnswer::Created { envelope, entries } = b.enqueue(item) else { panic!("must be created") };
    assert_eq!(envelope, sent.id);
    let order: Vec<_> = entries.iter().map(|(_, destination)| destination.as_str()).collect();
    assert_eq!(order, ["b", "a"], "entries stand in the order of the destinations");
    let (first, second) = (b.entry(entries[0].0), b.entry(entries[1].0));
    assert!(first.summary.seq < second.summary.seq, "sequence is save order");
    let live = first.live.unwrap();
    assert_eq!((live.key.generation, live.version, live.status), (0, 1, Status::Pending));
    assert_eq!((live.created, live.due, live.claim), (b.now(), b.now(), None));
    assert_eq!(first.summary.state, EntryState::Ready);
    let view = first.envelope.unwrap();
    assert_eq!((view.id, view.payload.sha256), (sent.id, sent.payload.sha256()));
}

pub(super) fn a_repeated_key_is_existing(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    b.save(item.clone());
    assert_eq!(b.enqueue(item.clone()), EnqueueAnswer::Existing { envelope: item.envelope.id });
    // Another envelope id with the same key and content is the same event: the first id is answered.
    let mut again = b.item(MAIN);
    again.enqueue_key = Some(item.envelope.default_enqueue_key());
    assert_eq!(b.enqueue(again), EnqueueAnswer::Existing { envelope: item.envelope.id });
    assert_eq!(b.claim(MAIN, 10).len(), 1, "nothing was added");
}

pub(super) fn other_content_under_a_key_is_a_conflict(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    b.save(item.clone());
    let mut other = item.clone();
    other.envelope.subject = Some("another".into());
    assert_eq!(b.enqueue(other), EnqueueAnswer::Conflict { envelope: item.envelope.id });
    assert_eq!(b.claim(MAIN, 10).len(), 1, "nothing was added");
}

pub(super) fn keys_belong_to_tenant_and_producer(b: &mut Bench) {
    b.main(|_| ());
    let elsewhere = TenantId::new("elsewhere").unwrap();
    let mut there = spec(MAIN);
    there.tenant = elsewhere.clone();
    b.apply(there);
    let key = Some(EnqueueKey::new("order-1").unwrap());
    let first = NewEntry { enqueue_key: key.clone(), ..b.item(MAIN) };
    let by_another =
        NewEntry { producer: ProducerId::new("billing").unwrap(), enqueue_key: key.clone(), ..b.item(MAIN) };
    let mut of_another = NewEntry { enqueue_key: key, ..b.item(MAIN) };
    of_another.envelope.tenant = elsewhere;
    for item in [first, by_another, of_another] {
        assert!(matches!(b.enqueue(item), EnqueueAnswer::Created { .. }));
    }
}

pub(super) fn a_batch_sees_its_own_keys(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    let mut changed = item.clone();
    changed.envelope.subject = Some("changed".into());
    let answers = b.run(|store| store.enqueue(vec![item.clone(), item.clone(), changed]));
    assert!(matches!(answers[0], EnqueueAnswer::Created { .. }));
    assert_eq!(answers[1], EnqueueAnswer::Existing { envelope: item.envelope.id });
    assert_eq!(answers[2], EnqueueAnswer::Conflict { envelope: item.envelope.id });
}

pub(super) fn routing_by_event_type_is_in_name_order(b: &mut Bench) {
    for (destination, rule) in [("z", "order.*"), ("a", "order.created"), ("m", "invoice.*")] {
        let mut routed = spec(destination);
        routed.event_types = vec![rule.parse().unwrap()];
        b.apply(routed);
    }
    let item = b.item_for(&[]);
    let EnqueueAnswer::Created { entries, .. } = b.enqueue(item) else { panic!("must be created") };
    let order: Vec<_> = entries.iter().map(|(_, destination)| destination.as_str()).collect();
    assert_eq!(order, ["a", "z"]);
}

pub(super) fn a_refused_item_saves_nothing(b: &mut Bench) {
    b.main(|_| ());
    let lost = b.item_for(&[MAIN, "nowhere"]);
    let good = b.item(MAIN);
    let answers = b.run(|store| store.enqueue(vec![lost.clone(), good]));
    assert!(matches!(answers[0], EnqueueAnswer::Refused(Refusal::UnknownDestination { .. })));
    assert!(matches!(answers[1], EnqueueAnswer::Created { .. }), "the other item goes on");
    assert_eq!(b.claim(MAIN, 10).len(), 1, "no part of the refused item was saved");
    // Its key is free: the same item is saved once its destination is there.
    b.apply(spec("nowhere"));
    assert!(matches!(b.enqueue(lost), EnqueueAnswer::Created { .. }));
}

pub(super) fn refusals_name_the_rule(b: &mut Bench) {
    b.main(|_| ());
    let blank = {
        let mut item = b.item(MAIN);
        item.envelope.event_type = " ".into();
        item
    };
    let wide = NewEntry { destinations: vec![name(MAIN); MAX_FAN_OUT + 1], ..b.item(MAIN) };
    let lost = b.item("nowhere");
    let unrouted = b.item_for(&[]);
    let (now, deliver_by) = (b.now(), b.now());
    let late = NewEntry { deliver_by: Some(deliver_by), ..b.item(MAIN) };
    let tenant = b.tenant.clone();
    for (item, expected) in [
        (blank.clone(), Refusal::Envelope(blank.envelope.validate().unwrap_err())),
        (wide, Refusal::FanOut { seen: MAX_FAN_OUT + 1, limit: MAX_FAN_OUT }),
        (lost, Refusal::UnknownDestination { tenant: tenant.clone(), destination: name("nowhere") }),
        (unrouted, Refusal::NoRoute { tenant }),
        (late, Refusal::DeadlinePassed { deliver_by, earliest: now }),
    ] {
        assert_eq!(b.enqueue(item), EnqueueAnswer::Refused(expected));
    }
}

pub(super) fn checks_have_an_order(b: &mut Bench) {
    b.main(|main| main.policy.backlog_limit = 1);
    let item = b.item(MAIN);
    b.save(item.clone());
    let existing = EnqueueAnswer::Existing { envelope: item.envelope.id };
    let code = |answer: EnqueueAnswer| match answer {
        EnqueueAnswer::Refused(refusal) => refusal.code(),
        other => panic!("must be refused: {other:?}"),
    };
    let mut blank = NewEntry { destinations: vec![name(MAIN); MAX_FAN_OUT + 1], ..item.clone() };
    blank.envelope.event_type = String::new();
    assert_eq!(code(b.enqueue(blank)), "enqueue.envelope_invalid", "the envelope comes before the fan-out");
    let wide = NewEntry { destinations: vec![name(MAIN); MAX_FAN_OUT + 1], ..item.clone() };
    assert_eq!(code(b.enqueue(wide)), "enqueue.fan_out", "the fan-out comes before the key");
    let lost = NewEntry { destinations: vec![name("nowhere")], ..item.clone() };
    assert_eq!(b.enqueue(lost), existing, "the key comes before the destination");
    let late = Some(b.now());
    let lost = NewEntry { deliver_by: late, ..b.item("nowhere") };
    assert_eq!(code(b.enqueue(lost)), "enqueue.unknown_destination", "the destination comes before the deadline");
    let late = NewEntry { deliver_by: late, ..b.item(MAIN) };
    assert_eq!(code(b.enqueue(late)), "enqueue.deadline_passed", "the deadline comes before the backlog");
    let full = b.item(MAIN);
    assert_eq!(code(b.enqueue(full)), "enqueue.backlog_full");
}

pub(super) fn deliver_by_must_leave_time(b: &mut Bench) {
    b.main(|_| ());
    let now = b.now();
    for (not_before, deliver_by, saved) in [
        (None, now, false),
        (None, now.after(SECOND), true),
        (Some(now.after(HOUR)), now.after(MINUTE), false),
        (Some(now.after(HOUR)), now.after(HOUR), false),
        (Some(now.after(HOUR)), now.after(HOUR + SECOND), true),
        (Some(now.before(HOUR)), now, false),
    ] {
        let answer = b.enqueue_with(not_before, Some(deliver_by));
        assert_eq!(matches!(answer, EnqueueAnswer::Created { .. }), saved, "{not_before:?} {deliver_by:?} {answer:?}");
    }
}

pub(super) fn not_before_waits(b: &mut Bench) {
    b.main(|_| ());
    let later = b.now().after(HOUR);
    let waits = NewEntry { not_before: Some(later), ..b.item(MAIN) };
    let waits = b.save(waits);
    let past = NewEntry { not_before: Some(b.now().before(HOUR)), ..b.item(MAIN) };
    let past = b.save(past);
    assert_eq!((b.state(waits), b.entry(waits).summary.due), (EntryState::Waiting, Some(later)));
    assert_eq!(b.entry(waits).summary.status, Some(Status::Pending), "never tried is pending (S-03)");
    assert_eq!(b.live(past).due, b.now(), "a time that has passed delays nothing");
    assert_eq!(ids(&b.claim(MAIN, 10)), [past]);
    b.clock.set(later);
    assert_eq!(ids(&b.claim(MAIN, 10)), [waits]);
}

pub(super) fn the_backlog_counts_live_entries_of_the_batch_too(b: &mut Bench) {
    b.main(|main| main.policy.backlog_limit = 2);
    let items = vec![b.item(MAIN), b.item(MAIN), b.item(MAIN)];
    let answers = b.run(|store| store.enqueue(items));
    assert!(matches!(answers[1], EnqueueAnswer::Created { .. }));
    let full = EnqueueAnswer::Refused(Refusal::BacklogFull { destination: name(MAIN), seen: 2, limit: 2 });
    assert_eq!(answers[2], full);
    let claimed = b.claim_one(MAIN);
    let item = b.item(MAIN);
    assert_eq!(b.enqueue(item), full, "a claimed entry is live");
    assert_eq!(b.outcome(&claimed, delivered()), TransitionResult::Applied);
    b.entry_at(MAIN);
}

pub(super) fn operation_keys_are_given_or_made(b: &mut Bench) {
    b.main(|_| ());
    let made = b.entry_at(MAIN);
    assert_eq!(b.entry(made).operation_key, made.operation_key());
    let key = OperationKey::new("pay-42").unwrap();
    let given = NewEntry { operation_key: Some(key.clone()), ..b.item(MAIN) };
    let given = b.save(given);
    assert_eq!(b.entry(given).operation_key, key);
}

pub(super) fn a_destination_named_twice_gets_one_entry(b: &mut Bench) {
    b.main(|_| ());
    b.apply(spec("other"));
    let item = b.item_for(&[MAIN, "other", MAIN]);
    let EnqueueAnswer::Created { entries, .. } = b.enqueue(item) else { panic!("must be created") };
    let order: Vec<_> = entries.iter().map(|(_, destination)| destination.as_str()).collect();
    assert_eq!(order, [MAIN, "other"]);
}

pub(super) fn tenants_are_apart(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.entry_at(MAIN);
    let mut there = spec(MAIN);
    there.tenant = TenantId::new("elsewhere").unwrap();
    b.apply(there.clone());
    b.tenant = there.tenant;
    assert!(b.claim(MAIN, 10).is_empty());
    assert_eq!(b.run(|store| store.entry(b.tenant.clone(), entry)), None);
    let filter = EntryFilter { tenant: Some(b.tenant.clone()), ..Default::default() };
    assert!(b.run(|store| store.entries(filter, super::bench::ALL)).rows.is_empty());
    b.tenant = TenantId::default_tenant();
    assert_eq!(ids(&b.claim(MAIN, 10)), [entry]);
}

pub(super) fn change_hooks_are_called(b: &mut Bench) {
    b.main(|_| ());
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    b.store().on_change(Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    let took = |b: &mut Bench, what: &str, act: &mut dyn FnMut(&mut Bench)| {
        let before = calls.load(Ordering::SeqCst);
        act(b);
        assert!(calls.load(Ordering::SeqCst) > before, "{what} may make work ready");
    };
    took(b, "enqueue", &mut |b| {
        b.entry_at(MAIN);
    });
    b.hold(MAIN);
    took(b, "a release of a hold", &mut |b| {
        b.hold_act(MAIN, crate::store::HoldAct::Release);
    });
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, super::bench::refused());
    let dead_letter = b.dead_letter_of(claimed.key.entry);
    took(b, "a redrive", &mut |b| {
        b.redrive(vec![dead_letter.id]);
    });
}

pub(super) fn batches_are_bounded(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    assert_eq!(b.fail(|store| store.enqueue(vec![item; MAX_ENQUEUE_BATCH + 1])), StoreErrorKind::Invalid);
    assert!(b.claim(MAIN, 1).is_empty(), "nothing of it was saved");
    assert!(b.run(|store| store.enqueue(Vec::new())).is_empty());
    let mut empty = b.item(MAIN);
    empty.envelope.payload = Payload::None;
    b.save(empty);
}

impl Bench {
    fn enqueue_with(
        &mut self,
        not_before: Option<dlo_core::Timestamp>,
        deliver_by: Option<dlo_core::Timestamp>,
    ) -> EnqueueAnswer {
        let item = NewEntry { not_before, deliver_by, ..self.item(MAIN) };
        self.enqueue(item)
    }
}
