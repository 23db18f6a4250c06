//! From outcome to saved transition: decide, observe, settle, and again until it is saved (trap D6).

use core::future::Future;
use core::pin::Pin;
use core::task::{Context as Cx, Poll, ready};

use dlo_core::{
    EntryId, Health, Outcome, Timestamp, TransitionResult,
    decide::{Context, Event, Transition, decide, may_emit},
    limits::MAX_PAGE,
    observe::{Observation, observe},
};
use dlo_ports::{
    BoxFuture, StoreError,
    store::{HealthChange, SettleAnswer, SettleRequest, Settlement},
};

use super::{Errand, Lane, Work};
use crate::{
    account::Note,
    events, hold,
    shared::{Phase, owned},
    trouble::Remedy,
};

/// An entry whose fate is known and not saved yet. It holds what `decide` needs, so that a repeated save is the same.
pub(super) struct Finished {
    work: Work,
    event: Event,
    started: Timestamp,
    /// The database's time when the outcome was known.
    known: Timestamp,
    random: [u8; 18],
}

/// A settle on its way, with all that is needed to send it again.
pub(super) struct Settling {
    batch: Vec<Finished>,
    /// What health learns: what it had not learnt before (the first `left_over`), then the batch's.
    learning: Vec<Observation>,
    left_over: usize,
    notes: Vec<(usize, Note)>,
    future: BoxFuture<'static, Result<SettleAnswer, StoreError>>,
}

pub(super) struct Answer {
    batch: Vec<Finished>,
    learning: Vec<Observation>,
    left_over: usize,
    notes: Vec<(usize, Note)>,
    saved: Result<SettleAnswer, StoreError>,
}

impl Settling {
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }
}

impl Future for Settling {
    type Output = Answer;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<Answer> {
        let saved = ready!(self.future.as_mut().poll(cx));
        let this = &mut *self;
        Poll::Ready(Answer {
            batch: core::mem::take(&mut this.batch),
            learning: core::mem::take(&mut this.learning),
            left_over: this.left_over,
            notes: core::mem::take(&mut this.notes),
            saved,
        })
    }
}

impl Lane {
    /// Takes outcomes in, to be settled with the next batch.
    pub(super) fn finish(
        &mut self,
        outcomes: impl IntoIterator<Item = (Work, Event)>,
        started: Timestamp,
        finished: Timestamp,
    ) {
        let known = self.shared.database_time(finished);
        let started = self.shared.database_time(started);
        let before = self.finished.len();
        for (work, event) in outcomes {
            // A delivery takes no chance: no jitter, no dead-letter id.
            let delivered = matches!(event, Event::Emitted(Outcome::Delivered { .. }));
            let random = if delivered { [0; 18] } else { self.random() };
            self.finished.push(Finished { work, event, started, known, random });
        }
        self.foresee(before);
    }

    /// Works out what the outcomes from that index on will do to the destination's health, so that a hold stops further
    /// emissions before it is saved. Deliveries of a healthy destination do nothing, and are not looked at.
    fn foresee(&mut self, from: usize) {
        let delivered = |finished: &Finished| matches!(finished.event, Event::Emitted(Outcome::Delivered { .. }));
        let quiet = self.foreseen.is_none() && self.health.as_ref().is_none_or(|health| health.consecutive == 0);
        if quiet && self.finished[from..].iter().all(delivered) {
            return;
        }
        let learning: Vec<Observation> =
            self.finished[from..].iter().map(|finished| self.decide(finished).observation).collect();
        self.foresee_after(&learning);
    }

    fn foresee_after(&mut self, learning: &[Observation]) {
        let Some(health) = self.foreseen.as_ref().or(self.health.as_ref()) else { return };
        let policy = &self.loaded.destination.spec.policy;
        if let Some(foreseen) = observe(health, policy, learning, self.waiting(0), self.now()) {
            self.foreseen = Some(foreseen);
        }
    }

    /// Live entries of the destination, as far as the breaker may ask for several distinct ones.
    fn waiting(&self, settling: usize) -> u64 {
        let behind = if self.more { u64::from(self.loaded.destination.spec.policy.breaker.entries) } else { 0 };
        (settling + self.in_hand()) as u64 + behind
    }

    fn random(&self) -> [u8; 18] {
        let mut random = [0; 18];
        self.shared.env.random(&mut random);
        random
    }

    /// Ends an entry that must not be emitted (I-10, age), without an emission; otherwise gives it back.
    pub(super) fn refuse(&mut self, work: Work) -> Option<Work> {
        let now = self.now();
        let Err(reason) = may_emit(work.entry(), &self.loaded.destination, now) else { return Some(work) };
        let random = self.random();
        self.finished.push(Finished { work, event: Event::Refused(reason), started: now, known: now, random });
        None
    }

