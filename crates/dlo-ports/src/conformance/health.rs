//! Health: holds by people and by evidence, the breaker, the probe.

use dlo_core::{EntryId, NewEntry, Timestamp, TransitionResult, health::Admission};

use super::bench::{Bench, HOUR, MAIN, MINUTE, SECOND, delivered, ids, name, transient, unanswered};
use crate::store::{ActResult, ClaimKind, HealthChange, HoldAct};

/// Lets five entries of `count` fail at once, which opens the breaker.
fn open_breaker(b: &mut Bench, count: usize) -> Vec<EntryId> {
    let entries = b.entries_at(MAIN, count);
    let claimed = b.claim(MAIN, 5);
    let answer = b.observed(MAIN, &claimed, &transient());
    assert!(answer.health_applied && answer.health.hold.is_some(), "five failures in a row open the breaker");
    entries
}

/// Moves the clock to the next probe.
fn reach_probe(b: &mut Bench) {
    let next_probe = b.health(MAIN).hold.unwrap().next_probe;
    b.clock.set(next_probe);
}

pub(super) fn a_hold_is_a_predicate_of_the_claim(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.entry_at(MAIN);
    let row = b.live(entry);
    assert_eq!(b.hold(MAIN), ActResult::Done);
    for kind in [ClaimKind::Normal, ClaimKind::Suspect, ClaimKind::Probe] {
        let page = b.page(MAIN, kind, 10);
        assert!(page.claimed.is_empty() && !page.more, "{kind:?}");
        assert_eq!(page.health, b.health(MAIN));
    }
    assert_eq!(b.live(entry), row, "no row changed");
    assert!(b.entry(entry).summary.held);
    let later = NewEntry { not_before: Some(b.now().after(HOUR)), ..b.item(MAIN) };
    let later = b.save(later);
    assert!(!b.entry(later).summary.held, "what is not due is not held (it waits anyway)");
    assert_eq!(b.hold_act(MAIN, HoldAct::Release), ActResult::Done);
    assert!(!b.entry(entry).summary.held);
    assert_eq!(ids(&b.claim(MAIN, 10)), [entry]);
}

pub(super) fn hold_acts_answer_what_they_did(b: &mut Bench) {
    b.main(|_| ());
    assert_eq!(b.hold_act(MAIN, HoldAct::Release), ActResult::Unchanged, "nothing holds it");
    assert_eq!(b.hold_act(MAIN, HoldAct::Probe), ActResult::WrongState("open"));
    assert_eq!(b.hold("nowhere"), ActResult::Missing);
    assert_eq!(b.hold(MAIN), ActResult::Done);
    let health = b.health(MAIN);
    let manual = health.manual.clone().unwrap();
    assert_eq!((manual.actor.as_str(), manual.since, manual.reason.as_str()), ("local:alice", b.now(), "maintenance"));
    assert_eq!(health.version, 1);
    assert_eq!(b.hold(MAIN), ActResult::Unchanged);
    assert_eq!(b.health(MAIN), health, "the first hold stands");
    assert_eq!(b.hold_act(MAIN, HoldAct::Probe), ActResult::Done);
    assert_eq!(b.hold_act(MAIN, HoldAct::Probe), ActResult::Unchanged);
    assert_eq!(b.hold_act(MAIN, HoldAct::Release), ActResult::Done);
    let health = b.health(MAIN);
    assert_eq!((health.manual, health.probe_requested, health.version), (None, false, 3));
    // Several at once, in order.
    let audit = b.audit("destination.hold");
    let names = vec![name("nowhere"), name(MAIN)];
    let act = HoldAct::Hold { reason: "all".into() };
    let tenant = b.tenant.clone();
    let results = b.run(|store| store.act_on_destinations(tenant, names, act, audit));
    assert_eq!(results, [ActResult::Missing, ActResult::Done]);
}

pub(super) fn a_release_forgets_the_evidence(b: &mut Bench) {
    b.main(|_| ());
    open_breaker(b, 6);
    b.hold_act(MAIN, HoldAct::Release);
    let health = b.health(MAIN);
    assert_eq!((health.hold, health.consecutive, health.streak.len()), (None, 0, 0));
    let claimed = b.claim(MAIN, 1);
    let answer = b.observed(MAIN, &claimed, &transient());
    assert!(answer.health.hold.is_none(), "one further failure does not hold it again");
}

