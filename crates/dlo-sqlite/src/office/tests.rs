#![allow(clippy::unwrap_used, reason = "tests")]
//! What an act leaves in the file. The answers of acts are the conformance suite's.

use dlo_core::{DeadLetterId, Duplicates, EntryState, NewEntry, Status, TenantId, dead_letter::by_operator};
use dlo_ports::store::{ActResult, AppliedChange, EntryAct, HoldAct, RedriveResult};

use crate::{
    catalog, read,
    testing::{ALL, HARMFUL, MAIN, REVIEWED, World, busy, name, refused, spec, tenant, unanswered},
    turn::read_health,
};

fn state(world: &World, entry: dlo_core::EntryId) -> EntryState {
    read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().summary.state
}

#[test]
fn an_invalid_policy_applies_nothing_and_says_why() {
    let mut world = World::new();
    let mut bad = spec("second");
    bad.policy.page = 0;
    let events = world.number("SELECT count(*) FROM dlo_audit_event");
    let error = world.apply(vec![spec("first"), bad]).unwrap_err();
    assert_eq!(error.code(), "store.invalid");
    let said = error.to_string();
    assert!(["default/second", "`page`", "0", "1 to 1000"].iter().all(|part| said.contains(part)), "{said}");
    assert_eq!(catalog::latest(&world.conn, &tenant(), &name("first")).unwrap(), None);
    assert_eq!(world.number("SELECT count(*) FROM dlo_audit_event"), events);
}

#[test]
fn only_a_change_makes_a_version() {
    let mut world = World::new();
    let mut main = spec(MAIN);
    main.owner = Some("team".to_owned());
    let applied = world.apply(vec![spec(MAIN), main.clone(), main]).unwrap();
    let seen: Vec<_> = applied.iter().map(|one| (one.version, one.change)).collect();
    assert_eq!(seen, [(1, AppliedChange::Unchanged), (2, AppliedChange::Updated), (2, AppliedChange::Unchanged)]);
    assert_eq!(world.number("SELECT count(*) FROM dlo_destination WHERE name = 'main'"), 2);
}

#[test]
fn a_destination_of_a_newer_binary_is_not_overwritten() {
    let mut world = World::new();
    world.tamper("UPDATE dlo_destination SET schema = 2 WHERE name = ?1", [MAIN]);
    let error = world.apply(vec![spec(MAIN)]).unwrap_err();
    assert_eq!(error.code(), "store.schema");
    assert!(error.to_string().contains("newer binary wrote it"), "{error}");
}

