//! Odd clocks: a machine whose clock was ahead and went back, or whose rows carry times of another world.

use rusqlite::Connection;

use super::run::bounded;
use crate::place::{Place, QUICK_POLICY, column, destination, event, events};

const HOUR: i64 = 3_600_000_000;
const YEAR: i64 = 365 * 24 * HOUR;

fn place() -> Place {
    Place::with(&format!("{QUICK_POLICY}{}", destination("sink", "noop", "tolerated", "*", "")))
}

fn change(place: &Place, sql: &str) {
    let conn = Connection::open(place.path("dlo.db")).expect("the database");
    conn.execute_batch(sql).expect(sql);
}

fn number(place: &Place, sql: &str) -> i64 {
    let conn = Connection::open(place.path("dlo.db")).expect("the database");
    conn.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// Everything that shows times, read as people and programs do; nothing of it may panic.
fn look_everywhere(place: &Place) {
    for verb in [
        vec!["doctor"],
        vec!["stats"],
        vec!["stats", "--openmetrics"],
        vec!["workers"],
        vec!["entries", "list"],
        vec!["dead-letters", "list"],
        vec!["dead-letters", "groups"],
        vec!["destinations", "list"],
        vec!["destinations", "show", "sink"],
        vec!["audit", "list"],
    ] {
        for format in ["table", "json"] {
            let args: Vec<&str> = ["-o", format].iter().chain(&verb).copied().collect();
            let ran = bounded(place.command(&args));
            assert!(ran.code == 0 && !ran.err.contains("cli.defect"), "{args:?}: {ran:?}");
        }
    }
    let rows = place.json(&["entries", "list"]);
    for entry in column(&rows, "entry") {
        bounded(place.command(&["entries", "show", entry])).ends(0);
    }
}

#[test]
fn entries_of_a_clock_that_was_ahead_are_delivered() {
    let place = place();
    place.dlo_reading(&events(30, "t"), &["enqueue", "-"]).ends(0);
    // Saved by a clock one year ahead, and due since then.
    change(&place, &format!("UPDATE dlo_entry SET created = created + {YEAR}, updated = updated + {YEAR}"));
    change(&place, &format!("UPDATE dlo_entry SET age_from = age_from + {YEAR}"));
    look_everywhere(&place);
    bounded(place.command(&["run", "--until-empty"])).ends(0).says("30 delivered");
    look_everywhere(&place);
}

#[test]
fn entries_that_are_due_in_a_year_are_kept_listed_and_brought_forward() {
    let place = place();
    place.dlo_reading(&events(2, "t"), &["enqueue", "-"]).ends(0);
    change(&place, &format!("UPDATE dlo_entry SET due = due + {YEAR}"));
    look_everywhere(&place);
    let rows = place.json(&["entries", "list", "--state", "waiting"]);
    let ids = column(&rows, "entry");
    assert_eq!(ids.len(), 2, "{rows}");
    let args: Vec<&str> = ["entries", "retry-now"].iter().chain(&ids).chain(&["--reason", "clock"]).copied().collect();
    bounded(place.command(&args)).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0).says("2 delivered");
}

/// An engine of the future died with claims and a lease that lasts for a year.
#[test]
fn a_worker_of_the_future_keeps_nobody_waiting() {
    let place = place();
    place.dlo_reading(&events(40, "t"), &["enqueue", "-"]).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    place.dlo_reading(&event("late", "t", "1"), &["enqueue", "-"]).ends(0);
    change(
        &place,
        &format!(
            "UPDATE dlo_worker SET started = started + {YEAR}, lease_until = lease_until + {YEAR}, ended = NULL;
             INSERT INTO dlo_claim (token, tenant, destination, incarnation, claimed, deadline, sole_suspect, open, members)
             SELECT zeroblob(16), e.tenant, e.destination, w.incarnation, w.started, w.lease_until + {YEAR}, 0, 1,
                 unhex(printf('%016X', e.seq))
             FROM dlo_entry AS e, dlo_worker AS w;
             UPDATE dlo_entry SET claim_token = zeroblob(16), claims = claims + 1, version = version + 1"
        ),
    );
    assert_eq!(number(&place, "SELECT count(*) FROM dlo_claim"), 1);
    look_everywhere(&place);
    bounded(place.command(&["run", "--until-empty"])).ends(0).says("41 delivered");
    look_everywhere(&place);
    assert_eq!(number(&place, "SELECT count(*) FROM dlo_worker WHERE ended IS NULL"), 0);
}

/// History, keys and audit of the future are not pruned, and stand in nobody's way.
#[test]
fn what_ended_in_the_future_is_kept_and_new_work_goes_on() {
    let place = place();
    place.dlo_reading(&events(20, "t"), &["enqueue", "-"]).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    change(
        &place,
        &format!(
            "UPDATE dlo_history SET ended = ended + {YEAR}, created = created + {YEAR};
             UPDATE dlo_enqueue_key SET first_seen = first_seen + {YEAR}"
        ),
    );
    let again = place.dlo_reading(&events(21, "t"), &["-o", "json", "enqueue", "-"]).ends(0).json();
    assert_eq!((again["existing"].as_u64(), again["created"].as_u64()), (Some(20), Some(1)), "keys still hold");
    bounded(place.command(&["run", "--until-empty"])).ends(0).says("21 delivered");
    look_everywhere(&place);
}

/// The ends of what a column can hold are shown, not computed with.
#[test]
fn times_beyond_the_calendar_are_shown_and_lose_nothing() {
    for edge in [i64::MAX, i64::MIN, -1, 0] {
        let place = place();
        place.dlo_reading(&events(3, "t"), &["enqueue", "-"]).ends(0);
        change(&place, &format!("UPDATE dlo_entry SET updated = {edge}, first_claimed = {edge}"));
        look_everywhere(&place);
        bounded(place.command(&["run", "--until-empty"])).ends(0).says("3 delivered");
        change(&place, &format!("UPDATE dlo_history SET created = {edge}, ended = {edge}"));
        change(&place, &format!("UPDATE dlo_worker SET started = {edge}, lease_until = {edge}, ended = {edge}"));
        look_everywhere(&place);
        place.dlo_reading(&event("next", "t", "1"), &["enqueue", "-"]).ends(0);
        bounded(place.command(&["run", "--until-empty"])).ends(0).says("4 delivered");
    }
}
