//! Quarantine: entered together with the transition, left by an act of a person and in no other way.

use dlo_core::{DeadLetterState, EntryKey, EntryState, RedriveId, reason};
use dlo_engine::Until;
use dlo_ports::{
    StoreErrorKind,
    store::{OfficeStore, ReadStore, RedriveResult},
};

use crate::faulty::Fault;
use crate::support::{HOUR, MINUTE, Office, SECOND, delivered, http, tenant};

fn redrive(office: &Office, dead: &dlo_core::DeadLetter) -> RedriveResult {
    let redrive = RedriveId::new(office.world.time(), [3; 10]);
    let audit = office.audit("dead_letter.redrive", "one");
    office.world.run(office.model.redrive(tenant(), redrive, vec![dead.id], audit)).unwrap().remove(0)
}

/// A healthy destination, time, restarts and retention bring nothing back (P-13, I-14, C-002, C-056).
#[test]
fn p13_nothing_leaves_quarantine_by_itself() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    office.options.history = HOUR;
    let first = office.answering("own", http(400));
    office.destination("one", "own", |spec| spec.policy.max_age = HOUR);
    office.enqueue("one", 3);
    office.run_until(Until::Empty).unwrap();
    let dead = office.dead_letters();
    assert_eq!(dead.len(), 3);

    let log = office.answering("own", delivered());
    for _ in 0..2 {
        office.run_for(12 * HOUR).unwrap();
    }
    assert_eq!(log.len(), 0, "nothing was replayed");
    assert_eq!(office.dead_letters(), dead, "nothing has ended");
    assert_eq!(office.stats("one").delivered_total, 0, "a dead letter is no delivery (P-11)");

    assert!(matches!(redrive(&office, &dead[0]), RedriveResult::Redriven { .. }));
    office.run_until(Until::Empty).unwrap();
    assert_eq!(log.len(), 1);
    let sent = &log.seen()[0];
    assert_eq!((sent.entry, sent.attempt), (dead[0].key.entry, 2), "the same entry, and its history goes on");
    assert_eq!(sent.key, first.seen().iter().find(|seen| seen.entry == sent.entry).unwrap().key, "I-11");
    let open = office.dead_letters().iter().filter(|dead| dead.state == DeadLetterState::Open).count();
    assert_eq!((open, office.entry(dead[0].key.entry).summary.state), (2, EntryState::Delivered));
    office.check();
}

/// A row that could not be read is counted like every other dead letter that this process opened (P-10, D10).
#[test]
fn p10_an_unreadable_row_is_counted() {
    let office = Office::new();
    office.destination("one", "noop", |_| {});
    let entry = office.enqueue("one", 2)[0];
    assert!(office.model.make_unreadable(&EntryKey { tenant: tenant(), entry, generation: 0 }));
    let engine = office.engine();
    let handle = engine.handle();
    office.world.run(engine.run_until(Until::Empty, core::future::pending())).unwrap();
    let stats = office.world.run(office.model.stats()).unwrap();
    let text = dlo_engine::render_openmetrics(&stats, handle.metrics());
    let labels =
        "{tenant=\"default\",destination=\"one\",class=\"deterministic\",reason=\"outbox.entry_unreadable\"} 1";
    for name in ["dlo_dead_letters_opened_total", "dead_letters_total"] {
        assert!(text.lines().any(|line| line == format!("{name}{labels}")), "{name}\n{text}");
    }
}

/// A store that fails while it quarantines: no entry ends without its dead letter, none has two, nothing is sent
/// again (I-09, C-085, C-115).
#[test]
fn c085_an_end_and_its_dead_letter_are_saved_together() {
    for fault in [Fault::Fail(StoreErrorKind::DiskFull), Fault::SaveAndFail(StoreErrorKind::Unavailable)] {
        let office = Office::new();
        let log = office.answering("own", http(400));
        office.destination("one", "own", |_| {});
        let entries = office.enqueue("one", 3);
        office.store.faults("settle", [fault; 5]);
        office.run_for(20 * SECOND).unwrap();
        assert_eq!(log.len(), 3, "{fault:?}");
        let mut dead: Vec<_> = office.dead_letters().into_iter().map(|dead| (dead.key.entry, dead.code)).collect();
        dead.sort();
        let mut expected: Vec<_> = entries.iter().map(|entry| (*entry, reason::HTTP_BAD_REQUEST)).collect();
        expected.sort();
        assert_eq!(dead, expected, "{fault:?}");
        office.check();
    }
}

/// What fails again after a redrive is quarantined again, once for each redrive: no loop by itself (C-055, C-091).
#[test]
fn c091_a_second_failure_is_a_second_dead_letter_and_no_loop() {
    let mut office = Office::new();
    office.options.idle_poll = MINUTE;
    let log = office.answering("own", http(400));
    office.destination("one", "own", |_| {});
    let entry = office.enqueue("one", 1)[0];
    for generation in 0..3 {
        office.run_for(HOUR).unwrap();
        let dead: Vec<_> =
            office.dead_letters().into_iter().filter(|dead| dead.state == DeadLetterState::Open).collect();
        assert_eq!((dead.len(), dead[0].key.generation), (1, generation));
        assert_eq!(log.len(), generation as usize + 1, "one try a generation");
        assert!(matches!(redrive(&office, &dead[0]), RedriveResult::Redriven { .. }));
    }
    assert_eq!(office.entry(entry).ended.len(), 3, "the lineage keeps every end");
    office.check();
}
