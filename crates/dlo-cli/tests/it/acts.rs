//! What operators do and see: destinations, entries, dead letters, redrive, audit, stats.

use crate::endpoint::Endpoint;
use crate::place::{Place, QUICK_POLICY, column, destination, event, events};

/// `hook` is tolerated and `pay` harmful, both on one endpoint.
fn with_two(endpoint: &Endpoint) -> Place {
    Place::with(&format!(
        "{QUICK_POLICY}{}{}",
        destination("hook", "webhook", "tolerated", "t.*", &endpoint.settings("hook")),
        destination("pay", "webhook", "harmful", "pay.*", &endpoint.settings("pay")),
    ))
}

#[test]
fn a_refused_event_is_quarantined_shown_grouped_redriven_and_delivered() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    endpoint.answers("hook", 400);
    place.dlo_reading(&events(3, "t.x"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("3 open dead letters");

    let letters = place.json(&["dead-letters", "list", "--class", "deterministic", "--state", "open"]);
    assert_eq!(column(&letters, "reason"), ["http.bad_request"; 3]);
    let id = letters[0]["dead_letter"].as_str().unwrap();
    let shown = place.json(&["dead-letters", "show", id]);
    assert_eq!(shown["payload"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(shown["attempt_history"][0]["http_status"].as_u64(), Some(400));
    let groups = place.json(&["dead-letters", "groups"]);
    assert_eq!((groups.as_array().unwrap().len(), groups[0]["count"].as_u64()), (1, Some(3)));
    let group = groups[0]["fingerprint"].as_str().unwrap();
    for destination in [&[][..], &["--destination", "hook"]] {
        let members = place.json(&[&["dead-letters", "list", "--fingerprint", group][..], destination].concat());
        assert_eq!(column(&members, "dead_letter"), column(&letters, "dead_letter"));
    }
    let nothing = place.json(&["dead-letters", "list", "--fingerprint", "fp1_00000000000000000000000000000000"]);
    assert_eq!(nothing.as_array().unwrap().len(), 0);
    place.dlo(&["dead-letters", "list", "--fingerprint", "fp1_12"]).ends(2).says("32 hexadecimal digits");

    endpoint.answers("hook", 204);
    let rows = place.json(&["redrive", id, "--reason", "schema mended"]);
    assert_eq!((column(&rows, "result"), rows[0]["new_generation"].as_u64()), (vec!["redriven"], Some(1)));
    place.dlo(&["redrive", id, "--reason", "again"]).ends(4).shows("redrive.not_open");
    place.dlo(&["run", "--until-empty"]).ends(0).says("1 delivered");

    let entry = place.json(&["entries", "show", letters[0]["entry"].as_str().unwrap()]);
    assert_eq!((entry["state"].as_str(), entry["generation"].as_u64()), (Some("delivered"), Some(1)));
    assert_eq!(entry["ended"].as_array().unwrap().len(), 2);
    let ledger = place.json(&["audit", "redrives"]);
    assert_eq!(column(&ledger, "result"), ["refused", "redriven"]);
    let acts = place.json(&["audit", "list"]);
    assert_eq!(column(&acts, "act"), ["dead_letter.redrive", "dead_letter.redrive", "destination.apply"]);
    assert_eq!(acts[1]["reason"], "schema mended");
    assert!(acts[0]["actor"].as_str().unwrap().starts_with("local:"));
    assert_eq!(acts[0]["strength"], "asserted");
}

#[test]
fn entries_are_found_by_the_producers_event() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    place.dlo_reading(&event("evt-1", "t.x", "1"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("1 delivered");
    endpoint.answers("hook", 400);
    place.dlo_reading(&event("evt-2", "t.y", "2"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0);
    place.dlo_reading(&event("evt-3", "t.y", "3"), &["enqueue", "-"]).ends(0);
    for (flags, expected) in [
        (&["--event-id", "evt-1"][..], &["delivered"][..]),
        (&["--event-id", "evt-2"], &["dead_lettered"]),
        (&["--event-id", "evt-3", "--event-type", "t.y"], &["ready"]),
        (&["--event-type", "t.y"], &["ready", "dead_lettered"]),
        (&["--event-id", "evt-1", "--event-type", "t.y", "--all"], &[]),
        (&["--event-id", "evt"], &[]),
    ] {
        let rows = place.json(&[&["entries", "list"][..], flags].concat());
        assert_eq!(column(&rows, "state"), expected, "{flags:?}");
    }
    let rows = place.json(&["entries", "list"]);
    assert_eq!(column(&rows, "source_event_id"), ["evt-3", "evt-2", "evt-1"]);
    assert_eq!(column(&rows, "event_type"), ["t.y", "t.y", "t.x"]);
    place.dlo(&["entries", "list"]).ends(0).shows("EVENT ID").shows("evt-1").shows("t.x");
    place.dlo(&["dead-letters", "list"]).ends(0).shows("EVENT ID").shows("evt-2").shows("t.y");
}

#[test]
fn an_unanswered_harmful_send_is_never_repeated_nor_released() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    endpoint.answers("pay", 0);
    place.dlo_reading(&event("p", "pay.x", "1"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0);
    assert_eq!(endpoint.requests().len(), 1);
    let letters = place.json(&["dead-letters", "list"]);
    assert_eq!(column(&letters, "code"), ["outbox.outcome_ambiguous"]);
    let id = letters[0]["dead_letter"].as_str().unwrap();
    place.dlo(&["redrive", id, "--reason", "please"]).ends(4).shows("redrive.unanswered").says("error[cli.refused]");
    endpoint.answers("pay", 204);
    place.dlo(&["run", "--until-empty"]).ends(0);
    assert_eq!(endpoint.requests().len(), 1, "it was not sent again");
}

#[test]
fn ids_that_are_not_there_fail_by_themselves() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    endpoint.answers("hook", 400);
    place.dlo_reading(&event("a", "t.x", "1"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0);
    let letters = place.json(&["dead-letters", "list"]);
    let id = letters[0]["dead_letter"].as_str().unwrap();
    let nobody = "dl_00000000000000000000000000000000";
    place.dlo(&["dead-letters", "show", nobody]).ends(4).says("error[cli.not_found]");
    let ran = place.dlo(&["--output", "json", "redrive", id, nobody, "--reason", "both"]).ends(3);
    assert_eq!(column(&ran.json(), "result"), ["redriven", "missing"]);
    place.dlo(&["entries", "show", "ent_00000000000000000000000000000000"]).ends(4).says("error[cli.not_found]");
    place.dlo(&["destinations", "show", "nobody"]).ends(4).says("error[cli.not_found]");
}

#[test]
fn a_hold_stops_everything_until_it_is_released() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    place.dlo_reading(&events(2, "t.x"), &["enqueue", "-"]).ends(0);
    let held = place.json(&["destinations", "hold", "--all", "--reason", "incident"]);
    assert_eq!(column(&held, "item"), ["default/hook", "default/pay"]);
    place.dlo(&["run", "--until-empty"]).ends(0).says("held: hook, pay");
    assert_eq!(endpoint.requests().len(), 0);
    let rows = place.json(&["entries", "list"]);
    assert!(rows.as_array().unwrap().iter().all(|row| row["held"] == true && row["state"] == "ready"));
    place.dlo(&["destinations", "list"]).ends(0).shows("by person").shows("incident");
    place.dlo(&["destinations", "show", "hook"]).ends(0).shows("incident");
    place.dlo(&["destinations", "hold", "nobody", "--reason", "x"]).ends(4).shows("missing");
    place.dlo(&["destinations", "hold", "hook"]).ends(2).says("--reason");

    place.dlo(&["destinations", "release", "--all", "--reason", "over"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0);
    assert_eq!(endpoint.requests().len(), 2);
}

#[test]
fn a_probe_tries_one_entry_of_a_held_destination() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    endpoint.answers("hook", 401);
    place.dlo_reading(&events(4, "t.x"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0);
    let shown = place.json(&["destinations", "show", "hook"]);
    assert_eq!(shown["holds"][0]["by"], "configuration");
    let refused = endpoint.requests().len();

    endpoint.answers("hook", 204);
    place.dlo(&["destinations", "probe", "hook", "--reason", "credentials renewed"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("4 delivered");
    assert_eq!(endpoint.requests().len(), refused + 4);
    assert!(place.json(&["destinations", "show", "hook"])["holds"].as_array().unwrap().is_empty());
}

#[test]
fn entries_are_cancelled_and_made_due() {
    let endpoint = Endpoint::start();
    let place = with_two(&endpoint);
    place.dlo_reading(&events(3, "t.x"), &["enqueue", "-", "--not-before", "1h"]).ends(0);
    let rows = place.json(&["entries", "list"]);
    let ids = column(&rows, "entry");
    place.dlo(&["entries", "cancel", ids[0]]).ends(2).says("--reason");
    place.dlo(&["entries", "cancel", ids[0], "--reason", "ordered twice"]).ends(0).shows("done");
    place.dlo(&["entries", "cancel", ids[0], "--reason", "again"]).ends(4).shows("cancelled");

    place.dlo(&["entries", "retry-now", "--destination", "hook", "--per-minute", "1"]).ends(0);
    let waiting = place.json(&["entries", "list", "--state", "waiting"]);
    assert_eq!(waiting.as_array().unwrap().len(), 1, "one is due, one a minute later, one is cancelled");
    place.dlo(&["entries", "retry-now", column(&waiting, "entry")[0], "--reason", "now"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("2 delivered");
    place.dlo(&["entries", "retry-now", ids[1]]).ends(4).shows("refused");
    let stats = place.json(&["stats"]);
    assert_eq!((stats[0]["delivered_total"].as_u64(), stats[0]["cancelled_total"].as_u64()), (Some(2), Some(1)));
    place.dlo(&["doctor"]).ends(0);
}

#[test]
fn an_entry_in_manual_review_is_put_into_quarantine() {
    let endpoint = Endpoint::start();
    let policy = QUICK_POLICY.replace(
        "max_retry_attempts = 2",
        "max_retry_attempts = 1\ndead_letter_on_max_retry_attempts = false\nalternative = \"manual_review\"",
    );
    let hook = destination("hook", "webhook", "tolerated", "*", &endpoint.settings("hook"));
    let place = Place::with(&format!("{policy}{hook}"));
    endpoint.answers("hook", 429);
    place.dlo_reading(&events(2, "t"), &["enqueue", "-"]).ends(0);
    place.dlo(&["run", "--until-empty"]).ends(0).says("in manual review: 2");
    place.dlo(&["destinations", "show", "hook"]).ends(0).shows("then manual review");
    let rows = place.json(&["entries", "list", "--state", "manual_review"]);
    let ids = column(&rows, "entry");

    place.dlo(&["entries", "dead-letter", ids[0]]).ends(2).says("--reason");
    place.dlo(&["entries", "dead-letter", ids[0], "--reason", "the receiver is gone"]).ends(0).shows("done");
    let letters = place.json(&["dead-letters", "list"]);
    assert_eq!(column(&letters, "code"), ["outbox.dead_lettered_by_operator"]);
    assert_eq!(column(&letters, "reason"), ["http.too_many_requests"], "the failure that set it aside is kept");
    let acts = place.json(&["audit", "list"]);
    assert_eq!((acts[0]["act"].as_str(), acts[0]["target"].as_str()), (Some("entry.dead_letter"), Some(ids[0])));
    assert_eq!(acts[0]["reason"], "the receiver is gone");
    let ran = place.dlo(&["entries", "dead-letter", ids[0], "--reason", "again"]).ends(4);
    ran.shows("not allowed in state dead_lettered").shows("dlo redrive").says("dlo explain cli.refused");
    place.dlo(&["doctor"]).ends(0);
}

#[test]
fn what_is_refused_names_the_page_of_its_own_code() {
    let place = Place::with_noop();
    let nobody = "dl_00000000000000000000000000000000";
    place.dlo(&["redrive", nobody, "--reason", "x"]).ends(4).says("hint: `dlo explain cli.not_found`");
    let entry = "ent_00000000000000000000000000000000";
    place.dlo(&["redrive", entry, "--reason", "x"]).ends(2).says("`dlo entries show` names its dead letter");
    place.dlo(&["entries", "show", nobody]).ends(2).says("`dlo dead-letters show` names its entry");
}

#[test]
fn a_test_ping_is_signed_and_saves_nothing() {
    let endpoint = Endpoint::start();
    let place = Place::empty();
    place.dlo(&["init"]).ends(0);
    let secret = place.path("secret");
    place.write("secret", "a-signing-secret-of-32-bytes-....");
    let settings = format!("{}, secrets = [\"file:{}\"]", endpoint.settings("hook"), secret.display());
    place.write("dlo.toml", &destination("hook", "webhook", "harmful", "*", &settings));
    place.dlo(&["destinations", "apply"]).ends(0);

    let ping = place.json(&["destinations", "test", "hook"]);
    assert_eq!(ping["outcome"], "delivered");
    let requests = endpoint.requests();
    assert!(requests[0].headers["webhook-signature"].starts_with("v1,"));
    assert_eq!(requests[0].headers["idempotency-key"], ping["operation_key"].as_str().unwrap());
    assert_eq!(place.json(&["stats"])[0]["enqueued_total"].as_u64(), Some(0));

    endpoint.answers("hook", 503);
    let ran = place.dlo(&["--output", "json", "destinations", "test", "hook"]).ends(1);
    assert_eq!(ran.json()["http_status"].as_u64(), Some(503));
    assert_eq!(ran.json()["reason"], "http.unavailable");
    ran.says("error[cli.check_failed]").says("hint: `dlo explain http.unavailable`");
}

#[test]
fn stats_speak_openmetrics() {
    let place = Place::with_noop();
    place.dlo_reading(&events(2, "t"), &["enqueue", "-"]).ends(0);
    let ran = place.dlo(&["stats", "--openmetrics"]).ends(0);
    ran.shows("dlo_entries_ready{tenant=\"default\",destination=\"sink\"} 2").shows("# EOF");
}

#[test]
fn doctor_finds_a_vanished_entry() {
    let place = Place::with_noop();
    place.dlo_reading(&events(2, "t"), &["enqueue", "-"]).ends(0);
    place.dlo(&["doctor"]).ends(0);
    let database = rusqlite::Connection::open(place.path("dlo.db")).unwrap();
    let gone = database.execute("DELETE FROM dlo_entry WHERE rowid = (SELECT min(rowid) FROM dlo_entry)", ());
    assert_eq!(gone.unwrap(), 1);
    drop(database);
    let ran = place.dlo(&["--output", "json", "doctor"]).ends(1).says("error[cli.check_failed]");
    let found = ran.json();
    assert_eq!(found["healthy"], false);
    assert_eq!(found["violations"][0]["invariant"], "I-01");
}

#[test]
fn acts_are_bounded_and_want_reasons() {
    let place = Place::with_noop();
    let ids: Vec<String> = (0..101).map(|number| format!("dl_{number:032}")).collect();
    let mut args = vec!["redrive", "--reason", "all of them"];
    args.extend(ids.iter().map(String::as_str));
    place.dlo(&args).ends(2).says("error[office.too_many_items]").says("at most 100");
    place.dlo(&["redrive", &ids[0], &ids[0], "--reason", "x"]).ends(2).says("error[office.duplicate_item]");
    place.dlo(&["redrive", &ids[0], "--reason", " "]).ends(2).says("error[office.reason_blank]");
    let entry = "ent_00000000000000000000000000000000";
    place.dlo(&["entries", "retry-now", entry, "--per-minute", "0"]).ends(2).says("error[office.pace_invalid]");
    assert!(
        place.json(&["audit", "redrives"]).as_array().unwrap().is_empty(),
        "what is refused as a whole changes nothing"
    );
}

#[test]
fn lists_continue_where_they_stopped() {
    let place = Place::with_noop();
    place.dlo_reading(&events(7, "t"), &["enqueue", "-"]).ends(0);
    let first = place.dlo(&["-o", "json", "entries", "list", "--limit", "5"]).ends(0).says("--after");
    let first = first.json();
    let last = first[4]["seq"].as_u64().unwrap().to_string();
    let rest = place.json(&["entries", "list", "--after", &last]);
    let mut all = column(&first, "entry");
    all.extend(column(&rest, "entry"));
    assert_eq!(all, column(&place.json(&["entries", "list", "--all"]), "entry"));
    assert_eq!(all.len(), 7);
}

#[test]
fn workers_are_listed_with_their_end() {
    let place = Place::with_noop();
    place.dlo(&["workers"]).ends(0).says("no worker");
    place.dlo(&["run", "--until-empty"]).ends(0);
    let workers = place.json(&["workers"]);
    assert_eq!(column(&workers, "worker"), ["dlo"]);
    assert!(workers[0]["ended"].is_string());
}
