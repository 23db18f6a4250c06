#![allow(clippy::unwrap_used, reason = "tests")]
//! A healthy file has no violation; each kind of damage, made behind the verbs' back, is found and named.

use dlo_core::{DestinationSpec, Duplicates, EntryId, Outcome};
use dlo_ports::store::EntryAct;
use rusqlite::params;

use super::{check, rules::RULES};
use crate::testing::{HARMFUL, MAIN, REVIEWED, World, busy, delivered, refused, spec, tenant, unanswered};

/// Entries in every state, lineages of several generations, a ledger with all three results.
struct Healthy {
    world: World,
    ready: EntryId,
    claimed: EntryId,
    reviewed: EntryId,
    redriven: EntryId,
}

fn healthy() -> Healthy {
    let mut world = World::new();
    world.ended(MAIN, delivered());
    let waiting = world.save(MAIN);
    let page = world.claim(MAIN);
    world.settle(&page[0], busy());
    let cancelled = world.save(MAIN);
    world.act(cancelled, EntryAct::Cancel);
    world.dead(MAIN);
    world.ended(HARMFUL, unanswered());
    let again = world.dead(MAIN);
    world.redrive(&[again.id]).unwrap();
    let page = world.claim(MAIN);
    world.settle(&page[0], delivered());
    let redriven = world.dead(MAIN);
    let missing = dlo_core::DeadLetterId::from_bytes([1; 16]);
    world.redrive(&[redriven.id, again.id, missing]).unwrap();
    let retried = world.ended(REVIEWED, busy());
    world.act(retried, EntryAct::RetryNow { due: world.now });
    let page = world.claim(REVIEWED);
    world.settle(&page[0], busy());
    let reviewed = world.ended(REVIEWED, busy());
    let claimed = world.save(HARMFUL);
    assert_eq!(world.claim(HARMFUL).len(), 1);
    let ready = world.save(HARMFUL);
    assert_ne!(waiting, ready);
    Healthy { world, ready, claimed, reviewed, redriven: redriven.key.entry }
}

#[test]
fn a_healthy_file_has_no_violation() {
    assert_eq!(healthy().world.check(), []);
}

/// Damages a healthy file, and expects a violation of that invariant that names these words.
fn finds(invariant: &str, words: &[&str], damage: impl FnOnce(&Healthy)) {
    let healthy = healthy();
    damage(&healthy);
    let found = healthy.world.check();
    let named = |what: &str| words.iter().all(|word| what.contains(word));
    assert!(
        found.iter().any(|violation| violation.invariant == invariant && named(&violation.what)),
        "{invariant} {words:?} is not among {found:#?}"
    );
}

const DROP_LEDGER_TRIGGERS: &str = "DROP TRIGGER dlo_redrive_item_no_update; DROP TRIGGER dlo_redrive_item_no_delete";

#[test]
fn a_vanished_live_entry_is_found_by_its_totals() {
    finds("I-01", &["total `live`", "is 2 and 1 rows"], |h| {
        h.world.tamper("DELETE FROM dlo_entry WHERE entry = ?1", [h.ready.as_bytes()]);
    });
}

#[test]
fn a_vanished_entry_with_attempts_is_named() {
    let words = |h: &Healthy| h.reviewed.to_string();
    let expected = words(&healthy());
    finds("I-01", &[&expected, "vanished"], |h| {
        h.world.tamper("DELETE FROM dlo_entry WHERE entry = ?1", [h.reviewed.as_bytes()]);
    });
}

#[test]
fn a_vanished_generation_is_named() {
    let expected = healthy().redriven.to_string();
    finds("I-01", &[&expected, "next generation vanished"], |h| {
        h.world.tamper("DELETE FROM dlo_entry WHERE entry = ?1", [h.redriven.as_bytes()]);
    });
}

#[test]
fn counts_that_do_not_add_up_are_found() {
    finds("I-01", &["got", "accounted for"], |h| {
        h.world.tamper("UPDATE dlo_total SET value = value - 1 WHERE name = 'delivered' AND destination = ?1", [MAIN]);
    });
    finds("I-01", &["`dead_letters` deterministic test.refused"], |h| {
        h.world.tamper("UPDATE dlo_total SET value = 7 WHERE name = 'dead_letters' AND class = 'deterministic'", []);
    });
    finds("I-01", &["`manual_review`"], |h| {
        h.world.tamper("DELETE FROM dlo_total WHERE name = 'manual_review'", []);
    });
}

#[test]
fn a_generation_that_lives_and_ended_is_found() {
    finds("I-01", &["lives although generation 1 is dead_lettered"], |h| {
        let sql = "UPDATE dlo_dead_letter SET generation = 1 WHERE entry = ?1";
        h.world.tamper(sql, [h.redriven.as_bytes()]);
    });
    finds("I-01", &["lives although generation 0 is delivered"], |h| {
        let sql = "UPDATE dlo_history SET entry = ?1 WHERE state = 'delivered' AND generation = 0";
        h.world.tamper(sql, [h.ready.as_bytes()]);
    });
}

