//! `enqueue`: files, stdin, malformed lines, keys, times.

use crate::place::{Place, column, event, events};

#[test]
fn a_malformed_line_loses_nothing_else() {
    let place = Place::with_noop();
    let input = format!("{}{{\"specversion\":\n\n{}not json\n", event("a", "t", "1"), event("b", "t", "2"));
    place.write("events.jsonl", &input);
    let ran = place.dlo(&["--output", "json", "enqueue", "events.jsonl"]).ends(3);
    let ran = ran.says("line 2:").says("line 5:").says("error[event.not_json]").says("error[cli.partly_done]");
    let tally = ran.json();
    assert_eq!((tally["lines"].as_u64(), tally["created"].as_u64()), (Some(4), Some(2)));
    assert_eq!(tally["malformed"].as_u64(), Some(2));
    assert_eq!(place.json(&["entries", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn the_same_file_again_adds_nothing() {
    let place = Place::with_noop();
    place.write("events.jsonl", &events(1_200, "t"));
    let first = place.json(&["enqueue", "events.jsonl"]);
    assert_eq!((first["created"].as_u64(), first["entries"].as_u64()), (Some(1_200), Some(1_200)));
    let second = place.json(&["enqueue", "events.jsonl"]);
    assert_eq!((second["created"].as_u64(), second["existing"].as_u64()), (Some(0), Some(1_200)));
    let all = place.dlo(&["--output", "jsonl", "entries", "list", "--all"]).ends(0);
    assert_eq!(all.out.lines().count(), 1_200);
}

#[test]
fn one_key_with_other_content_is_a_conflict() {
    let place = Place::with_noop();
    place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-"]).ends(0);
    let ran = place.dlo_reading(&event("a", "t", "2"), &["--output", "jsonl", "enqueue", "-", "--each"]).ends(4);
    let row: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
    assert_eq!((row["line"].as_u64(), row["result"].as_str()), (Some(1), Some("conflict")));
    ran.says("error[enqueue.conflict]: line 1:");
}

#[test]
fn what_nobody_takes_is_refused() {
    let place = Place::with("");
    place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-"]).ends(4).says("error[enqueue.no_route]: line 1:");
    let place = Place::with_noop();
    let ran = place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-", "--destination", "nowhere"]);
    ran.ends(4).says("error[enqueue.unknown_destination]");
}

#[test]
fn each_answers_line_by_line_in_order() {
    let place = Place::with_noop();
    let input = format!("{}oops\n{}", event("a", "t", "1"), event("b", "t", "1"));
    let ran = place.dlo_reading(&input, &["--output", "json", "enqueue", "-", "--each"]).ends(3);
    let rows = ran.json();
    assert_eq!(column(&rows, "result"), ["created", "malformed", "created"]);
    assert_eq!(rows[0]["entries"][0]["destination"], "sink");
}

#[test]
fn a_line_beyond_the_bound_is_reported_and_the_next_is_saved() {
    let place = Place::with_noop();
    let input = format!("{{\"data\":\"{}\"}}\n{}", "x".repeat(25 * 1_024 * 1_024), event("b", "t", "1"));
    place.write("events.jsonl", &input);
    place.dlo(&["enqueue", "events.jsonl"]).ends(3).says("error[event.too_long]: line 1:");
    assert_eq!(place.json(&["stats"])[0]["enqueued_total"].as_u64(), Some(1));
}

#[test]
fn not_before_and_deliver_by_are_times_or_spans() {
    let place = Place::with_noop();
    place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-", "--not-before", "1h", "--deliver-by", "2h"]).ends(0);
    let rows = place.json(&["entries", "list"]);
    assert_eq!(column(&rows, "state"), ["waiting"]);
    let entry = place.json(&["entries", "show", rows[0]["entry"].as_str().unwrap()]);
    assert!(entry["live"]["not_before"].as_str().unwrap() < entry["live"]["deliver_by"].as_str().unwrap());
    place.dlo_reading("", &["enqueue", "-", "--not-before", "soon"]).ends(2).says("--not-before");
    let ran = place.dlo_reading(&event("b", "t", "1"), &["enqueue", "-", "--deliver-by", "2020-01-01T00:00:00Z"]);
    ran.ends(4).says("error[enqueue.deadline_passed]");
}

#[test]
fn a_byte_order_mark_before_the_first_line_does_no_harm() {
    let place = Place::with_noop();
    place.dlo_reading(&format!("\u{feff}{}", event("a", "t", "1")), &["enqueue", "-"]).ends(0).shows("created");
}

#[test]
fn a_reader_that_goes_away_keeps_no_line_from_being_saved() {
    let place = Place::with_noop();
    place.write("events.jsonl", &events(3_000, "t"));
    let mut command = place.command(&["enqueue", "events.jsonl", "--each", "-o", "jsonl"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.json(&["stats"])[0]["enqueued_total"].as_u64(), Some(3_000));
}

/// By the limit on the size of files, which the write-ahead log meets after some chunks.
#[test]
fn a_store_that_fails_midway_says_what_was_saved_before() {
    let place = Place::with_noop();
    let data = format!("\"{}\"", "x".repeat(1_000));
    place.write("events.jsonl", &(0..20_000).map(|number| event(&number.to_string(), "t", &data)).collect::<String>());
    let limited = "ulimit -f 8192; exec \"$0\" enqueue events.jsonl -o json";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limited]).arg(crate::place::binary()).current_dir(place.path(""));
    let ran: crate::place::Ran = command.output().unwrap().into();
    let ran = ran.ends(5).says("error[store.").says("no line after it");
    let created = ran.json()["created"].as_u64().unwrap();
    assert!(created > 0 && created < 20_000, "{created}");
    assert_eq!(place.json(&["stats"])[0]["enqueued_total"].as_u64(), Some(created));
    place.dlo(&["enqueue", "events.jsonl"]).ends(0).shows(&format!("existing   {created}"));
}

#[test]
fn a_file_that_is_not_there_is_an_io_error() {
    Place::with_noop().dlo(&["enqueue", "nothing.jsonl"]).ends(6).says("error[cli.io]: nothing.jsonl");
}

#[test]
fn tenants_do_not_mix() {
    let place = Place::with(&format!(
        "{}tenant = \"acme\"\n{}",
        crate::place::destination("sink", "noop", "tolerated", "*", ""),
        crate::place::destination("sink", "noop", "tolerated", "*", ""),
    ));
    place.dlo_reading(&event("a", "t", "1"), &["--tenant", "acme", "enqueue", "-"]).ends(0);
    place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-"]).ends(0);
    assert_eq!(place.json(&["entries", "list"]).as_array().unwrap().len(), 2);
    let rows = place.json(&["--tenant", "acme", "entries", "list"]);
    assert_eq!(column(&rows, "tenant"), ["acme"]);
    let entry = rows[0]["entry"].as_str().unwrap();
    place.dlo(&["entries", "show", entry]).ends(4).says("--tenant");
    place.dlo(&["--tenant", "acme", "entries", "show", entry]).ends(0);
}
