//! Random sequences of outcomes, crashes, holds and redrives over several entries: the registry's invariants hold, and
//! an account of what was really sent, kept apart from the code under test, agrees.

use core::time::Duration;

use dlo_core::{
    Class, DeadLetter, DeadLetterDraft, DeadLetterState, Destination, Duplicates, Entry, EntryState, EnvelopeId,
    Failure, Health, HoldCause, Observed, Outcome, Phase, Reason, Timestamp, TransportKind,
    dead_letter::{PayloadSummary, redrive_refusal},
    decide::{Event, Next, Transition, may_emit},
    health::Admission,
    invariant::{GenerationRecord, check_emission, check_entry, check_lineage},
    observe::{Observation, begin_probe, observe},
    policy::{Alternative, DeliveryPolicy},
    reason,
};
use proptest::{prelude::*, test_runner::RngSeed};

use crate::support::{NOW, claim, custom, decide_with, delivered, destination, entry_id, http, saved, transport};

const ENTRIES: usize = 3;

/// An answer, with what is true about it whatever the code under test thinks.
#[derive(Clone, Debug)]
struct Answer {
    outcome: Outcome,
    /// The destination may have acted on it and nobody can say.
    maybe_taken: bool,
    /// It may never use the allowance.
    free: bool,
}

fn answers() -> Vec<Answer> {
    let answer = |outcome, maybe_taken, free| Answer { outcome, maybe_taken, free };
    let kind = TransportKind::Timeout;
    vec![
        answer(delivered(), false, true),
        answer(Outcome::Pending, false, true),
        answer(Outcome::Deferred { until: None }, false, true),
        answer(Outcome::Deferred { until: Some(NOW.after(Duration::from_hours(30))) }, false, true),
        answer(http(503), false, false),
        answer(http(429), false, false),
        answer(transport(TransportKind::Connect, Phase::NotSent), false, false),
        answer(transport(kind, Phase::Sent), true, false),
        answer(transport(TransportKind::Cut, Phase::Sent), true, false),
        answer(http(502), true, false),
        answer(Outcome::Ambiguous(Failure::new(Observed::Nothing, "lost")), true, false),
        answer(custom(None, Phase::Unknown), true, false),
        answer(custom(Some(Class::Transient), Phase::Sent), true, false),
        answer(http(520), true, false),
        answer(http(400), false, false),
        answer(http(401), false, true),
        answer(http(404), false, true),
        answer(http(410), false, true),
        answer(Outcome::DeadLettered(Failure::new(Observed::Nothing, "gone")), false, false),
    ]
}

/// Where a worker dies.
#[derive(Clone, Copy, Debug)]
enum Crash {
    BeforeSend,
    AfterSend,
}