    pub(super) fn start_settle(&mut self) {
        if self.settling.is_some() || self.resting.is_some() || (self.finished.is_empty() && self.unlearnt.is_empty()) {
            return;
        }
        let batch = if self.finished.len() <= MAX_PAGE {
            core::mem::take(&mut self.finished)
        } else {
            self.finished.drain(..MAX_PAGE).collect()
        };
        let learning = core::mem::take(&mut self.unlearnt);
        self.settling = Some(self.settle(batch, learning));
    }

    fn settle(&self, batch: Vec<Finished>, mut learning: Vec<Observation>) -> Settling {
        let left_over = learning.len();
        let mut notes = Vec::new();
        let mut settlements = Vec::with_capacity(batch.len());
        for (index, finished) in batch.iter().enumerate() {
            let mut transition = self.decide(finished);
            if let Some(note) = Note::of(finished.work.entry(), &transition, &self.loaded.destination.spec.policy) {
                notes.push((index, note));
            }
            learning.push(core::mem::replace(&mut transition.observation, Observation::Nothing));
            settlements.push(Settlement { claim: finished.work.claim(), transition });
        }
        let health = self.health_change(&learning, batch.len());
        let (tenant, destination) = self.slot.key.clone();
        let request = SettleRequest { tenant, destination, settlements, health };
        let future = owned(&self.shared.store, move |store| store.settle(request));
        Settling { batch, learning, left_over, notes, future }
    }

    fn decide(&self, finished: &Finished) -> Transition {
        let context = Context {
            destination: &self.loaded.destination,
            last_success: self.health.as_ref().and_then(|health| health.last_success),
            now: finished.known,
            started: finished.started,
            random: finished.random,
        };
        decide(finished.work.entry(), &finished.event, &context)
    }

    fn health_change(&self, learning: &[Observation], batch: usize) -> Option<HealthChange> {
        let health = self.health.as_ref()?;
        let policy = &self.loaded.destination.spec.policy;
        let changed = observe(health, policy, learning, self.waiting(batch), self.now())?;
        Some(HealthChange { expected: health.version, health: changed })
    }

    pub(super) fn settled(&mut self, answer: Answer) {
        self.settling = None;
        let Answer { batch, mut learning, left_over, notes, saved } = answer;
        match saved {
            Ok(answer) => {
                self.stuck = None;
                self.store_worked("settle");
                self.transitions_saved(&batch, notes, &answer.results);
                let probed = self.probe.is_none() && batch.iter().any(|finished| finished.work.errand == Errand::Probe);
                if probed && answer.health.hold.is_some() {
                    events::probe_failed(&self.slot.key, &answer.health);
                }
                self.foreseen = None;
                self.health_told(answer.health);
                if !answer.health_applied {
                    // Another worker or a person changed it first: learn again on what it is now.
                    self.foresee_after(&learning);
                    self.unlearnt = learning;
                }
                self.foresee(0);
            }
            Err(error) => {
                let remedy = self.shared.store_failed("settle", error);
                if remedy == Remedy::End || self.phase() >= Phase::Cut {
                    if !batch.is_empty() {
                        events::outcomes_given_up(self.key(), batch.len());
                    }
                    return;
                }
                self.stuck.get_or_insert_with(|| self.shared.trouble.stick());
                // The outcome is known: only the save is repeated, with the same content.
                learning.truncate(left_over);
                self.unlearnt = learning;
                self.finished.splice(0..0, batch);
                self.rest();
            }
        }
    }

    fn transitions_saved(&mut self, batch: &[Finished], notes: Vec<(usize, Note)>, results: &[TransitionResult]) {
        let mut applied = 0;
        for (finished, result) in batch.iter().zip(results) {
            let entry = finished.work.entry().key.entry;
            if *result == TransitionResult::Applied {
                applied += 1;
            } else {
                events::stale(&self.slot.key, entry, "settle", *result);
            }
            if finished.work.errand != Errand::Normal {
                self.errand_ended(entry);
            }
        }
        let mut delivered = applied;
        for (index, note) in notes {
            if results.get(index) == Some(&TransitionResult::Applied) {
                delivered -= 1;
                let work = &batch[index].work;
                note.tell(&self.shared, &self.slot.key, work.entry().key.entry, Some(&work.claimed.envelope));
            }
        }
        self.shared.metrics.settled(&self.slot.key, applied, delivered, batch.len() - applied);
    }

    /// A probe or suspect is out of hand.
    pub(super) fn errand_ended(&mut self, entry: EntryId) {
        if self.probe == Some(entry) {
            self.probe = None;
            self.wants_claim = true;
        }
        if self.suspect.as_ref().is_some_and(|(suspect, _)| *suspect == entry) {
            self.suspect = None;
            self.wants_suspect = true;
        }
    }

    /// Takes in what the store says about the destination's health; answers may overtake each other.
    pub(super) fn health_told(&mut self, health: Health) {
        if self.health.as_ref().is_some_and(|known| known.version > health.version) {
            return;
        }
        if let Some(known) = &self.health {
            hold::tell_change(&self.shared, &self.slot.key, known, &health);
        }
        self.health = Some(health);
    }
}