#[test]
fn a_generation_that_ended_twice_is_found() {
    finds("I-03", &["#1 is delivered and dead_lettered"], |h| {
        let lineage = "SELECT d.seq FROM dlo_dead_letter d JOIN dlo_history h ON h.entry = d.entry";
        h.world.tamper(&format!("UPDATE dlo_dead_letter SET generation = 1 WHERE seq IN ({lineage})"), []);
    });
    finds("I-01", &["#1 is delivered and generation 5 came after it"], |h| {
        let lineage = "SELECT d.seq FROM dlo_dead_letter d JOIN dlo_history h ON h.entry = d.entry";
        h.world.tamper(&format!("UPDATE dlo_dead_letter SET generation = 5 WHERE seq IN ({lineage})"), []);
    });
}

#[test]
fn envelopes_that_are_missing_damaged_or_miscounted_are_found() {
    finds("I-01", &["(live) has no envelope"], |h| {
        let sql = "DELETE FROM dlo_envelope WHERE id = (SELECT envelope_ref FROM dlo_entry WHERE entry = ?1)";
        h.world.tamper(sql, [h.ready.as_bytes()]);
    });
    finds("I-01", &["counts 5 uses and has 1"], |h| {
        let sql = "UPDATE dlo_envelope SET refs = 5 WHERE id = (SELECT envelope_ref FROM dlo_entry WHERE entry = ?1)";
        h.world.tamper(sql, [h.ready.as_bytes()]);
    });
    finds("I-01", &["envelope default/env_", "can't be read (schema 1)"], |h| {
        h.world.tamper("UPDATE dlo_envelope SET meta = 'damaged'", []);
    });
    finds("I-01", &["can't be read (schema 9)"], |h| {
        h.world.tamper("UPDATE dlo_envelope SET meta_schema = 9", []);
    });
}

#[test]
fn claims_that_do_not_fit_their_rows_are_found() {
    finds("I-03", &["is held by clm_", "which does not exist"], |h| {
        h.world.tamper("DELETE FROM dlo_claim", []);
    });
    finds("I-03", &["counts 3 open rows and holds 1"], |h| {
        h.world.tamper("UPDATE dlo_claim SET open = 3", []);
    });
    finds("I-04", &["holds 1 rows and 0 are of its page"], |h| {
        h.world.tamper("UPDATE dlo_claim SET members = zeroblob(8)", []);
    });
    finds("I-01", &["is claimed and in manual review"], |h| {
        h.world.tamper("UPDATE dlo_entry SET manual_review = 1 WHERE entry = ?1", [h.claimed.as_bytes()]);
    });
}

#[test]
fn counters_that_shrank_are_found() {
    finds("I-07", &["are less than the baseline"], |h| {
        h.world.tamper("UPDATE dlo_entry SET failed = 0 WHERE entry = ?1", [h.redriven.as_bytes()]);
    });
    finds("I-07", &["counted more than its later generation 1"], |h| {
        let sql = "UPDATE dlo_entry SET claims = 0, base_claims = 0 WHERE entry = ?1";
        h.world.tamper(sql, [h.redriven.as_bytes()]);
    });
}

#[test]
fn an_unanswered_send_that_waits_at_a_harmful_destination_is_found() {
    let expected = healthy().ready.to_string();
    finds("I-10", &[&expected, "harmful"], |h| {
        h.world.tamper("UPDATE dlo_entry SET unanswered = 1 WHERE entry = ?1", [h.ready.as_bytes()]);
    });
}

#[test]
fn a_stricter_declaration_makes_no_violation_of_what_waits() {
    let mut world = World::new();
    world.ended(MAIN, unanswered());
    world.apply(vec![DestinationSpec { duplicates: Duplicates::Harmful, ..spec(MAIN) }]).unwrap();
    assert_eq!(world.check(), [], "it is judged when it is claimed");
}

#[test]
fn an_operation_key_that_changed_is_found() {
    finds("I-11", &["#0 and its later generation 1 have different operation keys"], |h| {
        h.world.tamper("UPDATE dlo_entry SET operation_key = 'other' WHERE entry = ?1", [h.redriven.as_bytes()]);
    });
}