#[test]
fn every_change_of_health_is_one_version() {
    let mut world = World::new();
    let hold = HoldAct::Hold { reason: "maintenance".into() };
    let steps = [
        (HoldAct::Probe, ActResult::WrongState("open"), 0),
        (HoldAct::Release, ActResult::Unchanged, 0),
        (hold.clone(), ActResult::Done, 1),
        (hold, ActResult::Unchanged, 1),
        (HoldAct::Probe, ActResult::Done, 2),
        (HoldAct::Probe, ActResult::Unchanged, 2),
        (HoldAct::Release, ActResult::Done, 3),
    ];
    for (act, result, version) in steps {
        assert_eq!(world.hold_act(MAIN, &act), result, "{act:?}");
        assert_eq!(read_health(&world.conn, &tenant(), &name(MAIN)).unwrap().version, version, "{act:?}");
    }
    assert_eq!(world.hold_act("nowhere", &HoldAct::Release), ActResult::Missing);
    let last = &read::audit_events(&world.conn, None, ALL).unwrap().rows[0];
    assert_eq!((last.actor.as_str(), last.strength.as_str()), ("local:operator", "asserted"));
    assert_eq!(last.detail_json, r#"{"count":"1"}"#);
}

#[test]
fn cancel_moves_to_history_and_lets_go_of_the_body() {
    let mut world = World::new();
    let entry = world.save(MAIN);
    assert_eq!(world.act(entry, EntryAct::Cancel), ActResult::Done);
    assert_eq!(state(&world, entry), EntryState::Cancelled);
    assert_eq!(world.number("SELECT count(*) FROM dlo_envelope"), 0);
    assert_eq!(world.act(entry, EntryAct::Cancel), ActResult::WrongState("cancelled"));
    let reviewed = world.ended(REVIEWED, busy());
    assert_eq!(world.act(reviewed, EntryAct::Cancel), ActResult::Done);
    assert_eq!(world.check(), []);
}

#[test]
fn a_fan_out_keeps_its_envelope_until_the_last_is_cancelled() {
    let mut world = World::new();
    let item = world.item(MAIN);
    let item = NewEntry { destinations: vec![name(MAIN), name(HARMFUL)], ..item };
    let first = world.save_item(item);
    world.act(first, EntryAct::Cancel);
    assert_eq!(world.number("SELECT refs FROM dlo_envelope"), 1);
    assert_eq!(world.check(), []);
}

#[test]
fn acts_refuse_what_is_claimed_ended_or_unknown() {
    let mut world = World::new();
    let claimed = world.save(MAIN);
    world.claim(MAIN);
    let dead = world.dead(HARMFUL);
    let due = world.now;
    let unknown = dlo_core::EntryId::from_bytes([1; 16]);
    for act in [EntryAct::Cancel, EntryAct::RetryNow { due }] {
        assert_eq!(world.act(claimed, act.clone()), ActResult::WrongState("claimed"));
        assert_eq!(world.act(dead.key.entry, act.clone()), ActResult::WrongState("dead_lettered"));
        assert_eq!(world.act(unknown, act), ActResult::Missing);
    }
    assert_eq!(world.check(), []);
}

#[test]
fn retry_now_brings_the_due_time_forward_and_nothing_else() {
    let mut world = World::new();
    let entry = world.save(MAIN);
    let page = world.claim(MAIN);
    world.settle(&page[0], busy());
    let before = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    world.advance(1);
    let due = world.now;
    assert_eq!(world.act(entry, EntryAct::RetryNow { due }), ActResult::Done);
    assert_eq!(world.act(entry, EntryAct::RetryNow { due }), ActResult::Unchanged);
    let after = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    let expected = dlo_core::Entry { due, updated: due, version: before.version + 1, ..before };
    assert_eq!(after, expected);
    assert_eq!(world.act(entry, EntryAct::DeadLetter(Box::new(draft(&after)))), ActResult::WrongState("ready"));
}

fn draft(entry: &dlo_core::Entry) -> dlo_core::DeadLetterDraft {
    by_operator(
        DeadLetterId::from_bytes([5; 16]),
        entry.progress.last_failure.as_ref(),
        &entry.destination,
        &"not worth it".into(),
    )
}

#[test]
fn out_of_review_the_row_is_the_next_generation() {
    let mut world = World::new();
    let entry = world.ended(REVIEWED, busy());
    let before = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    assert!(before.manual_review);
    world.advance(60);
    let due = world.now.after(core::time::Duration::from_secs(5));
    assert_eq!(world.act(entry, EntryAct::RetryNow { due }), ActResult::Done);
    let after = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    assert_eq!(after, before.next_generation(1, after.seq, due, world.now));
    assert!(after.seq > before.seq);
    assert_eq!(world.check(), []);
}

#[test]
fn out_of_review_into_quarantine() {
    let mut world = World::new();
    let entry = world.ended(REVIEWED, busy());
    let live = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    let draft = draft(&live);
    assert_eq!(world.act(entry, EntryAct::DeadLetter(Box::new(draft.clone()))), ActResult::Done);
    let dead = world.dead_letter_of(entry);
    assert_eq!((dead.code, dead.message, dead.fingerprint), (draft.code, draft.message, draft.fingerprint));
    assert_eq!((dead.last_failure, dead.counters), (live.progress.last_failure, live.progress.counters));
    assert_eq!(dead.event_type.as_deref(), Some("test.happened"));
    assert_eq!(world.check(), []);
}

#[test]
fn a_redriven_row_is_the_next_generation_of_what_ended() {
    let mut world = World::new();
    let item = world.item(MAIN);
    let deadline = world.now.after(core::time::Duration::from_hours(24));
    let entry = world.save_item(NewEntry { deliver_by: Some(deadline), ..item });
    let claimed = world.claim(MAIN).remove(0);
    world.settle(&claimed, refused());
    let dead = world.dead_letter_of(entry);
    world.advance(60);
    let key = dlo_core::EntryKey { generation: 1, ..dead.key.clone() };
    assert_eq!(world.redrive(&[dead.id]).unwrap(), [RedriveResult::Redriven { key }]);
    let after = read::entry(&world.conn, world.now, &tenant(), entry).unwrap().unwrap().live.unwrap();
    let mut ended = claimed.entry;
    ended.progress.counters = dead.counters;
    ended.progress.attempts = dead.attempts;
    assert_eq!(after, ended.next_generation(1, after.seq, world.now, world.now));
    assert_eq!((after.status, after.deliver_by), (Status::Pending, Some(deadline)));
    assert_eq!(world.check(), []);
}

#[test]
fn every_item_has_a_ledger_row_and_a_release_happens_once() {
    let mut world = World::new();
    let (first, second) = (world.dead(MAIN), world.dead(MAIN));
    let missing = DeadLetterId::from_bytes([1; 16]);
    let results = world.redrive(&[first.id, first.id, missing]).unwrap();
    assert!(matches!(results[0], RedriveResult::Redriven { .. }));
    assert!(matches!(&results[1], RedriveResult::Refused(refusal) if refusal.code() == "redrive.not_open"));
    assert_eq!(results[2], RedriveResult::Missing);
    let ledger = read::redrive_ledger(&world.conn, &tenant(), ALL).unwrap().rows;
    let seen: Vec<_> = ledger.iter().rev().map(|row| (row.result.as_str(), row.code.as_deref())).collect();
    assert_eq!(seen, [("redriven", None), ("refused", Some("redrive.not_open")), ("missing", None)]);
    let other: TenantId = "other".parse().unwrap();
    assert_eq!(read::redrive_ledger(&world.conn, &other, ALL).unwrap().rows, []);
    let error = world.redrive(&vec![second.id; 101]).unwrap_err();
    assert!(error.to_string().contains("101") && error.to_string().contains("100"), "{error}");
    assert_eq!(world.check(), []);
}

#[test]
fn what_could_repeat_an_effect_or_can_not_be_read_stays_in_quarantine() {
    let mut world = World::new();
    let unsure = world.ended(HARMFUL, unanswered());
    let unreadable = world.dead(MAIN);
    world.tamper(
        "UPDATE dlo_envelope SET payload = zeroblob(3)
         WHERE id = (SELECT envelope_ref FROM dlo_dead_letter WHERE entry = ?1)",
        [unreadable.key.entry.as_bytes()],
    );
    let unsure = world.dead_letter_of(unsure);
    let results = world.redrive(&[unsure.id, unreadable.id]).unwrap();
    let codes: Vec<_> = results
        .iter()
        .map(|result| match result {
            RedriveResult::Refused(refusal) => refusal.code(),
            other => panic!("not refused: {other:?}"),
        })
        .collect();
    assert_eq!(codes, ["redrive.unanswered", "redrive.unreadable"]);
    assert_eq!(world.number("SELECT count(*) FROM dlo_entry"), 0);
    world.apply(vec![dlo_core::DestinationSpec { duplicates: Duplicates::Tolerated, ..spec(HARMFUL) }]).unwrap();
    assert!(matches!(world.redrive(&[unsure.id]).unwrap()[0], RedriveResult::Redriven { .. }));
    let live = read::entry(&world.conn, world.now, &tenant(), unsure.key.entry).unwrap().unwrap().live.unwrap();
    assert!(live.progress.unanswered, "the new generation still does not know (I-10)");
}

#[test]
fn what_was_imported_again_meanwhile_can_be_redriven_too() {
    let mut world = World::new();
    let import = |world: &mut World| {
        let item = world.item(MAIN);
        world.save_item(NewEntry { origin: Some("queue:7".into()), ..item })
    };
    let first = import(&mut world);
    let claimed = world.claim(MAIN).remove(0);
    world.settle(&claimed, refused());
    let dead = world.dead_letter_of(first);
    import(&mut world);
    assert!(matches!(world.redrive(&[dead.id]).unwrap()[0], RedriveResult::Redriven { .. }));
    assert_eq!(world.number("SELECT count(*) FROM dlo_entry WHERE origin IS NOT NULL"), 1);
    assert_eq!(world.check(), []);
}