pub(super) fn the_breaker_opens_and_a_probe_closes_it(b: &mut Bench) {
    b.main(|_| ());
    let entries = open_breaker(b, 6);
    assert!(matches!(b.health(MAIN).admission(b.now()), Admission::Held(_)));
    assert!(b.claim(MAIN, 10).is_empty());
    assert!(b.page(MAIN, ClaimKind::Probe, 10).claimed.is_empty(), "not due for a probe");
    reach_probe(b);
    assert!(b.claim(MAIN, 10).is_empty(), "a probe is no normal claim");
    let version = b.health(MAIN).version;
    let page = b.page(MAIN, ClaimKind::Probe, 10);
    assert_eq!(ids(&page.claimed), entries[5..], "one entry");
    assert_eq!(page.health.version, version + 1, "the probe is taken");
    assert!(!page.claimed[0].entry.claim.unwrap().sole_suspect);
    let answer = b.observed(MAIN, &page.claimed, &delivered());
    assert!(answer.health.hold.is_none());
    assert_eq!(answer.health.ramp, Some(1), "and a ramp begins");
}

pub(super) fn a_probe_takes_the_entry_that_failed_least(b: &mut Bench) {
    b.main(|_| ());
    // Five that failed once and are due first, one that was put off without a charge, and is due later.
    let put_off = b.entry_at(MAIN);
    let claimed = b.claim_one(MAIN);
    let later = b.now().after(MINUTE + SECOND);
    b.outcome(&claimed, dlo_core::Outcome::Deferred { until: Some(later) });
    open_breaker(b, 5);
    b.clock.advance(HOUR);
    assert_eq!(ids(&b.page(MAIN, ClaimKind::Probe, 1).claimed), [put_off]);
}

pub(super) fn a_probe_looks_among_the_first_in_due_order(b: &mut Bench) {
    b.main(|main| main.policy.breaker.failures = 64);
    // 64 that failed once fill the window; what never failed is due after them.
    b.entries_at(MAIN, 64);
    let claimed = b.claim(MAIN, 64);
    let first = claimed[0].entry.key.entry;
    assert!(b.observed(MAIN, &claimed, &unanswered()).health.hold.is_some());
    b.clock.advance(MINUTE);
    let late = NewEntry { not_before: Some(b.now().after(SECOND)), ..b.item(MAIN) };
    b.save(late);
    b.clock.advance(HOUR);
    assert_eq!(ids(&b.page(MAIN, ClaimKind::Probe, 1).claimed), [first], "ties by (due, sequence)");
}

pub(super) fn a_probe_is_taken_once(b: &mut Bench) {
    b.main(|_| ());
    open_breaker(b, 6);
    reach_probe(b);
    assert_eq!(b.page(MAIN, ClaimKind::Probe, 1).claimed.len(), 1);
    let page = b.page(MAIN, ClaimKind::Probe, 1);
    assert!(page.claimed.is_empty(), "the next one is later");
    assert_eq!(page.health, b.health(MAIN));
    // A probe that finds nothing due is not taken.
    b.apply(super::bench::spec("empty"));
    b.hold("empty");
    b.hold_act("empty", HoldAct::Probe);
    let before = b.health("empty");
    assert!(b.page("empty", ClaimKind::Probe, 1).claimed.is_empty());
    assert_eq!(b.health("empty"), before);
}

pub(super) fn a_requested_probe_goes_through_a_persons_hold(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.entry_at(MAIN);
    b.hold(MAIN);
    b.hold_act(MAIN, HoldAct::Probe);
    let page = b.page(MAIN, ClaimKind::Probe, 1);
    assert_eq!(ids(&page.claimed), [entry]);
    assert!(!page.health.probe_requested && page.health.manual.is_some(), "one try; the hold stays");
    let answer = b.observed(MAIN, &page.claimed, &delivered());
    assert!(answer.health.manual.is_some(), "only a person ends it");
}

pub(super) fn a_health_change_is_compare_and_set(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    let mut health = b.health(MAIN);
    health.ramp = Some(4);
    health.pace_at = Some(Timestamp::from_micros(5));
    let change = HealthChange { expected: 0, health };
    let answer = b.settle_with(MAIN, Vec::new(), Some(change.clone()));
    assert!(answer.health_applied);
    assert_eq!((answer.health.version, answer.health.ramp), (1, Some(4)));
    let stale = HealthChange { health: dlo_core::Health { ramp: Some(9), ..change.health.clone() }, ..change };
    let transition = b.decide(&entry, &dlo_core::decide::Event::Emitted(delivered()));
    let settlement = crate::store::Settlement { claim: super::bench::claim_ref(&entry), transition };
    let answer = b.settle_with(MAIN, vec![settlement], Some(stale));
    assert!(!answer.health_applied, "another change came first");
    assert_eq!((answer.health.version, answer.health.ramp), (1, Some(4)), "the answer is what is stored");
    assert_eq!(answer.results, [TransitionResult::Applied], "the settlements stand for themselves");
    assert_eq!(b.health(MAIN), answer.health);
}
