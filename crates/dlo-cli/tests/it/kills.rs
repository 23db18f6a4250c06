//! SIGKILL of the real binary while it enqueues and while it drains: nothing is lost, nothing harmful happens twice.
//!
//! Kills come after a number of answers or requests that a seeded sequence gives, so that a run can be repeated; what the
//! process was doing at that moment is up to the machine. `DLO_TEST_KILLS` sets how many there are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::endpoint::{Endpoint, Request};
use crate::place::{Place, destination};

/// Kills of each kind by default: enough to meet every state, few enough for every run of the tests.
const KILLS: usize = 8;
/// Events offered in each round.
const EVENTS_A_ROUND: usize = 60;
const KINDS: [(&str, &str); 3] = [("dedup", "deduplicated(1h)"), ("tolerated", "tolerated"), ("harmful", "harmful")];

/// A sequence of numbers that only its seed decides.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn kills() -> usize {
    std::env::var("DLO_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

fn place(endpoint: &Endpoint) -> Place {
    let policy = "[policy]\nmax_retry_attempts = 1000\nschedule = [\"0s\"]\nretry_delay = \"0s\"\njitter = \"none\"\n\
                  max_crashed_attempts = 1000\nemission_deadline = \"5s\"\n[policy.breaker]\nfailures = 1000\n";
    let destinations: String = KINDS
        .iter()
        .map(|(name, kind)| destination(name, "webhook", kind, &format!("{name}.*"), &endpoint.settings(name)))
        .collect();
    Place::with(&format!("{policy}{destinations}"))
}

fn round_of_events(round: usize) -> String {
    (0..EVENTS_A_ROUND)
        .map(|number| {
            let (kind, _) = KINDS[number % KINDS.len()];
            crate::place::event(&format!("r{round}-{number}"), &format!("{kind}.x"), "{\"n\":1}")
        })
        .collect()
}

/// Offers a round of events and kills the process after some answers; gives the entries that were answered as created.
fn enqueue_and_kill(place: &Place, round: usize, sequence: &mut Sequence) -> Vec<String> {
    let mut command = place.command(&["-o", "jsonl", "enqueue", "-", "--each"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut input = child.stdin.take().unwrap();
    let (first, rest) = (round_of_events(round), sequence.below(EVENTS_A_ROUND));
    let cut = first.lines().take(rest + 1).map(|line| line.len() + 1).sum::<usize>();
    // What comes first is answered before the rest is written, so that the kill falls into a transaction now and then.
    input.write_all(&first.as_bytes()[..cut]).unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut created = Vec::new();
    for _ in 0..=sequence.below(rest + 1) {
        created.extend(created_in(&answers.next().unwrap().unwrap()));
    }
    let _ = input.write_all(&first.as_bytes()[cut..]);
    child.kill().unwrap();
    child.wait().unwrap();
    created.extend(answers.map_while(Result::ok).flat_map(|line| created_in(&line)));
    created
}

/// A line that the kill cut short is no answer.
fn created_in(line: &str) -> Vec<String> {
    let Ok(row) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    let entries = row["entries"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| entry["entry"].as_str().unwrap().to_owned()).collect()
}

fn run_and_kill(place: &Place, endpoint: &Endpoint, sequence: &mut Sequence) {
    let mut child: Child = place.spawn(&["run"]);
    endpoint.wait_for(endpoint.requests().len() + 1 + sequence.below(12));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn kills_lose_nothing_and_repeat_nothing_harmful() {
    let endpoint = Endpoint::start();
    let place = place(&endpoint);
    let mut sequence = Sequence(42);
    let mut answered = BTreeSet::new();
    for round in 0..kills() {
        answered.extend(enqueue_and_kill(&place, round, &mut sequence));
        // Events that were cut off are offered again: those that were saved are known.
        let again = place.dlo_reading(&round_of_events(round), &["-o", "jsonl", "enqueue", "-", "--each"]).ends(0);
        answered.extend(again.out.lines().flat_map(created_in));
        run_and_kill(&place, &endpoint, &mut sequence);
        place.dlo(&["doctor"]).ends(0);
    }
    place.dlo(&["run", "--until-empty"]).ends(0);
    place.dlo(&["doctor"]).ends(0);

    let rows = place.dlo(&["-o", "jsonl", "entries", "list", "--all"]).ends(0);
    let rows: Vec<Value> = rows.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let saved: BTreeSet<String> = rows.iter().map(|row| row["entry"].as_str().unwrap().to_owned()).collect();
    assert_eq!(rows.len(), kills() * EVENTS_A_ROUND, "every event is one entry");
    assert!(answered.is_subset(&saved), "lost: {:?}", answered.difference(&saved).collect::<Vec<_>>());
    for row in &rows {
        let state = row["state"].as_str().unwrap();
        let harmful = row["destination"] == "harmful";
        assert!(state == "delivered" || (harmful && state == "dead_lettered"), "{row}");
    }
    check_requests(&endpoint.requests(), &rows);
}

fn check_requests(requests: &[Request], rows: &[Value]) {
    let mut keys: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for request in requests {
        let event = request.headers["ce-id"].as_str();
        keys.entry((&request.path, event)).or_default().push(&request.headers["idempotency-key"]);
    }
    for ((path, event), keys) in &keys {
        assert!(keys.iter().all(|key| key == &keys[0]), "{event} came to {path} with several keys: {keys:?}");
        assert!(*path != "harmful" || keys.len() == 1, "{event} came to {path} {} times", keys.len());
    }
    let received: BTreeSet<&str> = keys.values().map(|keys| keys[0]).collect();
    for row in rows.iter().filter(|row| row["state"] == "delivered") {
        assert!(received.contains(row["entry"].as_str().unwrap()), "delivered but never received: {row}");
    }
}
