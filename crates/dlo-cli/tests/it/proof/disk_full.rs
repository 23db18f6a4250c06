//! A full disk, and a file that may not grow: the error is clear, nothing is claimed meanwhile, nothing acknowledged is
//! lost, and work goes on when there is space.

use std::collections::BTreeSet;
use std::process::Command;

use super::disk_io::{LINES, STORE, entries};
use super::ledger::{KINDS, accounts, check_requests, created, place_with_all_kinds, saved};
use super::run::bounded;
use super::strace::{calls, traced};
use crate::endpoint::Endpoint;
use crate::place::{Place, Ran, event, events};

const ENQUEUE: [&str; 5] = ["-o", "jsonl", "enqueue", "events.jsonl", "--each"];

/// The answers of an enqueue that ran out of space, checked against the store; then the same again with space.
#[track_caller]
fn has_lost_nothing(place: &Place, ran: &Ran) {
    let answered: BTreeSet<String> =
        ran.out.lines().filter_map(saved).flat_map(|row| created(&row).collect::<Vec<_>>()).collect();
    bounded(place.command(&["doctor"])).ends(0);
    assert!(answered.is_subset(&entries(place)), "acknowledged and lost");
    bounded(place.command(&ENQUEUE)).ends(0);
    assert_eq!(entries(place).len(), LINES);
}

/// `dlo` that may not write files larger than that many bytes. Needs no authority.
fn limited(place: &Place, bytes: u64, args: &[&str]) -> Command {
    let dlo = place.command(args);
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={bytes}")).arg(dlo.get_program()).args(dlo.get_args());
    command.current_dir(dlo.get_current_dir().expect("a place is a folder"));
    command
}

#[test]
fn enqueue_on_a_full_disk_says_so() {
    for first in [1, 25, 150] {
        let place = Place::with_noop();
        place.write("events.jsonl", &events(LINES, "t"));
        let ran = bounded(traced(&place, &[format!("pwrite64:error=ENOSPC:when={first}+")], &ENQUEUE));
        let ran = ran.ends(STORE).says("error[store.disk_full]").says("free space");
        has_lost_nothing(&place, &ran);
    }
}

#[test]
fn enqueue_into_a_file_that_may_not_grow_says_so() {
    let place = Place::with_noop();
    place.write("events.jsonl", &events(LINES, "t"));
    let ran = bounded(limited(&place, 1_000_000, &ENQUEUE));
    let ran = ran.ends(STORE).says("error[store.io]").says("file-size limit of this process");
    assert!(ran.out.lines().any(|line| saved(line).is_some()), "something was saved before");
    has_lost_nothing(&place, &ran);
}

/// Six writes fail, then there is space again: the process lives on.
#[test]
fn an_engine_waits_for_space_and_goes_on() {
    const ENTRIES: usize = 45;
    for first in [10, 16, 24, 40] {
        let endpoint = Endpoint::start();
        let place = place_with_all_kinds(&endpoint, "");
        let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
        let input: String = (0..ENTRIES).map(line).collect();
        place.dlo_reading(&input, &["enqueue", "-"]).ends(0);
        let full = format!("pwrite64:error=ENOSPC:when={first}..{}", first + 5);
        let ran = bounded(traced(&place, &[full], &["run", "--until-empty"])).ends(0);
        assert!(calls(&place).iter().any(|call| call.was_injected() && call.is_on_log()), "the disk was full");
        ran.says("store fails: claiming has stopped").says("store.disk_full").says("store works again");
        let accounts = accounts(&place);
        assert!(accounts.states.values().all(|state| state == "delivered"), "{:?}", accounts.states);
        let duplicates = check_requests(&endpoint, &accounts);
        assert!(duplicates.values().all(|count| *count == 0), "outcomes in hand are kept: {duplicates:?}");
    }
}

#[test]
fn an_engine_whose_file_may_not_grow_ends_and_another_goes_on() {
    let place = Place::with_noop();
    place.write("events.jsonl", &events(LINES, "t"));
    bounded(place.command(&ENQUEUE)).ends(0);
    let size = std::fs::metadata(place.path("dlo.db")).expect("the database").len();
    let ran = bounded(limited(&place, size, &["run", "--until-empty"]));
    ran.ends(STORE).says("error[store.io]").says("file-size limit of this process");
    bounded(place.command(&["doctor"])).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0).says(&format!("{LINES} delivered"));
    bounded(place.command(&["doctor"])).ends(0);
}
