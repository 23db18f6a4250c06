//! Fences: the five answers, repeats, stale savers, send marks and releases (I-04, I-05, I-10).

use dlo_core::{
    ClaimRef, DeadLetterState, Duplicates, Entry, EntryKey, EntryState, Fence, Outcome, TransitionResult,
    decide::Event, policy::Alternative,
};

use super::bench::{
    Bench, HOUR, MAIN, MINUTE, claim_fence, claim_ref, delivered, maintenance_fence, refused, spec, transient,
    version_ref,
};
use crate::store::{EntryAct, HealthChange, Settlement};
use TransitionResult::{Applied, ConcurrencyLost, Missing, StaleClaim, Terminal};

pub(super) fn five_answers(b: &mut Bench) {
    b.main(|_| ());
    let token = b.token();
    let ended = b.claimed_at(MAIN);
    assert_eq!(b.outcome(&ended, delivered()), Applied);
    let held = b.claimed_at(MAIN);
    let waiting = b.claimed_at(MAIN);
    b.outcome(&waiting, transient());
    let unknown = EntryKey { entry: dlo_core::EntryId::from_bytes([1; 16]), ..held.key.clone() };
    let future = EntryKey { generation: 7, ..held.key.clone() };
    for (key, fence, expected) in [
        (&held.key, Fence::Claim(token), StaleClaim),
        (&waiting.key, Fence::Claim(token), StaleClaim),
        (&held.key, Fence::Version(held.version + 1), ConcurrencyLost),
        (&waiting.key, Fence::Version(waiting.version - 1), ConcurrencyLost),
        (&ended.key, Fence::Claim(token), Terminal),
        (&ended.key, Fence::Version(ended.version + 1), Terminal),
        (&unknown, Fence::Claim(token), Missing),
        (&unknown, Fence::Version(1), Missing),
        (&future, claim_fence(&held), Missing),
    ] {
        let before = b.entry(held.key.entry);
        let claim = ClaimRef { key: key.clone(), fence };
        assert_eq!(b.run(|store| store.mark_sent(vec![claim.clone()])), [expected], "mark {claim:?}");
        assert_eq!(b.run(|store| store.release(vec![claim.clone()])), [expected], "release {claim:?}");
        let transition = b.decide(&held, &Event::Emitted(refused()));
        let answer = b.settle(MAIN, vec![Settlement { claim: claim.clone(), transition }]);
        assert_eq!(answer.results, [expected], "settle {claim:?}");
        assert_eq!(b.entry(held.key.entry), before, "nothing changed");
    }
    assert!(b.dead_letters().is_empty());
}

/// Every way to settle: what comes next, and the state afterwards.
fn ways() -> [(Outcome, EntryState); 4] {
    [
        (delivered(), EntryState::Delivered),
        (transient(), EntryState::Waiting),
        (Outcome::Deferred { until: None }, EntryState::Waiting),
        (refused(), EntryState::DeadLettered),
    ]
}

pub(super) fn a_repeated_settle_is_applied(b: &mut Bench) {
    b.main(|_| ());
    for (outcome, state) in ways() {
        for plain in [false, true] {
            let entry = b.claimed_at(MAIN);
            let fence = if plain { version_ref(&entry).fence } else { claim_fence(&entry) };
            let transition = b.decide(&entry, &Event::Emitted(outcome.clone()));
            assert_eq!(b.settle_under(&entry, fence, transition.clone()), Applied);
            let (after, stats) = (b.entry(entry.key.entry), b.run(|store| store.stats()));
            assert_eq!(after.summary.state, state);
            assert_eq!(b.settle_under(&entry, fence, transition), Applied, "{outcome:?} again");
            assert_eq!((b.entry(entry.key.entry), b.run(|store| store.stats())), (after, stats), "and nothing changed");
        }
    }
}

pub(super) fn a_repeat_is_known_after_another_claim(b: &mut Bench) {
    b.main(|_| ());
    let first = b.claimed_at(MAIN);
    b.outcome(&first, transient());
    b.clock.advance(HOUR);
    let second = b.claim_one(MAIN);
    assert_eq!(b.outcome(&first, delivered()), Applied, "its settle was saved");
    assert_eq!(b.live(first.key.entry), second, "and the claim that came after it stands");
    b.outcome(&second, transient());
    assert_eq!(b.outcome(&first, delivered()), StaleClaim, "only the latest is remembered");
}

