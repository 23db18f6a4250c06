//! Redrive: a new generation, once, and only where it can do no harm (I-07, I-10, I-11, I-15).

use dlo_core::{
    DeadLetterId, DeadLetterState, Duplicates, EntryState, Lane, NewEntry, Status, TenantId,
    dead_letter::RedriveRefusal, limits::MAX_REDRIVE_ITEMS, reason,
};

use super::bench::{ALL, Bench, DAY, HOUR, MAIN, MINUTE, delivered, name, refused, spec, transient, unanswered};
use crate::{StoreErrorKind, store::RedriveResult};

pub(super) fn a_redrive_starts_a_generation(b: &mut Bench) {
    b.main(|_| ());
    let dead = b.dead_letter_at(MAIN);
    let old = b.entry(dead.key.entry);
    b.clock.advance(HOUR);
    let key = b.redriven(dead.id);
    assert_eq!(
        (&key.tenant, key.entry, key.generation),
        (&dead.key.tenant, dead.key.entry, 1),
        "the same entry (S-06)"
    );
    let row = b.live(key.entry);
    assert_eq!((row.lane, row.due, row.created, row.updated), (Lane::Pending, b.now(), b.now(), b.now()));
    assert_eq!((row.status, row.version, row.claim, row.manual_review), (Status::Pending, 1, None, false));
    assert_eq!((&row.operation_key, row.envelope), (&dead.operation_key, dead.envelope), "I-11");
    assert_eq!((row.baseline, row.progress.counters), (dead.counters, dead.counters), "I-07");
    assert_eq!((row.first_claimed, row.progress.attempts), (dead.first_claimed, dead.attempts));
    assert_eq!((row.progress.first_failed, row.progress.last_failed), (None, None));
    assert_eq!((row.progress.last_failure, row.progress.unanswered), (None, false));
    assert!(row.seq > old.summary.seq);
    let view = b.entry(key.entry);
    assert_eq!((view.ended, view.attempts), (old.ended, old.attempts), "history is kept");
    let record = b.dead_letter_of(key.entry);
    assert_eq!(record, dlo_core::DeadLetter { state: DeadLetterState::Redriven, ..dead });
    let claimed = b.claim_one(MAIN);
    assert_eq!(claimed.key, key);
    b.outcome(&claimed, delivered());
    let view = b.entry(key.entry);
    let states: Vec<_> = view.ended.iter().map(|ended| (ended.generation, ended.state)).collect();
    assert_eq!(states, [(0, EntryState::DeadLettered), (1, EntryState::Delivered)], "oldest first");
    assert_eq!(b.state(key.entry), EntryState::Delivered);
}

pub(super) fn a_dead_letter_is_redriven_once(b: &mut Bench) {
    b.main(|_| ());
    let dead = b.dead_letter_at(MAIN);
    let results = b.redrive(vec![dead.id, dead.id]);
    assert!(matches!(results[0], RedriveResult::Redriven { .. }));
    let not_open = RedriveResult::Refused(RedriveRefusal::NotOpen { state: "redriven" });
    assert_eq!(results[1], not_open, "insert-if-absent (I-15)");
    assert_eq!(b.redrive(vec![dead.id]), [not_open]);
    assert_eq!(b.claim(MAIN, 10).len(), 1);
}

pub(super) fn an_unanswered_send_is_not_redriven_where_it_could_harm(b: &mut Bench) {
    let window = HOUR * 2;
    for (duplicates, after, code) in [
        (Duplicates::Harmful, MINUTE, Some("redrive.unanswered")),
        (Duplicates::Deduplicated { window }, MINUTE, None),
        (Duplicates::Deduplicated { window }, window, Some("redrive.window_over")),
        (Duplicates::Tolerated, DAY, None),
    ] {
        b.main(|main| {
            main.duplicates = duplicates;
            main.policy.max_retry_attempts = 1;
        });
        let entry = b.claimed_at(MAIN);
        b.outcome(&entry, unanswered());
        let dead = b.dead_letter_of(entry.key.entry);
        assert!(dead.unanswered, "{duplicates}");
        b.clock.advance(after);
        match (b.redrive(vec![dead.id]).remove(0), code) {
            (RedriveResult::Redriven { key }, None) => {
                assert!(b.live(key.entry).progress.unanswered, "a redrive answers nothing (I-10)");
                b.claim_one(MAIN);
            }
            (RedriveResult::Refused(refusal), Some(code)) => {
                assert_eq!(refusal.code(), code);
                assert_eq!(b.dead_letter_of(entry.key.entry), dead, "the dead letter is as it was");
                assert_eq!(b.state(entry.key.entry), EntryState::DeadLettered);
            }
            (result, expected) => panic!("{duplicates} after {after:?}: {result:?}, expected {expected:?}"),
        }
    }
}

