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

/// Syncs of the log before the first connection to the endpoint; at that moment nothing is unsynced.
fn syncs_before_sending(kind: &str) -> usize {
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    place.dlo_reading(&events(1, &format!("{kind}.x")), &["enqueue", "-"]).ends(0);
    bounded(traced(&place, &[], &["run", "--until-empty"])).ends(0);
    assert_eq!(endpoint.requests().len(), 1);
    let calls = calls(&place);
    let is_endpoint = |call: &&Call| call.is(&["connect"]) && call.arguments.contains(&endpoint.port());
    let connect = calls.iter().find(is_endpoint).expect("a connection to the endpoint");
    assert!(!log_is_dirty(&calls, connect), "sent before the sync: {connect:?}");
    calls.iter().filter(|call| call.syncs_log() && call.returned < connect.began).count()
}

#[test]
fn a_send_mark_is_on_the_disk_before_the_connection() {
    let tolerated = syncs_before_sending("tolerated");
    assert!(tolerated > 0, "the claim is saved first");
    assert_eq!(syncs_before_sending("harmful"), tolerated + 1, "and where duplicates do harm the mark, too");
}