pub(super) fn settle_and_release_are_different_verbs(b: &mut Bench) {
    b.main(|_| ());
    let released = b.claimed_at(MAIN);
    assert_eq!(b.run(|store| store.release(vec![claim_ref(&released)])), [Applied]);
    assert_eq!(b.outcome(&released, delivered()), StaleClaim, "a release saved no outcome");
    let settled = b.claim_one(MAIN);
    b.outcome(&settled, transient());
    assert_eq!(b.run(|store| store.release(vec![claim_ref(&settled)])), [StaleClaim]);
    assert_eq!(b.live(settled.key.entry).progress.counters.interrupted, 1);
}

pub(super) fn a_stale_save_changes_nothing(b: &mut Bench) {
    b.main(|_| ());
    // A worker that lost its claim comes back with a snapshot of then (trap D9).
    let stale = b.claimed_at(MAIN);
    b.run(|store| store.release(vec![claim_ref(&stale)]));
    let current = b.claim_one(MAIN);
    for fence in [claim_fence(&stale), version_ref(&stale).fence] {
        let transition = b.decide(&stale, &Event::Emitted(refused()));
        let expected = if matches!(fence, Fence::Claim(_)) { StaleClaim } else { ConcurrencyLost };
        assert_eq!(b.settle_under(&stale, fence, transition), expected);
    }
    assert_eq!(b.live(stale.key.entry), current);
    assert_eq!(b.outcome(&current, delivered()), Applied);
}

pub(super) fn plain_mode_fences_by_version(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    let fence = version_ref(&entry);
    assert_eq!(b.run(|store| store.mark_sent(vec![fence.clone()])), [Applied]);
    assert_eq!(b.live(entry.key.entry).version, entry.version, "a mark under the version keeps the version");
    let transition = b.decide(&entry, &Event::Emitted(transient()));
    assert_eq!(b.settle_under(&entry, fence.fence, transition), Applied);
    let waiting = b.live(entry.key.entry);
    assert_eq!((waiting.version, waiting.claim), (entry.version + 1, None));
    b.clock.advance(HOUR);
    let again = b.claim_one(MAIN);
    assert_eq!(b.run(|store| store.release(vec![version_ref(&again)])), [Applied]);
}

pub(super) fn an_expired_claim_may_settle(b: &mut Bench) {
    b.main(|_| ());
    let settles = b.claimed_at(MAIN);
    let releases = b.claimed_at(MAIN);
    b.clock.advance(HOUR * 2);
    assert_eq!(b.run(|store| store.lost_claims(None, 10)).len(), 2);
    assert_eq!(b.outcome(&settles, delivered()), Applied, "nobody ended the claim (trap D16)");
    assert_eq!(b.run(|store| store.release(vec![claim_ref(&releases)])), [Applied]);
}

pub(super) fn what_an_operator_ended_is_terminal(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    b.outcome(&entry, transient());
    b.act(entry.key.entry, EntryAct::Cancel);
    assert_eq!(b.outcome(&entry, delivered()), Terminal);
    assert_eq!(b.state(entry.key.entry), EntryState::Cancelled);
}

pub(super) fn another_destinations_entry_is_missing(b: &mut Bench) {
    b.main(|_| ());
    b.apply(spec("other"));
    let entry = b.claimed_at(MAIN);
    let transition = b.decide(&entry, &Event::Emitted(delivered()));
    let answer = b.settle("other", vec![Settlement { claim: claim_ref(&entry), transition }]);
    assert_eq!(answer.results, [Missing]);
    assert_eq!(b.live(entry.key.entry), entry);
}

pub(super) fn an_older_generation_is_terminal(b: &mut Bench) {
    b.main(|main| {
        main.policy.max_retry_attempts = 1;
        main.policy.dead_letter_on_max_retry_attempts = false;
        main.policy.alternative = Some(Alternative::ManualReview);
    });
    let claimed = b.claimed_at(MAIN);
    b.outcome(&claimed, refused());
    let dead_letter = b.dead_letter_of(claimed.key.entry);
    b.redriven(dead_letter.id);
    assert_eq!(b.outcome(&claimed, refused()), Applied, "the settle that ended it");
    let token = b.token();
    let other = ClaimRef { key: claimed.key.clone(), fence: Fence::Claim(token) };
    assert_eq!(b.run(|store| store.release(vec![other])), [Terminal]);
    b.claim_one(MAIN);
    // Left for a later one: out of manual review.
    let reviewed = b.reviewed_at(MAIN);
    let old = version_ref(&b.live(reviewed));
    let due = b.now();
    b.act(reviewed, EntryAct::RetryNow { due });
    assert_eq!(b.run(|store| store.release(vec![old])), [Terminal]);
}

