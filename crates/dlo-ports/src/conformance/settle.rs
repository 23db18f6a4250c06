//! Settle: where each transition leaves an entry, and what is kept of its failures.

use dlo_core::{
    Class, EntryState, Failure, Lane, Observed, Outcome, Status, TransitionResult,
    decide::Event,
    limits::{MAX_ATTEMPTS_KEPT, MAX_ERROR_TEXT_BYTES, MAX_PAGE},
    policy::Alternative,
    reason,
};

use super::bench::{Bench, DAY, HOUR, MAIN, MINUTE, claim_ref, delivered, name, refused, transient};
use crate::{
    StoreErrorKind,
    store::{SettleRequest, Settlement},
};

pub(super) fn delivery_goes_to_history(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    b.clock.advance(MINUTE);
    assert_eq!(b.outcome(&entry, delivered()), TransitionResult::Applied);
    let view = b.entry(entry.key.entry);
    assert_eq!((view.summary.state, view.summary.status), (EntryState::Delivered, Some(Status::Delivered)));
    assert_eq!((view.live, view.attempts.len()), (None, 0), "a first-try success records no attempt");
    let ended = &view.ended[0];
    assert_eq!((ended.generation, ended.state, ended.at, ended.dead_letter), (0, EntryState::Delivered, b.now(), None));
    assert_eq!(ended.receipt.as_ref().unwrap().kind.as_str(), "provider");
    assert_eq!(ended.counters.claims, 1);
    assert_eq!(view.summary.key, entry.key);
    assert!(b.claim(MAIN, 10).is_empty());
}

pub(super) fn a_transient_failure_waits(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    let transition = b.decide(&entry, &Event::Emitted(transient()));
    b.settle_under(&entry, claim_ref(&entry).fence, transition.clone());
    let row = b.live(entry.key.entry);
    assert_eq!((row.lane, row.status, row.due), (Lane::Retry, Status::RetryableFailure, b.now().after(MINUTE)));
    assert_eq!((row.claim, row.version, row.updated), (None, entry.version + 1, b.now()));
    assert_eq!(row.progress, transition.progress);
    assert_eq!((row.progress.counters.failed, row.progress.first_failed), (1, Some(b.now())));
    let view = b.entry(entry.key.entry);
    assert_eq!(view.attempts, transition.attempt.into_iter().collect::<Vec<_>>(), "the attempt as it was decided");
    assert_eq!(view.summary.last_failure.unwrap().0, Class::Transient);
    assert!(b.claim(MAIN, 10).is_empty());
}

pub(super) fn a_deferral_charges_nothing(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    let until = b.now().after(HOUR);
    b.outcome(&entry, Outcome::Deferred { until: Some(until) });
    let row = b.live(entry.key.entry);
    assert_eq!((row.status, row.due, row.progress.counters.failed), (Status::Deferred, until, 0));
    assert_eq!(row.progress.counters.deferred, 1);
    assert_eq!(b.run(|store| store.stats()).destinations[0].failed_attempts_total, 0);
}