pub(super) fn other_refusals_name_their_rule(b: &mut Bench) {
    b.main(|_| ());
    let deliver_by = b.now().after(HOUR);
    let item = NewEntry { deliver_by: Some(deliver_by), ..b.item(MAIN) };
    let id = b.save(item);
    let claimed = b.claim_one(MAIN);
    b.outcome(&claimed, refused());
    let dead = b.dead_letter_of(id);
    b.clock.set(deliver_by);
    let expected = RedriveResult::Refused(RedriveRefusal::DeadlinePassed { deliver_by });
    assert_eq!(b.redrive(vec![dead.id]), [expected], "deliver_by is absolute");
    let missing = DeadLetterId::from_bytes([9; 16]);
    assert_eq!(b.redrive(vec![missing]), [RedriveResult::Missing]);
}

pub(super) fn every_item_has_a_ledger_row(b: &mut Bench) {
    b.main(|_| ());
    let first = b.dead_letter_at(MAIN);
    let second = b.dead_letter_at(MAIN);
    let missing = DeadLetterId::from_bytes([9; 16]);
    b.redriven(second.id);
    let before = b.run(|store| store.redrive_ledger(b.tenant.clone(), ALL)).rows.len();
    let results = b.redrive(vec![first.id, second.id, missing]);
    let RedriveResult::Redriven { key } = results[0].clone() else { panic!("must be redriven") };
    let mut rows = b.run(|store| store.redrive_ledger(b.tenant.clone(), ALL)).rows;
    assert!(rows.windows(2).all(|pair| pair[0].seq > pair[1].seq), "newest first");
    rows.reverse();
    let rows = &rows[before..];
    let seen: Vec<_> = rows.iter().map(|row| (row.dead_letter, row.result.as_str(), row.code.as_deref())).collect();
    let expected =
        [(first.id, "redriven", None), (second.id, "refused", Some("redrive.not_open")), (missing, "missing", None)];
    assert_eq!(seen, expected);
    assert_eq!((&rows[0].key, &rows[1].key), (&Some(key), &None));
    let event = &b.run(|store| store.audit_events(None, ALL)).rows[0];
    assert!(rows.iter().all(|row| row.audit == event.id && row.at == b.now() && row.redrive == rows[0].redrive));
}

pub(super) fn redriving_again_keeps_identity_and_counts_anew(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 2);
    let id = b.entry_at(MAIN);
    let operation_key = b.entry(id).operation_key;
    let mut total = 0;
    for generation in 0..3 {
        for _ in 0..2 {
            let entry = b.claim_one(MAIN);
            assert_eq!((entry.key.generation, &entry.operation_key), (generation, &operation_key));
            b.outcome(&entry, transient());
            total += 1;
            b.clock.advance(HOUR);
        }
        let dead = b.dead_letter_of(id);
        assert_eq!((dead.key.generation, dead.state), (generation, DeadLetterState::Open), "a second full allowance");
        assert_eq!((dead.counters.failed, dead.attempts), (total, total), "counters are never reset (I-07)");
        assert_eq!(dead.code, reason::MAX_RETRY_ATTEMPTS_EXCEEDED);
        assert_eq!(b.redriven(dead.id).generation, generation + 1);
    }
    let view = b.entry(id);
    assert_eq!((view.ended.len(), view.attempts.len()), (3, 6));
    let numbers: Vec<_> = view.attempts.iter().map(|attempt| (attempt.number, attempt.generation)).collect();
    assert_eq!(numbers, [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)]);
    assert_eq!(b.run(|store| store.stats()).destinations[0].enqueued_total, 4, "redrives included");
}

pub(super) fn a_redrive_is_bounded_and_of_one_tenant(b: &mut Bench) {
    b.main(|_| ());
    let dead = b.dead_letter_at(MAIN);
    let audit = b.audit("dead_letter.redrive");
    let redrive = dlo_core::RedriveId::new(b.now(), b.random());
    let tenant = b.tenant.clone();
    let many = vec![dead.id; MAX_REDRIVE_ITEMS + 1];
    assert_eq!(b.fail(|store| store.redrive(tenant, redrive, many, audit)), StoreErrorKind::Invalid);
    assert_eq!(b.dead_letter_of(dead.key.entry).state, DeadLetterState::Open);
    let elsewhere = TenantId::new("elsewhere").unwrap();
    let mut there = spec(MAIN);
    there.tenant = elsewhere.clone();
    b.apply(there);
    b.tenant = elsewhere;
    assert_eq!(b.redrive(vec![dead.id]), [RedriveResult::Missing]);
    assert_eq!(b.run(|store| store.dead_letter(b.tenant.clone(), dead.id)), None);
    b.tenant = TenantId::default_tenant();
    b.redriven(dead.id);
    let depth = b.run(|store| store.stats()).destinations.into_iter().find(|row| row.tenant == b.tenant).unwrap().depth;
    assert_eq!((depth.ready, depth.dead_letters_open), (1, 0));
    assert_eq!(b.claim_one(MAIN).destination, name(MAIN));
}
