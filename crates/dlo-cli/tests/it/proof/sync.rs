//! What is answered or sent has been on the disk before: the order of system calls, watched by strace (I-01, I-02, I-10).

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::ledger::{place_with_all_kinds, saved};
use super::run::{bounded, ended};
use super::strace::{Call, calls, traced};
use crate::endpoint::Endpoint;
use crate::place::{Place, event, events};

/// Lines of each write to the producer; the next is written when the one before was answered. The last is more than one
/// chunk.
const BURSTS: [usize; 7] = [1, 2, 30, 1, 7, 3, 510];

/// Whether the log holds bytes that were written and not synced when that call began.
fn log_is_dirty(calls: &[Call], before: &Call) -> bool {
    let earlier = || calls.iter().filter(|call| call.returned < before.began);
    let written = earlier().filter(|call| call.writes_log()).map(|call| call.returned).max();
    let synced = earlier().filter(|call| call.syncs_log()).map(|call| call.began).max();
    written > synced
}

#[test]
fn every_answer_of_enqueue_comes_after_a_sync_of_its_chunk() {
    let place = Place::with_noop();
    let mut command = traced(&place, &[], &["-o", "jsonl", "enqueue", "-", "--each"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("strace starts");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut number = 0;
    for burst in BURSTS {
        let text: String = (number..number + burst).map(|number| event(&format!("e-{number}"), "t", "1")).collect();
        number += burst;
        input.write_all(text.as_bytes()).expect("the producer reads");
        for _ in 0..burst {
            let line = output.next().expect("an answer").expect("text");
            assert!(saved(&line).is_some(), "{line}");
        }
    }
    drop(input);
    ended(child, "enqueue under strace").ends(0);

    let calls = calls(&place);
    let answers: Vec<&Call> = calls.iter().filter(|call| call.moves("write", 1)).collect();
    assert_eq!(answers.len(), number, "an answer is one write");
    for answer in &answers {
        assert!(!log_is_dirty(&calls, answer), "answered before the sync: {answer:?}");
    }
    let mut first = 0;
    for burst in BURSTS {
        let answer = answers[first];
        let before = first.checked_sub(1).map_or(0, |last| answers[last].returned);
        let read = calls.iter().find(|call| call.moves("read", 0) && call.returned > before).expect("a read");
        let is_between = |call: &&Call| call.began > read.returned && call.returned < answer.began;
        let between: Vec<&Call> = calls.iter().filter(is_between).collect();
        assert!(between.iter().any(|call| call.writes_log()), "nothing was written before {answer:?}");
        assert!(between.iter().any(|call| call.syncs_log()), "nothing was synced before {answer:?}");
        first += burst;
    }
}

/// Runs until the first connection to the endpoint; at that moment something was synced and nothing is unsynced.
fn sends_what_is_synced(kind: &str) {
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    place.dlo_reading(&events(1, &format!("{kind}.x")), &["enqueue", "-"]).ends(0);
    bounded(traced(&place, &[], &["run", "--until-empty"])).ends(0);
    assert_eq!(endpoint.requests().len(), 1);
    let calls = calls(&place);
    let is_endpoint = |call: &&Call| call.is(&["connect"]) && call.arguments.contains(&endpoint.port());
    let connect = calls.iter().find(is_endpoint).expect("a connection to the endpoint");
    assert!(!log_is_dirty(&calls, connect), "sent before the sync: {connect:?}");
    let synced = calls.iter().any(|call| call.syncs_log() && call.returned < connect.began);
    assert!(synced, "the claim is saved first");
}

/// Whether the file says, while the request is under way, that the first byte may have left.
fn is_marked_while_sending(kind: &str) -> bool {
    let endpoint = Endpoint::start();
    endpoint.close_gate();
    let place = place_with_all_kinds(&endpoint, "");
    place.dlo_reading(&events(1, &format!("{kind}.x")), &["enqueue", "-"]).ends(0);
    let child = place.spawn(&["run", "--until-empty"]);
    endpoint.wait_for(1);
    let file = rusqlite::Connection::open(place.path("dlo.db")).expect("the database");
    let marked = file.query_row("SELECT send_mark FROM dlo_entry", [], |row| row.get(0)).expect("one live entry");
    endpoint.open_gate();
    ended(child, "run with one request under way").ends(0);
    marked
}

#[test]
fn a_send_mark_is_on_the_disk_before_the_connection() {
    for (kind, keeps_marks) in [("dedup", false), ("tolerated", false), ("harmful", true)] {
        sends_what_is_synced(kind);
        assert_eq!(is_marked_while_sending(kind), keeps_marks, "{kind}");
    }
}
