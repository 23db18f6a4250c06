//! A one-hour outage with the default policy, by a simulated clock (design section 4): no dead letter, few tries while
//! it lasts, and a ramped recovery. The engine's own test does the same through a store.

use core::time::Duration;
use std::collections::BTreeMap;

use dlo_core::{
    Destination, Duplicates, Entry, Health, Outcome, Phase, Timestamp, TransportKind,
    decide::{Event, Next, may_emit},
    health::Admission,
    limits::PROBE_WINDOW,
    observe::{begin_probe, observe},
    policy::DeliveryPolicy,
};

use crate::support::{NOW, claim, decide_with, delivered, destination, saved, transport};

const OUTAGE: Duration = Duration::from_hours(1);

/// How the destination fails while it is down.
#[derive(Clone, Copy, Debug)]
struct Down {
    kind: TransportKind,
    phase: Phase,
    takes: Duration,
}

const REFUSED: Down = Down { kind: TransportKind::Connect, phase: Phase::NotSent, takes: Duration::from_millis(2) };
const HANGS: Down = Down { kind: TransportKind::Timeout, phase: Phase::Sent, takes: Duration::from_secs(30) };

struct Run {
    destination: Destination,
    health: Health,
    /// By (due, number).
    live: BTreeMap<(Timestamp, u64), Entry>,
    now: Timestamp,
    random: u64,
    down: Down,
    tries_while_down: u64,
    most_failures: u32,
    /// Emissions in flight of each batch after the end of the outage.
    batches_after: Vec<usize>,
    dead: usize,
}

impl Run {
    fn new(entries: u64, duplicates: Duplicates, down: Down, seed: u64) -> Self {
        Self {
            destination: destination(duplicates, DeliveryPolicy::default()),
            health: Health::default(),
            live: (0..entries).map(|number| ((NOW, number), saved(number))).collect(),
            now: NOW,
            random: seed,
            down,
            tries_while_down: 0,
            most_failures: 0,
            batches_after: Vec::new(),
            dead: 0,
        }
    }

    fn next_random(&mut self) -> [u8; 18] {
        let mut bytes = [0; 18];
        for chunk in bytes.chunks_mut(8) {
            // splitmix64: any well-mixed sequence does.
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_be_bytes()[..chunk.len()]);
        }
        bytes
    }

    fn due(&self) -> impl Iterator<Item = &(Timestamp, u64)> {
        self.live.range(..=(self.now, u64::MAX)).map(|(key, _)| key)
    }

    /// One round: claim, emit, decide, observe; or move the clock to when there is something to do.
    fn round(&mut self) {
        let policy = self.destination.spec.policy.clone();
        let (chosen, earliest) = match self.health.admission(self.now) {
            Admission::Held(until) => (Vec::new(), Some(until)),
            Admission::Open(ramp) => {
                let limit = ramp.unwrap_or(policy.concurrency) as usize;
                (self.due().copied().take(limit).collect(), None)
            }
            Admission::Probe => {
                let fewest = self
                    .due()
                    .take(PROBE_WINDOW)
                    .min_by_key(|key| (self.live[key].failed_in_generation(), **key))
                    .copied();
                (fewest.into_iter().collect::<Vec<_>>(), None)
            }
        };
        if chosen.is_empty() {
            let next_due = self.live.keys().next().expect("the loop ends when nothing is live").0;
            self.now = earliest.unwrap_or(next_due).max(self.now);
            return;
        }
        if self.health.admission(self.now) == Admission::Probe {
            self.health = begin_probe(&self.health, &policy, self.now).unwrap();
        }
        self.emit(&chosen, &policy);
    }

    fn emit(&mut self, chosen: &[(Timestamp, u64)], policy: &DeliveryPolicy) {
        let is_down = self.now < NOW.after(OUTAGE);
        let claimed_at = self.now;
        if is_down {
            self.now = self.now.after(self.down.takes);
            self.tries_while_down += chosen.len() as u64;
        } else {
            self.now = self.now.after(Duration::from_millis(5));
            self.batches_after.push(chosen.len());
        }
        let mut observations = Vec::new();
        for key in chosen {
            let mut entry = self.live.remove(key).unwrap();
            claim(&mut entry, claimed_at);
            may_emit(&entry, &self.destination, claimed_at).expect("an hour is inside every limit");
            let outcome = if is_down { self.failure() } else { delivered() };
            let random = self.next_random();
            let event = Event::Emitted(outcome);
            let transition = decide_with(&entry, &self.destination, &event, self.now, self.health.last_success, random);
            observations.push(transition.observation);
            entry.progress = transition.progress;
            entry.claim = None;
            self.most_failures = self.most_failures.max(entry.failed_in_generation());
            match transition.next {
                Next::Delivered { .. } => {}
                Next::Wait { lane, due, status } => {
                    self.live.insert((due, key.1), Entry { lane, due, status, ..entry });
                }
                Next::DeadLetter(_) | Next::ManualReview => self.dead += 1,
            }
        }
        let waiting = self.live.len() as u64;
        if let Some(health) = observe(&self.health, policy, &observations, waiting, self.now) {
            self.health = health;
        }
    }

    fn failure(&self) -> Outcome {
        transport(self.down.kind, self.down.phase)
    }

    fn until_done(mut self) -> Self {
        let mut rounds = 0;
        while !self.live.is_empty() {
            self.round();
            rounds += 1;
            assert!(rounds < 200_000, "no end in sight at {}", self.now);
        }
        self
    }
}

#[test]
fn a_one_hour_outage_dead_letters_nothing() {
    let day = Duplicates::Deduplicated { window: Duration::from_hours(24) };
    for entries in [1, 2, 3, 4, 10, 100, 10_000] {
        for (duplicates, down) in [(Duplicates::Tolerated, REFUSED), (Duplicates::Harmful, REFUSED), (day, HANGS)] {
            for seed in 0..if entries > 1_000 { 1 } else { 20 } {
                let run = Run::new(entries, duplicates, down, seed).until_done();
                let what = format!("{entries} entries, {duplicates}, {down:?}, seed {seed}");
                assert_eq!(run.dead, 0, "{what}");
                assert!(run.most_failures < 5, "{what}: {} failures", run.most_failures);
                assert!(run.health.hold.is_none(), "{what}");
            }
        }
    }
}

#[test]
fn while_it_lasts_few_are_tried_and_recovery_is_ramped() {
    let run = Run::new(10_000, Duplicates::Tolerated, REFUSED, 1).until_done();
    // One batch opens the breaker; then probes after 30, 60, 120, 240 s and every 300 s.
    assert_eq!(run.tries_while_down, 16 + 14);
    assert_eq!(run.most_failures, 1, "each probe takes an entry with the fewest failures");
    assert_eq!(run.batches_after[..6], [1, 1, 2, 4, 8, 16]);
    assert!(run.now < NOW.after(OUTAGE + Duration::from_mins(10)), "done soon after: {}", run.now);
}

#[test]
fn without_the_breaker_s_rules_the_same_loop_does_dead_letter() {
    // Guards the test above: an allowance of two can't outlive an hour, and this loop must be able to show it.
    let mut run = Run::new(10, Duplicates::Tolerated, REFUSED, 1);
    run.destination.spec.policy.max_retry_attempts = 2;
    assert!(run.until_done().dead > 0);
}