#[derive(Clone, Debug)]
enum Op {
    Emit {
        entry: usize,
        answer: Answer,
    },
    Crash {
        entry: usize,
        at: Crash,
        sole_suspect: bool,
    },
    /// A shutdown, before the emission began or while it ran.
    Interrupt {
        entry: usize,
        sent: bool,
    },
    Sweep {
        entry: usize,
    },
    Redrive {
        entry: usize,
    },
    RetryNow {
        entry: usize,
    },
    Release,
    RequestProbe,
    Sleep {
        minutes: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let entry = 0..ENTRIES;
    prop_oneof![
        10 => (entry.clone(), proptest::sample::select(answers()))
            .prop_map(|(entry, answer)| Op::Emit { entry, answer }),
        3 => (entry.clone(), any::<bool>(), any::<bool>()).prop_map(|(entry, after, sole_suspect)| Op::Crash {
            entry,
            at: if after { Crash::AfterSend } else { Crash::BeforeSend },
            sole_suspect,
        }),
        2 => (entry.clone(), any::<bool>()).prop_map(|(entry, sent)| Op::Interrupt { entry, sent }),
        1 => entry.clone().prop_map(|entry| Op::Sweep { entry }),
        2 => entry.clone().prop_map(|entry| Op::Redrive { entry }),
        1 => entry.prop_map(|entry| Op::RetryNow { entry }),
        2 => Just(Op::Release),
        1 => Just(Op::RequestProbe),
        8 => prop_oneof![Just(1_u64), Just(10), Just(130), Just(26 * 60)].prop_map(|minutes| Op::Sleep { minutes }),
    ]
}

fn any_destination() -> impl Strategy<Value = Destination> {
    let duplicates = prop_oneof![
        Just(Duplicates::Tolerated),
        Just(Duplicates::Harmful),
        Just(Duplicates::Deduplicated { window: Duration::from_hours(24) }),
        Just(Duplicates::Deduplicated { window: Duration::from_mins(20) }),
    ];
    let ends = prop_oneof![
        Just((true, None)),
        Just((false, Some(Alternative::MaxAge))),
        Just((false, Some(Alternative::ManualReview)))
    ];
    (duplicates, 1_u32..6, ends).prop_map(|(duplicates, max_retry_attempts, (dead_letters, alternative))| {
        destination(
            duplicates,
            DeliveryPolicy {
                max_retry_attempts,
                dead_letter_on_max_retry_attempts: dead_letters,
                alternative,
                ..DeliveryPolicy::default()
            },
        )
    })
}

/// One entry: where it is, what it was, and what was really sent.
struct Lineage {
    live: Option<Entry>,
    ended: Vec<GenerationRecord>,
    dead_letter: Option<DeadLetter>,
    last: Entry,
    /// A send that may have been taken and was never settled by an acceptance.
    open_send: bool,
}

struct World {
    destination: Destination,
    health: Health,
    lineages: Vec<Lineage>,
    now: Timestamp,
    random: u8,
}

impl World {
    fn new(destination: Destination) -> Self {
        let lineage = |number: usize| {
            let entry = saved(number as u64);
            Lineage { last: entry.clone(), live: Some(entry), ended: Vec::new(), dead_letter: None, open_send: false }
        };
        Self {
            destination,
            health: Health::default(),
            lineages: (0..ENTRIES).map(lineage).collect(),
            now: NOW,
            random: 0,
        }
    }

    /// Claims a due entry if the destination admits it.
    fn claim(&mut self, index: usize) -> Option<Entry> {
        let entry = self.lineages[index].live.as_mut()?;
        if entry.manual_review || entry.due > self.now {
            return None;
        }
        match self.health.admission(self.now) {
            Admission::Held(_) => return None,
            Admission::Probe => {
                self.health = begin_probe(&self.health, &self.destination.spec.policy, self.now).unwrap();
            }
            Admission::Open(_) => {}
        }
        claim(entry, self.now);
        let claimed = entry.clone();
        match may_emit(&claimed, &self.destination, self.now) {
            Ok(()) => Some(claimed),
            Err(reason) => {
                self.settle(index, &claimed, &Event::Refused(reason), true);
                None
            }
        }
    }

    /// The account of what is really sent, apart from the entry's own flag.
    fn send(&mut self, index: usize, entry: &Entry, maybe_taken: bool) {
        assert_eq!(check_emission(entry, &self.destination, self.now), []);
        let lineage = &mut self.lineages[index];
        if lineage.open_send {
            match self.destination.spec.duplicates {
                Duplicates::Harmful => panic!("a harmful send was repeated blindly: {entry:?}"),
                Duplicates::Deduplicated { window } => {
                    let end = entry.first_claimed.unwrap().after(window);
                    let arrives = self.now.after(self.destination.spec.policy.emission_deadline);
                    assert!(arrives < end, "a send was repeated after its window: {entry:?}");
                }
                Duplicates::Tolerated => {}
            }
        }
        lineage.open_send |= maybe_taken;
    }

    fn settle(&mut self, index: usize, before: &Entry, event: &Event, free: bool) {
        self.random = self.random.wrapping_add(37);
        let last_success = self.health.last_success;
        let transition = decide_with(before, &self.destination, event, self.now, last_success, [self.random; 18]);
        let after = Entry { progress: transition.progress.clone(), claim: None, ..before.clone() };
        if free {
            assert_eq!(after.failed_in_generation(), before.failed_in_generation(), "{event:?} used the allowance");
        }
        let policy = &self.destination.spec.policy;
        if policy.dead_letter_on_max_retry_attempts {
            assert!(after.failed_in_generation() <= policy.max_retry_attempts);
        }
        let waiting = self.lineages.iter().filter(|lineage| lineage.live.is_some()).count() as u64;
        let seen = core::slice::from_ref(&transition.observation);
        if let Some(health) = observe(&self.health, policy, seen, waiting, self.now) {
            self.health = health;
        }
        self.save(index, after, transition);
    }

