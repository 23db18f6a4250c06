//! What was promised against what is in the store and what the endpoint got.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::run::bounded;
use crate::endpoint::Endpoint;
use crate::place::Place;

/// Name, declaration, and first part of the event types of a destination.
pub const KINDS: [(&str, &str); 3] =
    [("dedup", "deduplicated(1h)"), ("tolerated", "tolerated"), ("harmful", "harmful")];

/// Retries come at once and for ever, so that what is lost is lost by a defect and by nothing else.
pub const PATIENT_POLICY: &str = r#"
[policy]
max_retry_attempts = 1000
max_crashed_attempts = 1000
schedule = ["0s"]
retry_delay = "0s"
deferred_delay = "0s"
jitter = "none"
emission_deadline = "10s"
page = 20
[policy.breaker]
failures = 1000
"#;

/// Requests that wait when nobody answers: the usual concurrency at each destination.
pub const IN_FLIGHT: usize = 3 * 16;

/// A place with a destination of each kind at the endpoint; event types are `NAME.x`.
pub fn place_with_all_kinds(endpoint: &Endpoint, head: &str) -> Place {
    let destinations: String = KINDS
        .iter()
        .map(|(name, kind)| {
            crate::place::destination(name, "webhook", kind, &format!("{name}.*"), &endpoint.settings(name))
        })
        .collect();
    Place::with(&format!("{head}{PATIENT_POLICY}{destinations}"))
}

/// Rows of a list as JSON.
pub fn rows(place: &Place, verb: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["-o", "jsonl"].iter().chain(verb).chain(&["--all"]).copied().collect();
    let ran = bounded(place.command(&args)).ends(0);
    ran.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// A row of `enqueue --each`, if the line is whole and says that the event is saved.
pub fn saved(line: &str) -> Option<Value> {
    let row: Value = serde_json::from_str(line).ok()?;
    matches!(row["result"].as_str()?, "created" | "existing").then_some(row)
}

/// Entries that a row says were created.
pub fn created(row: &Value) -> impl Iterator<Item = String> + '_ {
    row["entries"].as_array().into_iter().flatten().map(|entry| entry["entry"].as_str().expect("an id").to_owned())
}

/// What the store holds, after everything was drained.
pub struct Accounts {
    /// State by entry.
    pub states: BTreeMap<String, String>,
    /// Number of entries by destination.
    pub by_destination: BTreeMap<String, usize>,
}

/// Reads the store and checks what holds whatever happened: every entry is terminal and there once, on harmless
/// destinations it is delivered, on the harmful one it may be quarantined for a send without an answer.
#[track_caller]
pub fn accounts(place: &Place) -> Accounts {
    bounded(place.command(&["doctor"])).ends(0);
    let letters: BTreeMap<String, Value> = rows(place, &["dead-letters", "list"])
        .into_iter()
        .map(|row| (row["entry"].as_str().expect("an id").to_owned(), row))
        .collect();
    let mut accounts = Accounts { states: BTreeMap::new(), by_destination: BTreeMap::new() };
    for row in rows(place, &["entries", "list"]) {
        let [entry, state, destination] = ["entry", "state", "destination"].map(|name| row[name].as_str().expect(name));
        match (state, destination) {
            ("delivered", _) => assert!(!letters.contains_key(entry), "terminal twice: {row}"),
            ("dead_lettered", "harmful") => {
                assert_eq!(letters[entry]["code"], "outbox.outcome_ambiguous", "{}", letters[entry]);
            }
            _ => panic!("lost, stuck or quarantined without a cause: {row}"),
        }
        *accounts.by_destination.entry(destination.to_owned()).or_default() += 1;
        let before = accounts.states.insert(entry.to_owned(), state.to_owned());
        assert!(before.is_none(), "listed twice: {row}");
    }
    accounts
}

/// What the endpoint got: (destination, event) to the operation keys, one for each request.
pub fn received(endpoint: &Endpoint) -> BTreeMap<(String, String), Vec<String>> {
    let mut received: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for request in endpoint.requests() {
        let key = request.headers["idempotency-key"].clone();
        assert_eq!(key, request.headers["webhook-id"], "one key under both names");
        received.entry((request.path, request.headers["ce-id"].clone())).or_default().push(key);
    }
    received
}

/// Duplicates by destination.
pub type Duplicates = BTreeMap<String, usize>;

/// Checks requests against the store: one operation key an entry on every try, nothing harmful twice, nothing called
/// delivered that never arrived.
#[track_caller]
pub fn check_requests(endpoint: &Endpoint, accounts: &Accounts) -> Duplicates {
    let mut duplicates: Duplicates = KINDS.iter().map(|(name, _)| ((*name).to_owned(), 0)).collect();
    let mut arrived = BTreeSet::new();
    for ((destination, event), keys) in received(endpoint) {
        assert!(keys.iter().all(|key| *key == keys[0]), "{event} came to {destination} under several keys: {keys:?}");
        assert!(destination != "harmful" || keys.len() == 1, "{event} came to {destination} {} times", keys.len());
        assert!(accounts.states.contains_key(&keys[0]), "{event} came to {destination} and is not in the store");
        assert!(arrived.insert(keys[0].clone()), "{event} at {destination} shares its key {}", keys[0]);
        *duplicates.entry(destination).or_default() += keys.len() - 1;
    }
    for (entry, state) in &accounts.states {
        assert!(state != "delivered" || arrived.contains(entry), "delivered and never received: {entry}");
    }
    duplicates
}