pub(super) fn a_dead_letter_knows_its_envelope(b: &mut Bench) {
    b.main(|_| ());
    let mut item = b.item(MAIN);
    item.envelope.source_event_id = Some("order-42".into());
    item.envelope.correlation_id = Some("corr-1".into());
    item.envelope.audit_residue_id = Some("residue-1".into());
    let sent = item.envelope.clone();
    let id = b.save(item);
    let entry = b.claim_one(MAIN);
    let transition = b.decide(&entry, &Event::Emitted(refused()));
    let progress = transition.progress.clone();
    let dlo_core::decide::Next::DeadLetter(draft) = transition.next.clone() else { panic!("must be dead-lettered") };
    b.settle_under(&entry, claim_ref(&entry).fence, transition);
    let record = b.dead_letter_of(id);
    assert_eq!((record.id, &record.key, record.envelope), (draft.id, &entry.key, sent.id));
    assert_eq!((record.class, &record.reason, &record.code), (draft.class, &draft.reason, &draft.code));
    assert_eq!((record.message, record.rule, record.fingerprint), (draft.message, draft.rule, draft.fingerprint));
    assert_eq!((record.destination, record.destination_version), (name(MAIN), 1));
    assert_eq!((record.event_type.as_deref(), record.source_event_id), (Some("order.created"), sent.source_event_id));
    assert_eq!((record.correlation_id, record.audit_residue_id), (sent.correlation_id, sent.audit_residue_id));
    assert_eq!((record.payload.size, record.payload.sha256), (sent.payload.size(), sent.payload.sha256()));
    assert_eq!((record.operation_key, record.opened), (entry.operation_key, b.now()));
    assert_eq!((record.last_failure, record.counters), (progress.last_failure, progress.counters));
    assert_eq!((record.attempts, record.unanswered), (progress.attempts, progress.unanswered));
    assert_eq!((record.first_failed, record.last_failed), (progress.first_failed, progress.last_failed));
    assert_eq!(record.first_claimed, entry.first_claimed);
    let view = b.run(|store| store.dead_letter(b.tenant.clone(), record.id)).unwrap();
    assert_eq!((view.attempts.len(), view.envelope.unwrap().id), (1, sent.id));
    let ended = b.entry(id).ended.remove(0);
    assert_eq!((ended.state, ended.dead_letter), (EntryState::DeadLettered, Some(record.id)));
}

pub(super) fn a_dead_letter_has_no_next_try(b: &mut Bench) {
    b.main(|_| ());
    let dead = b.dead_letter_at(MAIN);
    let view = b.entry(dead.key.entry);
    assert_eq!((view.summary.state, view.summary.status), (EntryState::DeadLettered, Some(Status::DeadLettered)));
    assert_eq!((view.summary.due, view.live), (None, None), "no time of a next try (P-07)");
    b.clock.advance(DAY * 30);
    assert!(b.claim(MAIN, 10).is_empty());
    let due = b.run(|store| store.due_destinations(crate::store::Scope::default(), None, 10));
    assert!(due.destinations.is_empty(), "nor any work that waits for one");
}

pub(super) fn a_used_up_allowance_keeps_the_original_error(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 2);
    let id = b.entry_at(MAIN);
    for _ in 0..2 {
        let entry = b.claim_one(MAIN);
        b.outcome(&entry, transient());
        b.clock.advance(HOUR);
    }
    let record = b.dead_letter_of(id);
    assert_eq!(record.code, reason::MAX_RETRY_ATTEMPTS_EXCEEDED);
    assert_eq!((record.class, record.reason.as_str()), (Class::Transient, "test.busy"), "the cause is kept (trap D12)");
    assert_eq!(record.last_failure.unwrap().text.as_str(), "composed text about test.busy");
    assert_eq!((record.counters.failed, record.attempts), (2, 2), "the terminal attempt counts");
    assert_eq!(b.entry(id).attempts.len(), 2);
}

pub(super) fn any_error_text_is_saved(b: &mut Bench) {
    b.main(|main| main.policy.max_retry_attempts = 100);
    let texts = ["", "\0", "a\0b\u{1b}[31m\r\n", "'; DROP TABLE dlo_entry; --", "\u{fffd}\u{202e}", "NaN", "ä"];
    for text in texts.into_iter().map(String::from).chain(["x".repeat(100_000), "€".repeat(10_000)]) {
        let entry = b.claimed_at(MAIN);
        let mut failure = Failure::new(Observed::Nothing, &text);
        failure.provider_code = Some(text.as_str().into());
        let transition = b.decide(&entry, &Event::Emitted(Outcome::Failed(failure)));
        let expected = transition.progress.last_failure.clone();
        assert_eq!(b.settle_under(&entry, claim_ref(&entry).fence, transition), TransitionResult::Applied);
        let stored = b.entry(entry.key.entry).last_failure;
        assert_eq!(stored, expected, "recording a failure can't fail (trap D11)");
        assert!(stored.unwrap().text.as_str().len() <= MAX_ERROR_TEXT_BYTES);
    }
}