    fn save(&mut self, index: usize, after: Entry, transition: Transition) {
        let now = self.now;
        let lineage = &mut self.lineages[index];
        lineage.last = after.clone();
        lineage.live = match transition.next {
            Next::Wait { lane, due, status } => Some(Entry { lane, due, status, ..after }),
            Next::ManualReview => Some(Entry { manual_review: true, ..after }),
            Next::Delivered { .. } => {
                lineage.ended.push(record(&after, EntryState::Delivered));
                None
            }
            Next::DeadLetter(draft) => {
                lineage.ended.push(record(&after, EntryState::DeadLettered));
                lineage.dead_letter = Some(dead_letter(&after, draft, now));
                None
            }
        };
        if let Some(live) = &lineage.live {
            assert_eq!(check_entry(live), []);
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Emit { entry, answer } => {
                let Some(claimed) = self.claim(*entry) else { return };
                self.send(*entry, &claimed, answer.maybe_taken);
                if matches!(answer.outcome, Outcome::Delivered { .. } | Outcome::Pending) {
                    self.lineages[*entry].open_send = false;
                }
                self.settle(*entry, &claimed, &Event::Emitted(answer.outcome.clone()), answer.free);
            }
            Op::Crash { entry, at, sole_suspect } => {
                let Some(mut claimed) = self.claim(*entry) else { return };
                let harmful = self.destination.spec.duplicates == Duplicates::Harmful;
                let claim = claimed.claim.as_mut().unwrap();
                claim.sole_suspect = *sole_suspect;
                claim.send_mark = harmful && matches!(at, Crash::AfterSend);
                if matches!(at, Crash::AfterSend) {
                    self.send(*entry, &claimed, true);
                }
                // Without a mark it costs nothing; with one it is an unanswered send and may be charged.
                let free = claimed.claim.is_some_and(|claim| !claim.send_mark);
                self.settle(*entry, &claimed, &Event::ClaimLost, free);
            }
            Op::Interrupt { entry, sent } => {
                let Some(mut claimed) = self.claim(*entry) else { return };
                if *sent {
                    self.send(*entry, &claimed, true);
                    return self.settle(*entry, &claimed, &Event::Interrupted, true);
                }
                if self.destination.spec.duplicates == Duplicates::Harmful {
                    // Marked, and given up before the first byte.
                    claimed.claim.as_mut().unwrap().send_mark = true;
                    return self.settle(*entry, &claimed, &Event::NotSent, true);
                }
                claimed.claim = None;
                claimed.progress.counters.interrupted += 1;
                self.lineages[*entry].live = Some(claimed);
            }
            Op::Sweep { entry } => {
                let Some(live) = self.lineages[*entry].live.clone() else { return };
                if !live.manual_review && live.expires(self.destination.spec.policy.max_age) <= self.now {
                    self.settle(*entry, &live, &Event::Overdue, true);
                }
            }
            Op::Redrive { entry } => self.redrive(*entry),
            Op::RetryNow { entry } => {
                let now = self.now;
                let Some(live) = self.lineages[*entry].live.as_mut() else { return };
                if live.manual_review {
                    *live = live.next_generation(live.key.generation + 1, live.seq + 1, now, now);
                } else {
                    live.due = live.due.min(now);
                }
            }
            Op::Release => self.health = self.health.release().unwrap_or_else(|| self.health.clone()),
            Op::RequestProbe => self.health = self.health.request_probe().unwrap_or_else(|| self.health.clone()),
            Op::Sleep { minutes } => self.now = self.now.after(Duration::from_mins(*minutes)),
        }
    }

    fn redrive(&mut self, index: usize) {
        let now = self.now;
        let lineage = &mut self.lineages[index];
        let Some(dead_letter) = &mut lineage.dead_letter else { return };
        let alive = lineage.live.as_ref().map(|live| live.key.generation);
        let refusal = redrive_refusal(dead_letter, Some(&self.destination), None, alive, true, now);
        if refusal.is_none() {
            dead_letter.state = DeadLetterState::Redriven;
            let last = &lineage.last;
            lineage.live = Some(last.next_generation(last.key.generation + 1, last.seq + 1, now, now));
        }
    }

