//! Operators' acts on destinations and live entries, each with its audit event (I-12).

use dlo_core::{
    Class, DeadLetterState, DestinationName, EntryState, Lane, Status, TransitionResult, decide::Event,
    limits::MAX_PAGE, policy::Alternative, reason, text::ActText,
};

use super::bench::{ALL, Bench, HOUR, MAIN, MINUTE, SECOND, claim_ref, delivered, ids, name, refused, spec, transient};
use crate::{
    StoreErrorKind,
    store::{ActResult, Applied, AppliedChange, EntryAct, HoldAct},
};

pub(super) fn destinations_have_versions(b: &mut Bench) {
    let mut changed = spec(MAIN);
    changed.policy.concurrency = 3;
    let other = spec("other");
    for (specs, expected) in [
        (vec![spec(MAIN)], vec![(1, AppliedChange::Created)]),
        (vec![spec(MAIN)], vec![(1, AppliedChange::Unchanged)]),
        (vec![other, changed.clone()], vec![(1, AppliedChange::Created), (2, AppliedChange::Updated)]),
        (vec![spec(MAIN), changed.clone()], vec![(3, AppliedChange::Updated), (4, AppliedChange::Updated)]),
    ] {
        b.clock.advance(SECOND);
        let audit = b.audit("destination.apply");
        let names: Vec<DestinationName> = specs.iter().map(|spec| spec.name.clone()).collect();
        let applied = b.run(|store| store.apply_destinations(specs, audit));
        let expected: Vec<Applied> = expected
            .into_iter()
            .zip(names)
            .map(|((version, change), destination)| Applied { destination, version, change })
            .collect();
        assert_eq!(applied, expected);
    }
    let (stored, health) = b.run(|store| store.destination(b.tenant.clone(), name(MAIN))).unwrap();
    assert_eq!((stored.version, stored.applied, stored.spec), (4, b.now(), changed));
    assert_eq!(health, dlo_core::Health::default());
    assert_eq!(b.run(|store| store.destination(b.tenant.clone(), name("nowhere"))), None);
    let all = b.run(|store| store.destinations(None, None, 10));
    let order: Vec<_> = all.iter().map(|view| view.destination.spec.name.as_str()).collect();
    assert_eq!(order, [MAIN, "other"]);
}

pub(super) fn applying_keeps_health(b: &mut Bench) {
    b.main(|_| ());
    b.hold(MAIN);
    b.main(|main| main.policy.page = 7);
    assert!(b.health(MAIN).manual.is_some());
    let entry = b.entry_at(MAIN);
    b.hold_act(MAIN, HoldAct::Release);
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, refused());
    assert_eq!(b.dead_letter_of(entry).destination_version, 2, "the version at the end is recorded");
}

pub(super) fn an_entry_is_cancelled_unless_claimed_or_ended(b: &mut Bench) {
    b.main(|_| ());
    let delivered_entry = b.claimed_at(MAIN);
    b.outcome(&delivered_entry, delivered());
    let dead = b.dead_letter_at(MAIN);
    let claimed = b.claimed_at(MAIN);
    let ready = b.entry_at(MAIN);
    let unknown = dlo_core::EntryId::from_bytes([1; 16]);
    let audit = b.audit("entry.cancel");
    let acts = [unknown, delivered_entry.key.entry, dead.key.entry, claimed.key.entry, ready, ready]
        .map(|entry| (entry, EntryAct::Cancel));
    let tenant = b.tenant.clone();
    let results = b.run(|store| store.act_on_entries(tenant, acts.to_vec(), audit));
    let expected = [
        ActResult::Missing,
        ActResult::WrongState("delivered"),
        ActResult::WrongState("dead_lettered"),
        ActResult::WrongState("claimed"),
        ActResult::Done,
        ActResult::WrongState("cancelled"),
    ];
    assert_eq!(results, expected);
    let view = b.entry(ready);
    assert_eq!((view.summary.state, view.summary.status), (EntryState::Cancelled, None), "outside S-03");
    assert_eq!((view.ended[0].at, view.live), (b.now(), None));
    assert!(b.claim(MAIN, 10).is_empty());
    assert_eq!(b.outcome(&claimed, delivered()), TransitionResult::Applied);
}

pub(super) fn retry_now_brings_forward(b: &mut Bench) {
    b.main(|_| ());
    let failed = b.claimed_at(MAIN);
    b.outcome(&failed, transient());
    let id = failed.key.entry;
    let before = b.live(id);
    let soon = b.now().after(SECOND);
    assert_eq!(b.act(id, EntryAct::RetryNow { due: soon }), ActResult::Done);
    let row = b.live(id);
    assert_eq!((row.due, row.lane, row.version), (soon, Lane::Retry, before.version + 1));
    assert_eq!((row.status, &row.progress), (before.status, &before.progress), "nothing is charged or forgotten");
    for due in [soon, soon.after(HOUR)] {
        assert_eq!(b.act(id, EntryAct::RetryNow { due }), ActResult::Unchanged, "due at that time at the latest");
    }
    b.clock.advance(SECOND);
    assert_eq!(ids(&b.claim(MAIN, 10)), [id]);
    let due = b.now();
    assert_eq!(b.act(id, EntryAct::RetryNow { due }), ActResult::WrongState("claimed"));
}

/// A destination that sets entries aside after their first failure.
fn reviewing(b: &mut Bench) {
    b.main(|main| {
        main.policy.max_retry_attempts = 1;
        main.policy.dead_letter_on_max_retry_attempts = false;
        main.policy.alternative = Some(Alternative::ManualReview);
    });
}

