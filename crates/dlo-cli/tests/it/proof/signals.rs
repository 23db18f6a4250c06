//! SIGTERM and SIGINT in the middle of a drain whose receiver does not answer: the end comes within the grace, what was
//! not emitted is untouched, what was is not repeated where that does harm.

use std::process::Stdio;

use super::ledger::{IN_FLIGHT, KINDS, place_with_all_kinds, received, rows};
use super::run::{bounded, ended, signal};
use crate::endpoint::Endpoint;
use crate::place::event;

const GRACE: &str = "[engine]\nshutdown_grace = \"300ms\"\n";
/// More than a page of each kind.
const EVENTS: usize = 90;

fn stop_while_nobody_answers(name: &str) {
    let endpoint = Endpoint::start();
    endpoint.close_gate();
    let place = place_with_all_kinds(&endpoint, GRACE);
    let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
    place.dlo_reading(&(0..EVENTS).map(line).collect::<String>(), &["enqueue", "-"]).ends(0);
    let mut command = place.command(&["run"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    endpoint.wait_for(IN_FLIGHT);
    signal(child.id(), name);
    // Nobody opens the gate: the process ends by its grace, or this hangs and fails.
    ended(child, "run").ends(0).says("stopping");

    bounded(place.command(&["doctor"])).ends(0);
    let sent = received(&endpoint);
    for row in rows(&place, &["entries", "list"]) {
        let entry = row["entry"].as_str().expect("an id");
        let was_sent = sent.values().any(|keys| keys[0] == entry);
        let [state, destination] = ["state", "destination"].map(|field| row[field].as_str().expect(field));
        match state {
            // A send of which nobody knows how it ended is not to be tried again there.
            "dead_lettered" => assert_eq!(destination, "harmful", "{row}"),
            "ready" => {
                assert!(destination != "harmful" || !was_sent, "sent, unanswered and ready again: {row}");
                let shown = place.json(&["entries", "show", entry]);
                assert_eq!(shown["live"]["failed_in_generation"], 0, "a shutdown charges nothing: {shown}");
            }
            _ => panic!("{row}"),
        }
    }
    endpoint.open_gate();
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    let accounts = super::ledger::accounts(&place);
    assert_eq!(accounts.states.len(), EVENTS);
    super::ledger::check_requests(&endpoint, &accounts);
}

#[test]
fn sigterm_ends_within_the_grace_and_harms_nobody() {
    stop_while_nobody_answers("TERM");
}

#[test]
fn sigint_ends_within_the_grace_and_harms_nobody() {
    stop_while_nobody_answers("INT");
}