    fn check(&self) {
        for lineage in &self.lineages {
            let mut records = lineage.ended.clone();
            if let Some(live) = &lineage.live {
                records.push(record(live, live.state(self.now)));
            }
            assert_eq!(check_lineage(&records), []);
            // The flag may be more careful than the truth, never less.
            let flag = lineage.live.as_ref().unwrap_or(&lineage.last).progress.unanswered;
            assert!(flag || !lineage.open_send, "an unanswered send was forgotten");
        }
    }
}

fn record(entry: &Entry, state: EntryState) -> GenerationRecord {
    GenerationRecord {
        generation: entry.key.generation,
        state,
        claimed: entry.claim.is_some(),
        dead_letter: state == EntryState::DeadLettered,
        operation_key: entry.operation_key.clone(),
        baseline: entry.baseline,
        counters: entry.progress.counters,
    }
}

fn dead_letter(entry: &Entry, draft: DeadLetterDraft, now: Timestamp) -> DeadLetter {
    DeadLetter {
        id: draft.id,
        seq: 1,
        key: entry.key.clone(),
        destination: entry.destination.clone(),
        destination_version: 1,
        envelope: EnvelopeId::from_bytes([1; 16]),
        event_type: None,
        source_event_id: None,
        correlation_id: None,
        audit_residue_id: None,
        payload: PayloadSummary::default(),
        operation_key: entry.operation_key.clone(),
        class: draft.class,
        reason: draft.reason,
        code: draft.code,
        message: draft.message,
        rule: draft.rule,
        last_failure: entry.progress.last_failure.clone(),
        first_failed: entry.progress.first_failed,
        last_failed: entry.progress.last_failed,
        first_claimed: entry.first_claimed,
        opened: now,
        attempts: entry.progress.attempts,
        counters: entry.progress.counters,
        unanswered: entry.progress.unanswered,
        fingerprint: draft.fingerprint,
        state: DeadLetterState::Open,
    }
}

fn observation() -> impl Strategy<Value = Observation> {
    let entry = (0_u64..8).prop_map(entry_id);
    prop_oneof![
        Just(Observation::Success),
        Just(Observation::Answered),
        Just(Observation::Nothing),
        entry.clone().prop_map(|entry| Observation::Transient { entry, reason: reason::CONNECT_FAILED }),
        entry.clone().prop_map(|entry| Observation::Resource { entry, reason: reason::HTTP_GONE }),
        entry.prop_map(|entry| Observation::Configuration { entry, reason: Reason::known("provider.key_expired") }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn invariants_hold_over_random_lives(destination in any_destination(), ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new(destination);
        for op in &ops {
            world.apply(op);
            world.check();
        }
    }

    #[test]
    fn health_stays_bounded_and_never_sticks(batches in prop::collection::vec(prop::collection::vec(observation(), 0..6), 1..60)) {
        let policy = DeliveryPolicy::default();
        let (mut health, mut now) = (Health::default(), NOW);
        for batch in &batches {
            now = now.after(Duration::from_secs(17));
            if let Some(probing) = begin_probe(&health, &policy, now) {
                prop_assert!(matches!(probing.admission(now), Admission::Held(_)), "one probe at a time");
                health = probing;
            }
            let before = health.clone();
            if let Some(after) = observe(&before, &policy, batch, 8, now) {
                prop_assert_ne!(&after, &before, "a change that changes nothing costs a write");
                health = after;
            }
            prop_assert!(health.consecutive <= policy.breaker.failures);
            prop_assert!(health.streak.len() <= policy.breaker.entries as usize);
            prop_assert!(health.resource_streak.len() <= policy.resource_failures as usize);
            prop_assert!(health.ramp.is_none_or(|ramp| (1..policy.concurrency).contains(&ramp)));
            if let Some(hold) = &health.hold {
                prop_assert!(hold.next_probe <= now.after(policy.breaker.probe_max), "a hold always comes to a probe");
                prop_assert!(matches!(hold.cause, HoldCause::Breaker | HoldCause::Configuration));
            }
        }
        let recovered = observe(&health, &policy, &[Observation::Success], 8, now).unwrap_or(health);
        prop_assert!(!recovered.is_held(), "a success closes whatever evidence opened");
    }
}