pub(super) fn a_send_mark_is_durable_and_repeatable(b: &mut Bench) {
    b.main(|main| main.duplicates = Duplicates::Harmful);
    let entry = b.claimed_at(MAIN);
    b.clock.advance(MINUTE);
    assert_eq!(b.run(|store| store.mark_sent(vec![claim_ref(&entry)])), [Applied]);
    let marked = b.live(entry.key.entry);
    assert!(marked.claim.unwrap().send_mark);
    assert_eq!((marked.version, marked.updated), (entry.version + 1, b.now()));
    assert_eq!(b.run(|store| store.mark_sent(vec![claim_ref(&entry)])), [Applied]);
    assert_eq!(b.live(entry.key.entry), marked, "again changes nothing");
    assert_eq!(b.outcome(&marked, delivered()), Applied);
    assert_eq!(b.run(|store| store.mark_sent(vec![claim_ref(&entry)])), [Terminal]);
}

pub(super) fn a_send_mark_makes_stale_maintenance_lose(b: &mut Bench) {
    b.main(|main| main.duplicates = Duplicates::Harmful);
    let entry = b.claimed_at(MAIN);
    b.clock.advance(HOUR * 2);
    // Maintenance reads a lost claim without a mark, then its worker turns out to be alive and marks it.
    let read = b.run(|store| store.lost_claims(None, 10)).remove(0);
    assert_eq!(b.run(|store| store.mark_sent(vec![claim_ref(&entry)])), [Applied]);
    let transition = b.decide(&read, &Event::ClaimLost);
    assert_eq!(b.settle_under(&read, maintenance_fence(&read), transition), ConcurrencyLost, "or it would be resent");
    let read = b.run(|store| store.lost_claims(None, 10)).remove(0);
    let transition = b.decide(&read, &Event::ClaimLost);
    assert_eq!(b.settle_under(&read, maintenance_fence(&read), transition), Applied);
    assert_eq!(b.dead_letter_of(entry.key.entry).state, DeadLetterState::Open);
}

pub(super) fn a_marked_claim_is_not_given_back(b: &mut Bench) {
    b.main(|main| main.duplicates = Duplicates::Harmful);
    let entry = b.claimed_at(MAIN);
    b.run(|store| store.mark_sent(vec![claim_ref(&entry)]));
    let marked = b.live(entry.key.entry);
    assert_eq!(b.run(|store| store.release(vec![claim_ref(&entry)])), [StaleClaim]);
    assert_eq!(b.live(entry.key.entry), marked, "it stays claimed, and is judged by its mark later (I-10)");
}

pub(super) fn a_release_leaves_the_entry_as_before(b: &mut Bench) {
    b.main(|_| ());
    let failed = b.claimed_at(MAIN);
    b.outcome(&failed, transient());
    b.clock.advance(HOUR);
    let before = b.live(failed.key.entry);
    let claimed = b.claim_one(MAIN);
    for _ in 0..2 {
        assert_eq!(b.run(|store| store.release(vec![claim_ref(&claimed)])), [Applied], "a release may be repeated");
    }
    let after = b.live(failed.key.entry);
    let mut expected = Entry { version: before.version + 2, updated: b.now(), ..before };
    expected.progress.counters.claims += 1;
    expected.progress.counters.interrupted += 1;
    assert_eq!(after, expected, "uncharged (I-08)");
    assert_eq!(b.claim_one(MAIN).key, failed.key, "and due as it was");
}

pub(super) fn one_broken_fence_stops_nothing_else(b: &mut Bench) {
    b.main(|_| ());
    b.entries_at(MAIN, 3);
    let claimed = b.claim(MAIN, 3);
    let token = b.token();
    let mut settlements: Vec<_> = claimed
        .iter()
        .map(|claimed| Settlement {
            claim: claim_ref(&claimed.entry),
            transition: b.decide(&claimed.entry, &Event::Emitted(delivered())),
        })
        .collect();
    settlements[1].claim.fence = Fence::Claim(token);
    let mut health = b.health(MAIN);
    health.consecutive = 3;
    let change = HealthChange { expected: health.version, health };
    let answer = b.settle_with(MAIN, settlements, Some(change));
    assert_eq!(answer.results, [Applied, StaleClaim, Applied]);
    assert!(answer.health_applied);
    assert_eq!((answer.health.consecutive, answer.health.version), (3, 1));
}
