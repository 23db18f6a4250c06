//! `init`, `config`, and what is said of a store's file that is not there or is none.

use crate::place::{Place, column, destination};

#[test]
fn init_writes_a_valid_file_and_a_database_and_keeps_what_is_there() {
    let place = Place::empty();
    place.dlo(&["init"]).ends(0).says("wrote");
    assert!(place.path("dlo.db").is_file());
    place.dlo(&["config", "check"]).ends(0);
    place.dlo(&["doctor"]).ends(0).shows("none");
    place.write("dlo.toml", "[store]\npath = \"data/outbox.db\"\n");
    place.dlo(&["init"]).ends(0).says("stays as it is").says("made");
    assert_eq!(place.read("dlo.toml"), "[store]\npath = \"data/outbox.db\"\n");
    assert!(place.path("data/outbox.db").is_file(), "a file that came with a deployment gets its database");
    place.dlo(&["init"]).ends(0).says("opened");
    place.dlo(&["doctor"]).ends(0);
}

/// Payloads stand in it as they are.
#[test]
fn a_new_database_can_be_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::empty();
    place.dlo(&["init"]).ends(0);
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("dlo.db"), 0o600);
}

#[test]
fn a_file_without_an_outbox_is_left_as_it_is() {
    let place = Place::empty();
    let other = rusqlite::Connection::open(place.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)").unwrap();
    drop(other);
    let before = std::fs::read(place.path("other.db")).unwrap();
    place.dlo(&["--store", "other.db", "stats"]).ends(5).says("error[store.unavailable]").says("dlo init");
    place.dlo(&["--store", "other.db", "run", "--until-empty"]).ends(5);
    assert_eq!(std::fs::read(place.path("other.db")).unwrap(), before);
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_accident() {
    let place = Place::empty();
    place.dlo(&["entries", "list"]).ends(5).says("error[store.").says("hint:");
    assert!(!place.path("dlo.db").exists());
}

#[test]
fn unknown_keys_are_errors_with_line_and_column() {
    let place = Place::empty();
    place.write("dlo.toml", "[engine]\nworker = \"w\"\nlaese = \"5m\"\n");
    place.dlo(&["config", "check"]).ends(2).says("error[config.invalid]").says("dlo.toml:3:1").says("laese");
}

#[test]
fn config_check_warns_of_secrets_that_are_not_there() {
    let place = Place::empty();
    let settings = "url = \"https://example.org/\", secrets = [\"env:DLO_TEST_NOBODY_SETS_THIS\", \"file:/dev/null\"]";
    place.write("dlo.toml", &destination("hook", "webhook", "tolerated", "*", settings));
    let ran = place.dlo(&["config", "check"]).ends(0).says("`env:DLO_TEST_NOBODY_SETS_THIS` can't be read here");
    assert!(!ran.err.contains("/dev/null"), "{}", ran.err);
}

#[test]
fn config_show_names_the_origin_of_every_value() {
    let place = Place::empty();
    place.write("dlo.toml", "[engine]\nworker = \"w\"\n");
    let mut command = place.command(&["--output", "json", "--store", "x.db", "config", "show"]);
    let shown: serde_json::Value =
        serde_json::from_slice(&command.env("DLO_LOG_LEVEL", "error").output().unwrap().stdout).unwrap();
    let origin = |key: &str| {
        let row = shown.as_array().unwrap().iter().find(|row| row["key"] == key).unwrap();
        row["origin"].as_str().unwrap().to_owned()
    };
    assert!(origin("engine.worker").ends_with("dlo.toml:2"), "{}", origin("engine.worker"));
    assert_eq!(origin("engine.lease"), "default");
    assert!(origin("log.level").contains("DLO_LOG_LEVEL"));
    assert!(origin("store.path").contains("--store"));
}

#[test]
fn apply_says_what_changed_and_doctor_says_what_was_not_applied() {
    let place = Place::with_noop();
    let applied = place.json(&["destinations", "apply"]);
    assert_eq!(column(&applied, "change"), ["unchanged"]);
    place.write("dlo.toml", &destination("sink", "noop", "harmful", "*", ""));
    place.dlo(&["doctor"]).ends(0).shows("`dlo destinations apply` saves it");
    let applied = place.json(&["destinations", "apply"]);
    assert_eq!((column(&applied, "change"), applied[0]["version"].as_u64()), (vec!["updated"], Some(2)));
}
