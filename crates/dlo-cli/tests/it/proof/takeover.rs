//! One engine a file, and its successor: a dead engine keeps nobody waiting for its lease.

use std::process::Stdio;

use super::ledger::{IN_FLIGHT, KINDS, accounts, check_requests, place_with_all_kinds};
use super::run::{bounded, ended, signal};
use crate::endpoint::Endpoint;
use crate::place::event;

#[test]
fn a_second_engine_is_refused_and_takes_over_at_once_when_the_first_is_killed() {
    const EVENTS: usize = 60;
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
    place.dlo_reading(&(0..EVENTS).map(line).collect::<String>(), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let mut command = place.command(&["run"]);
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    endpoint.wait_for(IN_FLIGHT);
    for _ in 0..3 {
        let refused = bounded(place.command(&["run"])).ends(5);
        refused.says("error[store.fenced]").says(&format!("process {}", first.id())).says("one engine per file");
    }
    // Everything else works beside a running engine.
    place.dlo_reading(&line(EVENTS), &["enqueue", "-"]).ends(0);
    bounded(place.command(&["doctor"])).ends(0);
    signal(first.id(), "KILL");
    first.wait().expect("it is a child");
    endpoint.open_gate();

    // Its lease lasts five minutes, which is longer than a command may take here.
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    let accounts = accounts(&place);
    assert_eq!(accounts.states.len(), EVENTS + 1);
    let duplicates = check_requests(&endpoint, &accounts);
    assert!(duplicates["dedup"] > 0 && duplicates["tolerated"] > 0, "what was in flight is sent again: {duplicates:?}");
    let quarantined = accounts.states.values().filter(|state| *state == "dead_lettered").count();
    assert!(quarantined > 0, "what was in flight at the harmful destination is not");
    let workers = place.json(&["workers"]);
    assert!(workers.as_array().expect("a list").iter().all(|row| row["ended"].is_string()), "{workers}");
}

/// A machine that sleeps wakes with its leases and claims over, its requests still under way.
#[test]
fn a_process_that_slept_past_its_lease_harms_nobody() {
    const EVENTS: usize = 90;
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
    place.dlo_reading(&(0..EVENTS).map(line).collect::<String>(), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let engine = place.spawn(&["run"]);
    endpoint.wait_for(IN_FLIGHT);
    signal(engine.id(), "STOP");
    let conn = rusqlite::Connection::open(place.path("dlo.db")).expect("the database");
    conn.execute_batch("UPDATE dlo_worker SET lease_until = 1; UPDATE dlo_claim SET deadline = 1").expect("times");
    signal(engine.id(), "CONT");
    endpoint.open_gate();
    endpoint.wait_for(EVENTS);
    signal(engine.id(), "TERM");
    ended(engine, "run").ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    let accounts = accounts(&place);
    assert_eq!(accounts.states.len(), EVENTS);
    check_requests(&endpoint, &accounts);
}
