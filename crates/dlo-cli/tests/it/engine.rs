//! `run`: until empty, signals, one engine a file, metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use crate::endpoint::Endpoint;
use crate::place::{Place, QUICK_POLICY, Ran, column, destination, event, events};

fn with_endpoint(endpoint: &Endpoint, duplicates: &str) -> Place {
    Place::with(&format!(
        "{QUICK_POLICY}{}",
        destination("hook", "webhook", duplicates, "*", &endpoint.settings("hook"))
    ))
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

fn ended(child: Child) -> Ran {
    child.wait_with_output().expect("the binary ends").into()
}

#[test]
fn until_empty_delivers_everything_and_ends() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "deduplicated(1h)");
    place.dlo_reading(&events(30, "t"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("30 delivered");
    let rows = place.json(&["entries", "list", "--state", "delivered"]);
    assert_eq!(rows.as_array().unwrap().len(), 30);
    assert_eq!(endpoint.requests().len(), 30);
    let key = &endpoint.requests()[0].headers["idempotency-key"];
    assert_eq!(key, &endpoint.requests()[0].headers["webhook-id"]);
    place.dlo(&["doctor"]).ends(0);
}

#[test]
fn plain_mode_drains_too() {
    let place = Place::with_noop();
    place.dlo_reading(&events(150, "t"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty", "--plain"]).ends(0).says("150 delivered");
}

#[test]
fn scopes_narrow_the_engine() {
    let place = Place::with(&format!(
        "{}{}",
        destination("a", "noop", "tolerated", "t.*", ""),
        destination("b", "noop", "tolerated", "t.*", "")
    ));
    place.dlo_reading(&events(3, "t.x"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty", "--destination", "a"]).ends(0);
    let left = place.json(&["entries", "list", "--state", "ready"]);
    assert_eq!(column(&left, "destination"), ["b", "b", "b"]);
}

/// One destination whose page does not fit in the lease is told, and delivered in smaller pages beside the others.
#[test]
fn a_page_longer_than_the_lease_stops_no_start() {
    let place = Place::with(&destination("hook", "noop", "tolerated", "t.*", ""));
    place.dlo_reading(&events(3, "t.x"), &["enqueue", "-"]).ends(0);
    let short = "[engine]\nlease = \"1s\"\n[policy]\npage = 1\nemission_deadline = \"500ms\"\n";
    place.write("short.toml", short);
    let run = ["--config", "short.toml", "--store", "dlo.db", "run", "--until-empty"];
    place.dlo(&run).ends(0).says("smaller pages").says("3 delivered");
}

/// Rows of a destination that can't be read are told and skipped, at each start (trap D10).
#[test]
fn an_unreadable_destination_stops_no_other() {
    for damage in [
        "UPDATE dlo_destination SET spec = '{' WHERE name = 'bad'",
        "INSERT INTO dlo_health (tenant, destination, version, schema, body) VALUES ('default', 'bad', 1, 1, '{')",
    ] {
        let place = Place::with(&format!(
            "{}{}",
            destination("bad", "noop", "tolerated", "t.*", ""),
            destination("good", "noop", "tolerated", "t.*", "")
        ));
        place.dlo_reading(&events(3, "t.x"), &["enqueue", "-"]).ends(0);
        let file = rusqlite::Connection::open(place.path("dlo.db")).unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1);
        drop(file);
        for _ in 0..2 {
            place.dlo(&["run", "--until-empty"]).ends(0).says("could not all be checked").says("3 delivered");
        }
    }
}

#[test]
fn a_signal_in_the_middle_loses_nothing() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "tolerated");
    place.dlo_reading(&events(40, "t"), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let child = place.spawn(&["run"]);
    endpoint.wait_for(3);
    signal(&child, "INT");
    endpoint.open_gate();
    ended(child).ends(0).says("stopping").says("stopped");

    let rows = place.json(&["entries", "list", "--all"]);
    assert_eq!(rows.as_array().unwrap().len(), 40, "every entry is accounted for");
    assert!(!column(&rows, "state").contains(&"claimed"), "a stop in good order leaves no claim");
    for row in rows.as_array().unwrap() {
        let shown = place.json(&["entries", "show", row["entry"].as_str().unwrap()]);
        assert_eq!(shown["live"]["failed_in_generation"].as_u64().unwrap_or(0), 0, "a shutdown charges nothing");
    }
    place.dlo(&["run", "--until-empty"]).ends(0).says("40 delivered");
    place.dlo(&["doctor"]).ends(0);
}

#[test]
fn a_second_signal_ends_at_once_and_loses_nothing() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "tolerated");
    place.dlo_reading(&events(5, "t"), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let mut child = place.spawn(&["run"]);
    endpoint.wait_for(1);
    signal(&child, "TERM");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("stopping")).unwrap().unwrap();
    let status = loop {
        // One that comes too soon after the first is the same request.
        signal(&child, "TERM");
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
    endpoint.open_gate();
    place.dlo(&["run", "--until-empty"]).ends(0).says("5 delivered");
}

/// `timeout` sends its signal twice: to the process, and to the process group that it is in.
#[test]
fn one_request_that_comes_as_two_signals_stops_in_good_order() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "harmful");
    place.dlo_reading(&events(3, "t"), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let child = place.spawn(&["run"]);
    endpoint.wait_for(1);
    signal(&child, "TERM");
    signal(&child, "INT");
    endpoint.open_gate();
    ended(child).ends(0).says("stopped");
    place.dlo(&["run", "--until-empty"]).ends(0).says("3 delivered").says("0 open dead letters");
}

#[test]
fn a_destination_that_is_not_there_is_told() {
    let bare = Place::empty();
    bare.dlo(&["init"]).ends(0);
    bare.dlo(&["run", "--until-empty"]).ends(0).says("warning: no destination is in the store");
    let place = Place::with_noop();
    place.dlo_reading(&events(1, "t"), &["enqueue", "-"]).ends(0);
    let ran = place.dlo(&["run", "--until-empty", "--destination", "snik"]).ends(0);
    ran.says("warning: destination `snik` is not in the store");
    for verb in
        [&["entries", "list"][..], &["entries", "retry-now"], &["dead-letters", "list"], &["dead-letters", "groups"]]
    {
        place.dlo(&[verb, &["--destination", "snik"]].concat()).ends(4).says("error[cli.not_found]");
    }
}

#[test]
fn a_second_engine_is_refused_with_the_pid_of_the_first() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "tolerated");
    place.dlo_reading(&event("a", "t", "1"), &["enqueue", "-"]).ends(0);
    endpoint.close_gate();
    let first = place.spawn(&["run"]);
    endpoint.wait_for(1);
    place.dlo(&["run"]).ends(5).says("error[store.fenced]").says(&first.id().to_string());
    let workers = place.json(&["workers"]);
    assert_eq!(workers[0]["pid"].as_u64(), Some(u64::from(first.id())));
    place.dlo_reading(&event("b", "t", "1"), &["enqueue", "-"]).ends(0);
    signal(&first, "TERM");
    endpoint.open_gate();
    ended(first).ends(0);
}

