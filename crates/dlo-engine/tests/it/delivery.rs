//! The plain way through: everything is delivered, in batches, with little to the store.

use dlo_core::{Duplicates, EntryState};
use dlo_engine::{Ended, Until};

use crate::support::{Office, delivered};

#[test]
fn delivers_everything_once() {
    let office = Office::new();
    office.destination("one", "noop", |_| {});
    let log = office.answering("own", delivered());
    office.destination("two", "own", |spec| spec.duplicates = Duplicates::Harmful);
    let first = office.enqueue("one", 250);
    let second = office.enqueue("two", 250);
    assert_eq!(office.run_until(Until::Empty).unwrap(), Ended::Done);
    for entry in first.iter().chain(&second) {
        assert_eq!(office.entry(*entry).summary.state, EntryState::Delivered);
    }
    assert_eq!(log.by_entry().len(), 250);
    assert!(log.by_entry().values().all(|count| *count == 1));
    office.check();
}

#[test]
fn d21_a_full_page_is_followed_by_the_next_at_once() {
    let office = Office::new();
    office.destination("one", "noop", |_| {});
    office.enqueue("one", 5_000);
    let began = office.world.time();
    office.run_until(Until::Empty).unwrap();
    let took = office.world.time().since(began);
    assert_eq!(office.stats("one").delivered_total, 5_000);
    // Virtual time passes only while the engine waits: no page waited for a look for work, let alone for a poll.
    assert!(took <= 3 * dlo_engine::limits::DISCOVERY_SPACING, "{took:?}");
    let (settles, settled) = office.store.count("settle");
    assert_eq!(settled, 5_000);
    assert!(settles <= 51, "a page is settled as one batch, not by {settles} settles");
}
