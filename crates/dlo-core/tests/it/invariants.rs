//! The registry is complete, and each pure check fails for what it is about.

use dlo_core::{
    Counters, Duplicates, EntryState, Lane, Status,
    decide::{Event, Next},
    invariant::{
        Breach, GenerationRecord, REGISTRY, check_emission, check_entry, check_lineage, check_transition, find,
    },
};

use crate::support::{DEDUPLICATED, NOW, WINDOW, claimed, claimed_after, decide_at, destination, exact, http, saved};

fn ids(breaches: &[Breach]) -> Vec<&'static str> {
    breaches.iter().map(|breach| breach.invariant).collect()
}

#[test]
fn the_registry_has_all_eighteen_in_order() {
    let ids: Vec<&str> = REGISTRY.iter().map(|invariant| invariant.id).collect();
    assert_eq!(ids, (1..=18).map(|n| format!("I-{n:02}")).collect::<Vec<_>>());
    assert!(REGISTRY.iter().all(|invariant| !invariant.sentence.is_empty() && !invariant.checked.is_empty()));
    assert!(find("I-10").is_some_and(|invariant| invariant.sentence.contains("harmful")));
    assert_eq!(find("I-19"), None);
}

#[test]
fn sound_entries_pass() {
    for entry in [saved(1), claimed(), claimed_after(4)] {
        assert_eq!(check_entry(&entry), []);
    }
}

#[test]
fn an_unsound_entry_is_told() {
    let mut entry = claimed_after(1);
    entry.baseline.failed = 2;
    assert_eq!(ids(&check_entry(&entry)), ["I-07"]);
    let mut entry = claimed_after(1);
    entry.progress.attempts = 0;
    assert_eq!(ids(&check_entry(&entry)), ["I-07"]);
    let mut entry = claimed();
    entry.manual_review = true;
    assert_eq!(ids(&check_entry(&entry)), ["I-03"]);
    let mut entry = claimed();
    entry.claim.as_mut().unwrap().deadline = NOW.before(WINDOW);
    assert_eq!(ids(&check_entry(&entry)), ["I-06"]);
    let mut entry = saved(1);
    entry.status = Status::Delivered;
    assert_eq!(ids(&check_entry(&entry)), ["I-03"]);
}

#[test]
fn an_unsound_step_is_told() {
    let place = destination(DEDUPLICATED, exact());
    let event = Event::Emitted(http(503));
    let before = claimed_after(1);
    let sound = decide_at(&before, &place, &event, NOW);
    let check = |transition| ids(&check_transition(&before, &place, &event, &transition, NOW));
    assert_eq!(check(sound.clone()), [""; 0]);

    let mut forgets = sound.clone();
    forgets.progress.counters.claims = 0;
    assert_eq!(check(forgets), ["I-07"]);

    let mut charges_twice = sound.clone();
    charges_twice.progress.counters.failed += 1;
    assert_eq!(check(charges_twice), ["I-08"]);

    let mut early = sound.clone();
    early.next = Next::Wait { lane: Lane::Retry, due: NOW.before(WINDOW), status: Status::RetryableFailure };
    assert_eq!(check(early), ["I-06"]);

    let mut deferred = sound.clone();
    deferred.next = Next::Wait { lane: Lane::Retry, due: NOW, status: Status::Deferred };
    assert_eq!(check(deferred), ["I-08"]);

    let mut repeats = sound.clone();
    repeats.progress.unanswered = true;
    repeats.next = Next::Wait { lane: Lane::Retry, due: NOW.after(WINDOW), status: Status::Failed };
    assert_eq!(check(repeats), ["I-10"]);

    let mut unclaimed = before.clone();
    unclaimed.claim = None;
    assert_eq!(ids(&check_transition(&unclaimed, &place, &event, &sound, NOW)), ["I-03"]);

    let mut unanswered = before.clone();
    unanswered.progress.unanswered = true;
    assert_eq!(ids(&check_transition(&unanswered, &place, &event, &sound, NOW)), ["I-10"]);

    let last = claimed_after(4);
    let mut goes_on = decide_at(&last, &place, &event, NOW);
    goes_on.next = Next::Wait { lane: Lane::Retry, due: NOW, status: Status::RetryableFailure };
    assert_eq!(ids(&check_transition(&last, &place, &event, &goes_on, NOW)), ["I-07"]);
}

#[test]
fn an_unsound_emission_is_told() {
    let harmful = destination(Duplicates::Harmful, exact());
    assert_eq!(check_emission(&claimed(), &harmful, NOW), []);
    let mut unanswered = claimed();
    unanswered.progress.unanswered = true;
    assert_eq!(ids(&check_emission(&unanswered, &harmful, NOW)), ["I-10"]);
    assert_eq!(ids(&check_emission(&saved(1), &harmful, NOW)), ["I-02"]);
}

fn record(generation: u32, state: EntryState) -> GenerationRecord {
    GenerationRecord {
        generation,
        state,
        claimed: false,
        dead_letter: state == EntryState::DeadLettered,
        operation_key: saved(1).operation_key,
        baseline: Counters::default(),
        counters: Counters::default(),
    }
}

#[test]
fn an_unsound_lineage_is_told() {
    let sound = [record(0, EntryState::DeadLettered), record(1, EntryState::Waiting)];
    assert_eq!(check_lineage(&sound), []);
    assert_eq!(ids(&check_lineage(&[])), ["I-01"]);
    let change = |edit: fn(&mut [GenerationRecord; 2])| {
        let mut records = sound.clone();
        edit(&mut records);
        ids(&check_lineage(&records))
    };
    assert_eq!(change(|r| r[0].claimed = true), ["I-03"]);
    assert_eq!(change(|r| r[0].state = EntryState::Ready), ["I-09", "I-03"]);
    assert_eq!(change(|r| r[0].dead_letter = false), ["I-09"]);
    assert_eq!(change(|r| r[1].generation = 0), ["I-01"]);
    assert_eq!(change(|r| r[1].operation_key = saved(2).operation_key), ["I-11"]);
    assert_eq!(change(|r| r[0].counters.failed = 5), ["I-07"]);
    assert_eq!(change(|r| r[1].baseline.failed = 5), ["I-07"]);
}