pub(super) fn retry_now_out_of_manual_review_starts_a_generation(b: &mut Bench) {
    reviewing(b);
    let id = b.reviewed_at(MAIN);
    let before = b.live(id);
    b.clock.advance(MINUTE);
    let due = b.now().after(MINUTE);
    assert_eq!(b.act(id, EntryAct::RetryNow { due }), ActResult::Done);
    let row = b.live(id);
    assert_eq!((row.key.generation, row.manual_review, row.lane), (1, false, Lane::Pending));
    assert_eq!((row.due, row.created, row.status, row.version), (due, b.now(), Status::Pending, 1));
    assert_eq!(
        (row.baseline, row.failed_in_generation()),
        (before.progress.counters, 0),
        "the allowance is new (I-07)"
    );
    assert_eq!((&row.operation_key, row.first_claimed), (&before.operation_key, before.first_claimed), "I-11");
    assert!(row.seq > before.seq);
    let view = b.entry(id);
    assert_eq!(
        b.run(|store| store.stats()).destinations[0].enqueued_total,
        2,
        "a generation is counted as a redrive is"
    );
    assert!(view.ended.is_empty(), "the old generation ended in none of the three ways");
    assert_eq!(view.attempts.len(), 1, "and its attempt stays");
    b.clock.set(due);
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, transient());
    assert_eq!(b.state(id), EntryState::ManualReview, "the new generation used its own allowance");
    assert_eq!(b.act(id, EntryAct::Cancel), ActResult::Done);
}

pub(super) fn dead_lettering_by_hand_is_for_manual_review(b: &mut Bench) {
    reviewing(b);
    let ready = b.entry_at(MAIN);
    let row = b.live(ready);
    let draft = |b: &mut Bench, row: &dlo_core::Entry| {
        let id = dlo_core::DeadLetterId::new(b.now(), b.random());
        Box::new(dlo_core::dead_letter::by_operator(
            id,
            row.progress.last_failure.as_ref(),
            &row.destination,
            &"given up".into(),
        ))
    };
    let refused_draft = draft(b, &row);
    assert_eq!(b.act(ready, EntryAct::DeadLetter(refused_draft)), ActResult::WrongState("ready"));
    b.act(ready, EntryAct::Cancel);
    let reviewed = b.reviewed_at(MAIN);
    let row = b.live(reviewed);
    let given = draft(b, &row);
    assert_eq!(b.act(reviewed, EntryAct::DeadLetter(given.clone())), ActResult::Done);
    let record = b.dead_letter_of(reviewed);
    assert_eq!(
        (record.id, record.code, record.state),
        (given.id, reason::DEAD_LETTERED_BY_OPERATOR, DeadLetterState::Open)
    );
    assert_eq!((record.class, record.last_failure), (Class::Transient, row.progress.last_failure.clone()), "D12");
    assert_eq!(b.state(reviewed), EntryState::DeadLettered);
    let again = draft(b, &row);
    assert_eq!(b.act(reviewed, EntryAct::DeadLetter(again)), ActResult::WrongState("dead_lettered"));
    b.redriven(record.id);
}

pub(super) fn every_act_has_its_audit_event(b: &mut Bench) {
    b.main(|_| ());
    let dead = b.dead_letter_at(MAIN);
    let unknown = dlo_core::EntryId::from_bytes([1; 16]);
    b.clock.advance(SECOND);
    let since = b.run(|store| store.audit_events(None, ALL)).rows.len();
    b.hold("nowhere");
    b.act(unknown, EntryAct::Cancel);
    b.redrive(vec![dlo_core::DeadLetterId::from_bytes([2; 16])]);
    b.redrive(vec![dead.id]);
    b.main(|_| ());
    let events = b.run(|store| store.audit_events(Some(b.tenant.clone()), ALL)).rows;
    let acts: Vec<_> = events.iter().rev().skip(since).map(|event| event.act.as_str()).collect();
    let expected = ["destination.act", "entry.act", "dead_letter.redrive", "dead_letter.redrive", "destination.apply"];
    assert_eq!(acts, expected, "also where nothing came of it");
    let event = &events[0];
    assert_eq!((event.actor.as_str(), event.strength.as_str(), event.at), ("local:alice", "asserted", b.now()));
    assert_eq!((event.target.as_str(), event.reason.as_ref().map(ActText::as_str)), ("target", Some("because")));
    assert_eq!(event.detail_json, r#"{"count":"1"}"#);
    assert!(events.windows(2).all(|pair| pair[0].seq > pair[1].seq), "newest first");
    let elsewhere = dlo_core::TenantId::new("elsewhere").unwrap();
    assert!(b.run(|store| store.audit_events(Some(elsewhere), ALL)).rows.is_empty());
}

pub(super) fn acts_are_bounded(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.entry_at(MAIN);
    let events = b.run(|store| store.audit_events(None, ALL)).rows.len();
    let audit = b.audit("entry.cancel");
    let tenant = b.tenant.clone();
    let acts = vec![(entry, EntryAct::Cancel); MAX_PAGE + 1];
    assert_eq!(b.fail(|store| store.act_on_entries(tenant, acts, audit)), StoreErrorKind::Invalid);
    assert_eq!(b.state(entry), EntryState::Ready, "nothing of it was done");
    assert_eq!(b.run(|store| store.audit_events(None, ALL)).rows.len(), events, "nor recorded");
    let claimed = b.claim_one(MAIN);
    let transition = b.decide(&claimed, &Event::Emitted(delivered()));
    assert_eq!(b.settle_under(&claimed, claim_ref(&claimed).fence, transition), TransitionResult::Applied);
}
