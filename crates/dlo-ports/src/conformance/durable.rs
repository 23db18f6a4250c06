//! What outlives a process, and enqueue inside a transaction of the caller's own.

use super::bench::{Bench, HOUR, MAIN, claim_ref, delivered, ids, transient};
use crate::store::EnqueueAnswer;

pub(super) fn everything_survives_a_reopen(b: &mut Bench) {
    b.main(|_| ());
    let ended = b.claimed_at(MAIN);
    b.outcome(&ended, delivered());
    let dead = b.dead_letter_at(MAIN);
    let failed = b.claimed_at(MAIN);
    b.outcome(&failed, transient());
    let claimed = b.claimed_at(MAIN);
    b.run(|store| store.mark_sent(vec![claim_ref(&claimed)]));
    let item = b.item(MAIN);
    let ready = b.save(item.clone());
    b.hold(MAIN);
    let all = [ended.key.entry, dead.key.entry, failed.key.entry, claimed.key.entry, ready];
    let before = (all.map(|id| b.entry(id)), b.dead_letters(), b.health(MAIN), b.run(|store| store.stats()));
    if !b.reopen() {
        return;
    }
    let after = (all.map(|id| b.entry(id)), b.dead_letters(), b.health(MAIN), b.run(|store| store.stats()));
    assert_eq!(after, before);
    assert_eq!(b.enqueue(item.clone()), EnqueueAnswer::Existing { envelope: item.envelope.id });
    assert_eq!(b.outcome(&ended, delivered()), dlo_core::TransitionResult::Applied, "a repeat is still known");
    assert_eq!(b.outcome(&claimed, delivered()), dlo_core::TransitionResult::Applied, "and so is the claim");
    b.hold_act(MAIN, crate::store::HoldAct::Release);
    b.new_worker(HOUR);
    assert_eq!(ids(&b.claim(MAIN, 10)), [ready]);
    let newest = b.entry_at(MAIN);
    assert!(b.live(newest).seq > b.live(ready).seq, "sequences go on");
}

pub(super) fn a_callers_commit_saves(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    let lost = b.item("nowhere");
    let batch = vec![item.clone(), lost, item.clone()];
    let Some(answers) = b.harness().enqueue_in_caller_transaction(batch, true) else { return };
    let EnqueueAnswer::Created { entries, .. } = &answers[0] else { panic!("must be created: {answers:?}") };
    assert!(matches!(answers[1], EnqueueAnswer::Refused(_)), "a refusal does not abort the caller's transaction");
    assert_eq!(answers[2], EnqueueAnswer::Existing { envelope: item.envelope.id });
    assert_eq!(ids(&b.claim(MAIN, 10)), [entries[0].0]);
    assert_eq!(b.enqueue(item.clone()), EnqueueAnswer::Existing { envelope: item.envelope.id });
}

pub(super) fn a_callers_rollback_saves_nothing(b: &mut Bench) {
    b.main(|_| ());
    let item = b.item(MAIN);
    let Some(answers) = b.harness().enqueue_in_caller_transaction(vec![item.clone()], false) else { return };
    assert!(matches!(answers[0], EnqueueAnswer::Created { .. }));
    assert!(b.claim(MAIN, 10).is_empty());
    assert_eq!(b.run(|store| store.stats()).destinations[0].enqueued_total, 0);
    // Neither its key nor its sequence was used up.
    let id = b.save(item);
    assert_eq!(ids(&b.claim(MAIN, 10)), [id]);
}
