//! From claimed to in flight: refusals, send marks, calls.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::collections::VecDeque;
use std::future::poll_fn;

use dlo_core::{Outcome, TransitionResult, health::Admission};
use dlo_ports::{BoxFuture, StoreError};
use futures_util::StreamExt;

use super::{
    Errand, Lane, Work,
    call::{self, Call, Done},
};
use crate::{
    events,
    shared::{Phase, owned},
    trouble::Remedy,
};

/// Send marks on their way to the store.
pub(super) struct Marking {
    work: Vec<Work>,
    future: BoxFuture<'static, Result<Vec<TransitionResult>, StoreError>>,
}

/// Works with the answer to their marks.
pub(super) type Answer = (Vec<Work>, Result<Vec<TransitionResult>, StoreError>);

impl Marking {
    pub(super) fn len(&self) -> usize {
        self.work.len()
    }
}

impl Future for Marking {
    type Output = Answer;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(self.future.as_mut().poll(cx));
        Poll::Ready((core::mem::take(&mut self.work), answer))
    }
}

impl Lane {
    /// Starts what may start and takes what is ready, until nothing is: a fast emitter settles a whole page at once.
    pub(super) async fn emit_what_is_ready(&mut self) {
        loop {
            self.put_down_if_held();
            self.start_marking();
            self.start_calls();
            let calls = &mut self.calls;
            let ready = poll_fn(|cx| match calls.poll_next_unpin(cx) {
                Poll::Ready(done) => Poll::Ready(done),
                Poll::Pending => Poll::Ready(None),
            });
            match ready.await {
                Some(done) => self.call_ended(done),
                None => return,
            }
        }
    }

    /// Room for further entries in flight. Calls are counted where one call may take a whole page; entries are
    /// counted where each of them matters: while the destination recovers, and where duplicates do harm.
    fn room(&self, batch_limit: usize) -> usize {
        let width = self.width();
        let marking = self.marking.as_ref().map_or(0, Marking::len);
        let recovering = matches!(self.admission(), Admission::Open(Some(_)));
        if recovering || self.loaded.is_harmful() {
            width.saturating_sub(self.flying + marking).min(batch_limit)
        } else if self.calls.len() < width {
            batch_limit
        } else {
            0
        }
    }

    fn batch_limit(&self) -> usize {
        let limit = self.loaded.emitter.as_ref().map_or(1, |emitter| emitter.batch_limit());
        limit.clamp(1, dlo_core::limits::MAX_PAGE)
    }

    /// Takes up to `room` entries off the queue that may be emitted now.
    fn take_startable(&mut self, room: usize) -> Vec<Work> {
        let mut taken = Vec::with_capacity(room.min(self.queue.len()));
        while taken.len() < room {
            let Some(work) = self.queue.pop_front() else { break };
            taken.extend(self.refuse(work));
        }
        taken
    }

    /// Puts send marks on the next entries of a destination where duplicates do harm, durably, before the emitter sees
    /// them (I-10), in batches of at most the concurrency.
    fn start_marking(&mut self) {
        if !self.loaded.is_harmful()
            || self.marking.is_some()
            || self.resting.is_some()
            || self.queue.is_empty()
            || self.phase() != Phase::Running
        {
            return;
        }
        let room = self.room(usize::MAX).saturating_sub(self.marked.len());
        let work = self.take_startable(room);
        if work.is_empty() {
            return;
        }
        let claims = work.iter().map(Work::claim).collect();
        let future = owned(&self.shared.store, move |store| store.mark_sent(claims));
        self.marking = Some(Marking { work, future });
    }

    pub(super) fn marks_set(&mut self, (work, answer): Answer) {
        self.marking = None;
        match answer {
            Ok(results) => {
                self.store_worked("mark_sent");
                for (work, result) in work.into_iter().zip(results) {
                    self.mark_set(work, result);
                }
                if self.phase() >= Phase::Draining {
                    self.put_down_unstarted();
                }
            }
            Err(error) => {
                if self.shared.store_failed("mark_sent", error) == Remedy::Retry {
                    self.rest();
                }
                // Whether the marks are there is not known; nothing was sent.
                self.queue.extend(work);
                if self.phase() >= Phase::Draining {
                    self.put_down_unstarted();
                }
            }
        }
    }