#[test]
fn acts_without_audit_and_holes_in_what_only_grows_are_found() {
    finds("I-12", &["names the audit event aud_", "does not exist"], |h| {
        h.world.conn.execute_batch("DROP TRIGGER dlo_audit_event_no_delete").unwrap();
        h.world.tamper("DELETE FROM dlo_audit_event WHERE act = 'redrive'", []);
    });
    finds("I-12", &["audit events 2 to 3 vanished"], |h| {
        h.world.conn.execute_batch("DROP TRIGGER dlo_audit_event_no_delete").unwrap();
        h.world.tamper("DELETE FROM dlo_audit_event WHERE seq IN (2, 3)", []);
    });
    finds("I-12", &["ledger rows 4 to 4 vanished"], |h| {
        h.world.conn.execute_batch(DROP_LEDGER_TRIGGERS).unwrap();
        h.world.tamper("DELETE FROM dlo_redrive_item WHERE seq = 4", []);
    });
    finds("I-14", &["dead letters with sequence 1 to 1 vanished"], |h| {
        h.world.tamper("DELETE FROM dlo_dead_letter WHERE seq = 1", []);
    });
    finds("I-14", &["dead letter default/dl_", "vanished: redrive rdv_"], |h| {
        h.world.tamper("DELETE FROM dlo_dead_letter WHERE entry = ?1", [h.redriven.as_bytes()]);
    });
}

#[test]
fn releases_that_the_ledger_does_not_bear_out_are_found() {
    finds("I-15", &["is open, and the ledger says otherwise"], |h| {
        h.world.tamper("UPDATE dlo_dead_letter SET state = 'open' WHERE entry = ?1", [h.redriven.as_bytes()]);
    });
    finds("I-15", &["was released 2 times"], |h| {
        h.world
            .conn
            .execute_batch("DROP INDEX dlo_redrive_item_once; DROP TRIGGER dlo_redrive_item_no_update")
            .unwrap();
        h.world.tamper("UPDATE dlo_redrive_item SET result = 'redriven' WHERE result = 'refused'", []);
    });
}

#[test]
fn rows_that_can_not_be_read_are_named_without_their_content() {
    finds("I-01", &["column `operation_key` can't be read"], |h| {
        h.world.tamper("UPDATE dlo_entry SET operation_key = 'not visible' WHERE entry = ?1", [h.ready.as_bytes()]);
    });
    finds("I-01", &["dead letter of default/ent_", "column `class` can't be read"], |h| {
        h.world.tamper("UPDATE dlo_dead_letter SET class = 'not-to-be-shown'", []);
        let found = h.world.check();
        let rows = found.iter().filter(|violation| violation.what.contains("column"));
        assert!(rows.clone().count() > 0);
        rows.for_each(|violation| assert!(!violation.what.contains("not-to-be-shown"), "{violation:?}"));
    });
}

#[test]
fn what_is_found_is_bounded() {
    let healthy = healthy();
    healthy.world.tamper("UPDATE dlo_envelope SET refs = refs + 1", []);
    healthy.world.tamper("UPDATE dlo_entry SET operation_key = ' '", []);
    assert_eq!(check(&healthy.world.conn, 3).unwrap().len(), 3);
    assert!(healthy.world.check().len() > 3);
    for limit in [0, 1_001] {
        assert_eq!(check(&healthy.world.conn, limit).unwrap_err().code(), "store.invalid");
    }
}

#[test]
fn no_rule_reads_history_row_by_row() {
    let world = World::new();
    for rule in RULES {
        let mut statement = world.conn.prepare(&format!("EXPLAIN QUERY PLAN {}", rule.sql)).unwrap();
        let plan: Vec<String> =
            statement.query_map([1], |row| row.get::<_, String>(3)).unwrap().collect::<Result<_, _>>().unwrap();
        let scans = plan.iter().any(|line| line.contains("SCAN dlo_history") || line.contains("SCAN past"));
        assert!(!scans, "{}\n{plan:#?}", rule.sql);
    }
}

#[test]
fn an_unreadable_row_in_quarantine_is_known_and_no_violation() {
    let mut world = World::new();
    world.save(MAIN);
    world.tamper("UPDATE dlo_envelope SET meta = 'damaged'", []);
    assert_eq!(world.check().len(), 1, "not quarantined yet");
    assert_eq!(world.claim(MAIN).len(), 0);
    assert_eq!(world.check(), []);
}

#[test]
fn a_lineage_outlives_prune_and_stays_whole() {
    let mut world = World::new();
    let dead = world.dead(MAIN);
    world.redrive(&[dead.id]).unwrap();
    let page = world.claim(MAIN);
    world.settle(&page[0], Outcome::Delivered { receipt: None });
    world.ended(MAIN, refused());
    let plain = world.ended(MAIN, delivered());
    world.advance(1_000);
    let request = dlo_ports::store::PruneRequest {
        history: core::time::Duration::from_secs(1),
        enqueue_keys: core::time::Duration::from_secs(1),
        limit: 100,
    };
    world.turn(|turn| crate::sweep::prune(turn, request)).unwrap();
    let left = world.conn.query_row(
        "SELECT count(*) FROM dlo_history WHERE tenant = ?1 AND entry = ?2",
        params![tenant().as_str(), plain.as_bytes()],
        |row| row.get::<_, i64>(0),
    );
    assert_eq!((left, world.check()), (Ok(0), vec![]));
}
