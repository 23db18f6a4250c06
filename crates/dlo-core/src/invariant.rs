//! The registry of invariants (I-01…I-18), and checks of those that one entry, one step or one lineage can show.
//!
//! The simulator, the property tests and `dlo doctor` use the same checks; what only a database, an operator's path or
//! a benchmark can show is named in [`Invariant::checked`].

use core::fmt;

use crate::{
    Counters, Destination, Entry, EntryState, Generation, OperationKey, Status, Timestamp,
    decide::{Event, Next, Transition, may_emit},
    reason,
};

/// One invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its id.
    pub id: &'static str,
    /// What holds.
    pub sentence: &'static str,
    /// Where it is checked.
    pub checked: &'static str,
}

/// All invariants, in order of id.
pub static REGISTRY: &[Invariant] = &[
    Invariant {
        id: "I-01",
        sentence: "an entry that was saved is never lost: it is in exactly one state, that of its latest generation",
        checked: "check_lineage; store conformance; kill tests; doctor",
    },
    Invariant {
        id: "I-02",
        sentence: "an entry is saved before any emission of it starts",
        checked: "engine (it emits what a claim returned and nothing else); kill tests under strace",
    },
    Invariant {
        id: "I-03",
        sentence: "a generation has at most one terminal state, and a terminal row has no claim",
        checked: "check_transition; check_lineage; store conformance; doctor",
    },
    Invariant {
        id: "I-04",
        sentence: "a change by a worker names its claim token or row version, and a stale worker changes nothing",
        checked: "store conformance (five answers, repeated settle)",
    },
    Invariant {
        id: "I-05",
        sentence: "maintenance is fenced in the same way",
        checked: "store conformance (sweep against a newer version)",
    },
    Invariant {
        id: "I-06",
        sentence: "leases and due times are stamped and judged by the database's clock only",
        checked: "check_entry; store conformance with a given clock",
    },
    Invariant {
        id: "I-07",
        sentence: "counters only grow, and the allowance is measured from the generation's baseline",
        checked: "check_entry; check_transition; check_lineage; doctor",
    },
    Invariant {
        id: "I-08",
        sentence: "deferred, pending, holds, pacing and shutdown never use the allowance; `max_age` bounds them",
        checked: "check_transition; property tests; outage test",
    },
    Invariant {
        id: "I-09",
        sentence: "quarantine is a state change in the transaction of the terminal transition and takes any bytes",
        checked: "store conformance; check_lineage",
    },
    Invariant {
        id: "I-10",
        sentence: "an unanswered send to a `harmful` destination is never repeated without a readback verdict or a waiver",
        checked: "check_transition; check_emission; redrive refusals; kill tests",
    },
    Invariant {
        id: "I-11",
        sentence: "the operation key is fixed before the first attempt and survives retry and redrive",
        checked: "check_lineage; kill tests (duplicates carry the same key)",
    },
    Invariant {
        id: "I-12",
        sentence: "an operator's act and its audit event are one transaction",
        checked: "ports (each verb takes its event); store conformance",
    },
    Invariant {
        id: "I-13",
        sentence: "no payload byte, secret or raw provider text in logs, metrics, alerts, errors or audit events",
        checked: "canary tests of emitters, engine and CLI",
    },
    Invariant {
        id: "I-14",
        sentence: "nothing in quarantine ends by time alone unless an owned disposition rule says so",
        checked: "store conformance (prune leaves lineages with a dead letter)",
    },
    Invariant {
        id: "I-15",
        sentence: "an item is in at most one active release, and nothing else makes a dead letter ready",
        checked: "store conformance (redrive twice); doctor",
    },
    Invariant {
        id: "I-16",
        sentence: "the cost of claiming does not grow with history, quarantine, held, waiting or blocked rows",
        checked: "benchmarks; query-plan tests",
    },
    Invariant {
        id: "I-17",
        sentence: "no producer or worker identity holds operator authority by default",
        checked: "ports (verbs are cut by authority); office permission tests",
    },
    Invariant {
        id: "I-18",
        sentence: "a look-up by id during a move never misses",
        checked: "store conformance (readers beside moves)",
    },
];

/// The invariant of that id.
pub fn find(id: &str) -> Option<&'static Invariant> {
    REGISTRY.iter().find(|invariant| invariant.id == id)
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Id of the invariant.
    pub invariant: &'static str,
    /// What breaks it: counts, states and times, never content.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// Collects breaches: the sentence of a check is written where the check stands.
#[derive(Default)]
struct Breaches(Vec<Breach>);

impl Breaches {
    fn expect(&mut self, invariant: &'static str, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Breach { invariant, what: what() });
        }
    }
}

/// Checks a live entry as it is stored.
pub fn check_entry(entry: &Entry) -> Vec<Breach> {
    let mut breaches = Breaches::default();
    let progress = &entry.progress;
    breaches.expect("I-07", not_less(progress.counters, entry.baseline), || {
        format!("counters {:?} are less than the baseline {:?}", progress.counters, entry.baseline)
    });
    // Their order proves nothing: the clock may go back between two failures.
    breaches.expect("I-07", progress.first_failed.is_some() == progress.last_failed.is_some(), || {
        format!("first failure {:?} and last {:?}: one without the other", progress.first_failed, progress.last_failed)
    });
    let charged = progress.counters.failed + progress.counters.crashed + progress.counters.deferred;
    breaches.expect("I-07", progress.attempts >= charged, || {
        format!("{} attempts are recorded, {charged} were counted", progress.attempts)
    });
    if let Some(claim) = &entry.claim {
        breaches.expect("I-06", claim.claimed <= claim.deadline, || {
            format!("claimed at {} with deadline {}", claim.claimed, claim.deadline)
        });
        breaches.expect("I-03", !entry.manual_review, || "claimed while set aside for a person".to_owned());
        breaches.expect("I-07", progress.counters.claims >= 1, || "claimed, and no claim was counted".to_owned());
    }
    let terminal = matches!(entry.status, Status::Delivered | Status::DeadLettered);
    breaches.expect("I-03", !terminal, || format!("live with the terminal status {}", entry.status.as_str()));
    breaches.0
}