    fn mark_set(&mut self, work: Work, result: TransitionResult) {
        if result == TransitionResult::Applied {
            self.marked.push_back(work);
            return;
        }
        let entry = work.entry().key.entry;
        events::stale(self.key(), entry, "mark_sent", result);
        self.shared.metrics.settled(self.key(), 0, 0, 1);
        self.errand_ended(entry);
    }

    fn start_calls(&mut self) {
        if self.phase() != Phase::Running {
            return;
        }
        let batch_limit = self.batch_limit();
        let harmful = self.loaded.is_harmful();
        loop {
            let work: Vec<Work> = if harmful {
                // Marked entries have their place already.
                let batch = batch_limit.min(self.marked.len());
                self.marked.drain(..batch).collect()
            } else if self.queue.is_empty() {
                return;
            } else {
                self.take_startable(self.room(batch_limit))
            };
            if work.is_empty() {
                return;
            }
            self.start_call(work);
        }
    }

    fn start_call(&mut self, work: Vec<Work>) {
        let Ok(emitter) = &self.loaded.emitter else {
            // A version whose emitter this process has not: `emitter_missing` holds the destination.
            self.unreleased.extend(work.iter().map(Work::claim));
            return;
        };
        for work in work.iter().filter(|work| work.errand == Errand::Suspect) {
            events::suspect_tried(&self.slot.key, work.entry().key.entry);
        }
        self.shared.metrics.emissions_started(&self.slot.key, work.len());
        self.flying += work.len();
        let deadline = self.loaded.destination.spec.policy.emission_deadline;
        self.calls.push(Call::new(&self.shared.env, emitter, work, deadline));
    }

    pub(super) fn call_ended(&mut self, done: Done) {
        let count = done.outcomes.len();
        self.flying -= count;
        let took = done.finished.since(done.started);
        let outcomes = done.outcomes.iter().map(|(_, outcome)| outcome);
        self.shared.metrics.emissions_ended(&self.slot.key, count, outcomes, took);
        self.finish(done.outcomes, done.started, done.finished);
    }

    /// The shutdown grace is over. Where duplicates do harm, the cut emissions are settled as ambiguous at once, which
    /// is what their send marks would say after a restart; elsewhere they are given back uncharged (trap D3), to be
    /// tried again with the same operation key.
    pub(super) fn cut_calls(&mut self) {
        let calls = core::mem::take(&mut self.calls);
        self.shared.metrics.emissions_cut(&self.slot.key, self.flying);
        self.flying = 0;
        let finished = self.shared.env.now();
        for call in calls {
            let (work, started) = call.cut();
            if self.loaded.is_harmful() {
                let outcomes = work.into_iter().map(|work| (work, call::cut_by_shutdown())).collect();
                self.finish(outcomes, started, finished);
            } else {
                self.unreleased.extend(work.iter().map(Work::claim));
            }
        }
    }

    /// Gives back what is claimed and was never started. A send mark can't be given back; as nothing was sent, the
    /// entry is put off until now, which charges nothing either.
    pub(super) fn put_down_unstarted(&mut self) {
        self.unreleased.extend(self.queue.drain(..).map(|work| work.claim()));
        let marked: Vec<(Work, Outcome)> =
            self.marked.drain(..).map(|work| (work, Outcome::Deferred { until: None })).collect();
        if !marked.is_empty() {
            let now = self.shared.env.now();
            self.finish(marked, now, now);
        }
    }

    /// While the destination is held, nothing more starts but the probe; what is in hand goes back uncharged.
    fn put_down_if_held(&mut self) {
        let unstarted = self.queue.iter().chain(&self.marked);
        if !matches!(self.admission(), Admission::Held(_)) || unstarted.map(|work| work.errand).all(is_probe) {
            return;
        }
        let (probe, marked_probe): (Vec<Work>, Vec<Work>) = (take_probe(&mut self.queue), take_probe(&mut self.marked));
        self.put_down_unstarted();
        self.queue.extend(probe);
        self.marked.extend(marked_probe);
    }
}

fn is_probe(errand: Errand) -> bool {
    errand == Errand::Probe
}

fn take_probe(queue: &mut VecDeque<Work>) -> Vec<Work> {
    let at = queue.iter().position(|work| work.errand == Errand::Probe);
    at.and_then(|at| queue.remove(at)).into_iter().collect()
}
