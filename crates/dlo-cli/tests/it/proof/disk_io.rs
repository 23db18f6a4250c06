//! A disk that fails: EIO at one sync or write after another. The error is clear, nothing more is written, and what was
//! acknowledged is there after a restart.

use std::collections::BTreeSet;

use super::ledger::{KINDS, accounts, check_requests, created, place_with_all_kinds, saved};
use super::run::bounded;
use super::strace::{Call, SYNCS, calls, traced};
use crate::endpoint::Endpoint;
use crate::place::{Place, Ran, event, events};

/// Lines of the file: three chunks.
pub const LINES: usize = 1_200;
/// Exit code of a store that can't be used.
pub const STORE: i32 = 5;

/// EIO at one call of that kind.
fn failing(names: &[&str], nth: usize) -> String {
    format!("{}:error=EIO:when={nth}", names.join(","))
}

/// Checks how a command ended into whose calls EIO was injected; false if it made fewer calls.
#[track_caller]
fn has_failed_clearly(ran: Ran, calls: &[Call], what: &str) -> bool {
    let Some(injected) = calls.iter().find(|call| call.was_injected()) else {
        ran.ends(0);
        return false;
    };
    if !injected.is_on_log() {
        // The file itself is behind the log: a checkpoint that fails loses nothing and is made again.
        return true;
    }
    ran.ends(STORE).says("error[store.io]").says("dlo doctor");
    let later = calls.iter().find(|call| call.writes_log() && call.began > injected.returned);
    assert!(later.is_none(), "{what}: written after the failure: {later:?}");
    true
}

pub fn entries(place: &Place) -> BTreeSet<String> {
    let rows = super::ledger::rows(place, &["entries", "list"]);
    rows.iter().map(|row| row["entry"].as_str().expect("an id").to_owned()).collect()
}

/// Enqueues with that failure; true if it was met. Then again without: everything is there once.
fn enqueue_meets(names: &[&str], nth: usize) -> bool {
    let what = failing(names, nth);
    let place = Place::with_noop();
    place.write("events.jsonl", &events(LINES, "t"));
    let enqueue = ["-o", "jsonl", "enqueue", "events.jsonl", "--each"];
    let ran = bounded(traced(&place, std::slice::from_ref(&what), &enqueue));
    let answered: BTreeSet<String> =
        ran.out.lines().filter_map(saved).flat_map(|row| created(&row).collect::<Vec<_>>()).collect();
    let met = has_failed_clearly(ran, &calls(&place), &what);

    bounded(place.command(&["doctor"])).ends(0);
    let stored = entries(&place);
    assert!(answered.is_subset(&stored), "{what}: acknowledged and lost");
    bounded(place.command(&enqueue)).ends(0);
    assert_eq!(entries(&place).len(), LINES, "{what}: saved again without doubles");
    met
}

#[test]
fn enqueue_ends_at_the_first_failed_sync() {
    let met = (1..=4).filter(|nth| enqueue_meets(SYNCS, *nth)).count();
    assert!(met >= 3, "each of three chunks is synced: {met}");
}

#[test]
fn enqueue_ends_at_the_first_failed_write() {
    for nth in [1, 2, 9, 40] {
        assert!(enqueue_meets(&["pwrite64"], nth), "there are more writes than that");
    }
}

/// Drains entries of all kinds with that failure; true if it was met. Then again without: everything is accounted for.
fn run_meets(names: &[&str], nth: usize) -> bool {
    const ENTRIES: usize = 45;
    let what = failing(names, nth);
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
    let input: String = (0..ENTRIES).map(line).collect();
    place.dlo_reading(&input, &["enqueue", "-"]).ends(0);

    let ran = bounded(traced(&place, std::slice::from_ref(&what), &["run", "--until-empty"]));
    let met = has_failed_clearly(ran, &calls(&place), &what);
    bounded(place.command(&["doctor"])).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    let accounts = accounts(&place);
    assert_eq!(accounts.states.len(), ENTRIES, "{what}");
    check_requests(&endpoint, &accounts);
    met
}

#[test]
fn an_engine_ends_at_the_first_failed_sync_and_harms_nobody() {
    let met = (1..=12).filter(|nth| run_meets(SYNCS, *nth)).count();
    assert!(met >= 6, "start, claims, marks and settles are synced: {met}");
}

#[test]
fn an_engine_ends_at_the_first_failed_write_and_harms_nobody() {
    let met = [1, 3, 6, 10, 15, 25, 40].into_iter().filter(|nth| run_meets(&["pwrite64"], *nth)).count();
    assert!(met >= 5, "there are more writes than that: {met}");
}