/// Checks one step of [`decide`](crate::decide::decide).
pub fn check_transition(
    before: &Entry,
    destination: &Destination,
    event: &Event,
    transition: &Transition,
    now: Timestamp,
) -> Vec<Breach> {
    let mut breaches = Breaches::default();
    let policy = &destination.spec.policy;
    let progress = &transition.progress;
    let after = Entry { progress: progress.clone(), ..before.clone() };
    breaches.expect("I-03", before.claim.is_some() || *event == Event::Overdue, || {
        "a transition of an entry without a claim".to_owned()
    });
    breaches.expect("I-07", not_less(progress.counters, before.progress.counters), || {
        format!("counters went from {:?} to {:?}", before.progress.counters, progress.counters)
    });
    let recorded = before.progress.attempts + u32::from(transition.attempt.is_some());
    breaches.expect("I-07", progress.attempts == recorded, || {
        format!("{} attempts after {recorded} were recorded", progress.attempts)
    });
    let charges = progress.counters.failed - before.progress.counters.failed.min(progress.counters.failed);
    let said = u32::from(transition.attempt.as_ref().is_some_and(|attempt| attempt.charged));
    breaches.expect("I-08", charges == said, || format!("{charges} charged, and the attempt says {said}"));
    if let Next::Wait { due, status, .. } = &transition.next {
        breaches
            .expect("I-08", *status != Status::Deferred || charges == 0, || "a deferred entry was charged".to_owned());
        let used = after.failed_in_generation();
        let ends = policy.dead_letter_on_max_retry_attempts && charges > 0;
        breaches.expect("I-07", !ends || used < policy.max_retry_attempts, || {
            format!("waits after {used} failed attempts of {}", policy.max_retry_attempts)
        });
        breaches.expect("I-06", *due >= now, || format!("due at {due}, before now ({now})"));
        let expires = before.expires(policy.max_age);
        breaches.expect("I-08", *due <= expires && now < expires, || format!("due at {due}, past its end ({expires})"));
        breaches.expect("I-10", may_emit(&after, destination, *due) != Err(reason::OUTCOME_AMBIGUOUS), || {
            format!("an unanswered send would be repeated at {due}")
        });
    }
    let settles = matches!(event, Event::Emitted(crate::Outcome::Delivered { .. } | crate::Outcome::Pending));
    breaches.expect("I-10", progress.unanswered || !before.progress.unanswered || settles, || {
        "an unanswered send was forgotten".to_owned()
    });
    breaches.0
}

/// Checks an emission that is about to start.
pub fn check_emission(entry: &Entry, destination: &Destination, now: Timestamp) -> Vec<Breach> {
    let mut breaches = Breaches::default();
    breaches.expect("I-02", entry.claim.is_some(), || "emitted without a claim".to_owned());
    breaches.expect("I-10", may_emit(entry, destination, now) != Err(reason::OUTCOME_AMBIGUOUS), || {
        format!("an unanswered send is repeated at {now}")
    });
    breaches.0
}

/// One generation of an entry, live or ended, as [`check_lineage`] looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationRecord {
    /// Which.
    pub generation: Generation,
    /// Where it is.
    pub state: EntryState,
    /// Whether a claim holds it.
    pub claimed: bool,
    /// Whether it has a dead letter.
    pub dead_letter: bool,
    /// Its operation key.
    pub operation_key: OperationKey,
    /// Counters at its start.
    pub baseline: Counters,
    /// Counters now, or at its end.
    pub counters: Counters,
}

/// Checks the generations of one entry that have a row, in order. A generation that a person took out of manual review
/// leaves no row of its own.
pub fn check_lineage(records: &[GenerationRecord]) -> Vec<Breach> {
    let mut breaches = Breaches::default();
    breaches.expect("I-01", !records.is_empty(), || "no generation has a row".to_owned());
    for record in records {
        let generation = record.generation;
        breaches.expect("I-03", !(record.state.is_terminal() && record.claimed), || {
            format!("generation {generation} has ended and is claimed")
        });
        breaches.expect("I-09", (record.state == EntryState::DeadLettered) == record.dead_letter, || {
            format!("generation {generation} is {} and dead letter: {}", record.state, record.dead_letter)
        });
        breaches.expect("I-07", not_less(record.counters, record.baseline), || {
            format!("generation {generation} counts less than its baseline")
        });
    }
    for (earlier, later) in records.iter().zip(records.iter().skip(1)) {
        let generation = later.generation;
        breaches.expect("I-01", generation > earlier.generation, || {
            format!("generation {generation} follows {}", earlier.generation)
        });
        breaches.expect("I-03", earlier.state.is_terminal(), || {
            format!("generation {} is {} although {generation} exists", earlier.generation, earlier.state)
        });
        breaches.expect("I-11", later.operation_key == earlier.operation_key, || {
            format!("generation {generation} has another operation key")
        });
        breaches.expect("I-07", not_less(later.baseline, earlier.counters), || {
            format!("the baseline of generation {generation} is less than what was counted before")
        });
    }
    breaches.0
}

fn not_less(now: Counters, before: Counters) -> bool {
    now.claims >= before.claims
        && now.failed >= before.failed
        && now.crashed >= before.crashed
        && now.deferred >= before.deferred
        && now.interrupted >= before.interrupted
}