#[test]
fn metrics_are_written_to_a_file() {
    let place = Place::with_noop();
    place.dlo_reading(&events(7, "t"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty", "--metrics-file", "dlo.prom"]).ends(0);
    let text = place.read("dlo.prom");
    assert!(text.contains("dlo_delivered_total{tenant=\"default\",destination=\"sink\"} 7"), "{text}");
    assert!(text.ends_with("# EOF\n"));
    place.dlo(&["run", "--until-empty", "--metrics-file", "no/such/folder/x"]).ends(6).says("error[cli.io]");
}

#[test]
fn metrics_are_served_on_a_port() {
    let place = Place::with_noop();
    let mut child = place.spawn(&["run", "--metrics-listen", "127.0.0.1:0"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().unwrap().contains("metrics on http://")).unwrap().unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("application/openmetrics-text"), "{answer}");
    assert!(answer.contains("dlo_entries_ready{tenant=\"default\",destination=\"sink\"} 0"), "{answer}");
    assert!(get("/").starts_with("HTTP/1.1 404"));
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn with_json_logs_every_line_on_stderr_is_one_object() {
    let endpoint = Endpoint::start();
    let place = with_endpoint(&endpoint, "tolerated");
    endpoint.answers("hook", 400);
    place.dlo_reading(&events(2, "t"), &["enqueue", "-"]).ends(0);
    let ran = place.dlo(&["--log-format", "json", "run", "--until-empty"]).ends(0);
    let lines: Vec<serde_json::Value> = ran.err.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().any(|line| line["message"].as_str().is_some_and(|text| text.contains("2 open dead letters"))));
    assert!(lines.len() > 3, "the engine logs what it does");
}

#[test]
fn forced_color_does_not_disturb_the_engine_and_its_logs() {
    let place = Place::with_noop();
    place.dlo_reading(&events(1, "t"), &["enqueue", "-"]).ends(0);
    let ran = place.command(&["run", "--until-empty"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    Ran::from(ran).ends(0).says("engine started").says("1 delivered");
}