pub(super) fn attempts_are_kept_first_and_newest(b: &mut Bench) {
    b.main(|_| ());
    let id = b.entry_at(MAIN);
    let tries = MAX_ATTEMPTS_KEPT + 5;
    for _ in 0..tries {
        let entry = b.claim_one(MAIN);
        b.outcome(&entry, Outcome::Pending);
        b.clock.advance(MINUTE);
    }
    let view = b.entry(id);
    let numbers: Vec<usize> = view.attempts.iter().map(|attempt| attempt.number as usize).collect();
    let newest = tries - (MAX_ATTEMPTS_KEPT - 1) + 1;
    let expected: Vec<usize> = std::iter::once(1).chain(newest..=tries).collect();
    assert_eq!(numbers, expected);
    assert_eq!(view.summary.attempts as usize, tries, "all were counted");
}

pub(super) fn delivery_keeps_the_failure_history(b: &mut Bench) {
    b.main(|_| ());
    let id = b.entry_at(MAIN);
    let entry = b.claim_one(MAIN);
    b.outcome(&entry, transient());
    b.clock.advance(HOUR);
    let entry = b.claim_one(MAIN);
    b.outcome(&entry, delivered());
    let view = b.entry(id);
    let outcomes: Vec<_> = view.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["retryable_failure", "delivered"], "nothing is wiped (trap D12)");
    assert_eq!(view.summary.attempts, 2);
    assert_eq!(view.ended[0].counters.failed, 1);
}

pub(super) fn manual_review_is_set_aside(b: &mut Bench) {
    b.main(|main| {
        main.policy.max_retry_attempts = 1;
        main.policy.dead_letter_on_max_retry_attempts = false;
        main.policy.alternative = Some(Alternative::ManualReview);
    });
    let id = b.reviewed_at(MAIN);
    let row = b.live(id);
    assert_eq!((row.manual_review, row.status, row.claim), (true, Status::Failed, None));
    b.clock.advance(DAY * 30);
    assert!(b.claim(MAIN, 10).is_empty(), "never selected");
    assert!(b.run(|store| store.overdue(b.tenant.clone(), name(MAIN), HOUR, 10)).is_empty(), "its age stops");
    let due = b.run(|store| store.due_destinations(crate::store::Scope::default(), None, 10));
    assert!(due.destinations.is_empty());
    let depth = b.run(|store| store.stats()).destinations[0].depth;
    assert_eq!((depth.manual_review, depth.ready, depth.waiting), (1, 0, 0));
}

pub(super) fn settling_is_bounded(b: &mut Bench) {
    b.main(|_| ());
    let entry = b.claimed_at(MAIN);
    let transition = b.decide(&entry, &Event::Emitted(delivered()));
    let one = Settlement { claim: claim_ref(&entry), transition };
    let request = |destination: &str, count| SettleRequest {
        tenant: b.tenant.clone(),
        destination: name(destination),
        settlements: vec![one.clone(); count],
        health: None,
    };
    let (many, nowhere, none) = (request(MAIN, MAX_PAGE + 1), request("nowhere", 1), request(MAIN, 0));
    assert_eq!(b.fail(|store| store.settle(many)), StoreErrorKind::Invalid);
    assert_eq!(b.fail(|store| store.settle(nowhere)), StoreErrorKind::Invalid);
    let answer = b.run(|store| store.settle(none));
    assert!(answer.results.is_empty() && answer.health_applied);
    assert_eq!(b.live(entry.key.entry), entry);
    let claims = vec![claim_ref(&entry); MAX_PAGE + 1];
    assert_eq!(b.fail(|store| store.mark_sent(claims.clone())), StoreErrorKind::Invalid);
    assert_eq!(b.fail(|store| store.release(claims)), StoreErrorKind::Invalid);
}
