//! The allowance of failed attempts: the same in both modes and for every failure, and nobody's but the policy's.

use dlo_core::{Class, Outcome, Status, policy::DrainMode, reason};

use crate::support::{HOUR, MINUTE, Office, SECOND, delivered, http};

const MODES: [DrainMode; 2] = [DrainMode::Claim, DrainMode::Plain];

fn office(mode: DrainMode) -> Office {
    let mut office = Office::new();
    office.options.mode = mode;
    office.options.idle_poll = MINUTE;
    office
}

/// Answers and panics reach the same threshold, in both modes; what ends has no next try (P-04, P-06, P-07).
#[test]
fn p04_the_threshold_is_the_same_in_both_modes() {
    for mode in MODES {
        for panics in [false, true] {
            let office = office(mode);
            let log = office.scripted("fails", move |_| async move {
                assert!(!panics, "on purpose");
                http(503)
            });
            office.destination("one", "fails", |spec| {
                spec.policy.max_retry_attempts = 3;
                spec.policy.schedule = vec![MINUTE];
            });
            let entry = office.enqueue("one", 1)[0];
            office.run_for(HOUR).unwrap();
            assert_eq!(log.len(), 3, "{mode:?}, panics: {panics}");
            let [dead] = office.dead_letters().try_into().unwrap();
            assert_eq!((dead.code, dead.counters.failed), (reason::MAX_RETRY_ATTEMPTS_EXCEEDED, 3), "{mode:?}");
            let cause = if panics {
                (Class::Unknown, reason::EMISSION_PANIC)
            } else {
                (Class::Transient, reason::HTTP_UNAVAILABLE)
            };
            assert_eq!((dead.class, dead.reason), cause, "{mode:?}");
            let view = office.entry(entry);
            assert_eq!((view.summary.status, view.summary.due), (Some(Status::DeadLettered), None), "{mode:?}");
            office.check();
        }
    }
}

/// An entry that brings a limit of its own is tried as often as the policy says (P-09).
#[test]
fn p09_an_entry_can_not_change_its_allowance() {
    for mode in MODES {
        let office = office(mode);
        let log = office.answering("fails", http(503));
        office.destination("one", "fails", |spec| spec.policy.schedule = vec![MINUTE]);
        office.enqueue_with("one", 1, |item| {
            item.envelope.headers.insert("maxretrycount".to_owned(), "1".to_owned());
        });
        office.run_for(3 * HOUR).unwrap();
        assert_eq!(log.len(), 5, "{mode:?}: the default of the destination");
    }
}

/// The policy in force at a failure decides about it, also for what was saved before.
#[test]
fn p09_the_policy_in_force_is_the_authority() {
    let office = office(DrainMode::Claim);
    let log = office.answering("fails", http(503));
    office.destination("one", "fails", |_| {});
    office.enqueue("one", 1);
    office.run_for(SECOND).unwrap();
    office.destination("one", "fails", |spec| spec.policy.max_retry_attempts = 2);
    office.run_for(HOUR).unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(office.dead_letters()[0].code, reason::MAX_RETRY_ATTEMPTS_EXCEEDED);
}

/// Without leases, deferral has an end too: age, and nothing but age (P-05, trap D2).
#[test]
fn d02_deferrals_end_by_age_in_plain_mode_too() {
    let office = office(DrainMode::Plain);
    let log = office.answering("later", Outcome::Deferred { until: None });
    office.destination("one", "later", |spec| spec.policy.max_age = HOUR);
    let entry = office.enqueue("one", 1)[0];
    office.run_for(HOUR - MINUTE).unwrap();
    assert!(log.len() > 50, "only {} deferrals", log.len());
    assert_eq!(office.entry(entry).live.unwrap().progress.counters.failed, 0);
    office.run_for(5 * MINUTE).unwrap();
    let [dead] = office.dead_letters().try_into().unwrap();
    assert_eq!((dead.code, dead.counters.failed), (reason::MAX_AGE_EXCEEDED, 0));
}

/// A used-up allowance of manual review is no success and no dead letter; the entry is never selected (P-02, P-11).
#[test]
fn p02_manual_review_waits_for_a_person() {
    let office = office(DrainMode::Claim);
    office.answering("own", http(503));
    office.destination("one", "own", |spec| {
        spec.policy.max_retry_attempts = 1;
        spec.policy.dead_letter_on_max_retry_attempts = false;
        spec.policy.alternative = Some(dlo_core::policy::Alternative::ManualReview);
    });
    office.enqueue("one", 1);
    office.run_for(SECOND).unwrap();
    let log = office.answering("own", delivered());
    office.run_for(26 * HOUR).unwrap();
    assert_eq!((log.len(), office.dead_letters().len()), (0, 0));
    let stats = office.stats("one");
    assert_eq!((stats.depth.manual_review, stats.delivered_total), (1, 0));
}
