//! From claimed to in flight: refusals, send marks, calls.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::collections::VecDeque;
use std::future::poll_fn;

use dlo_core::{TransitionResult, decide::Event, health::Admission};
use dlo_ports::{BoxFuture, StoreError};
use futures_util::StreamExt;

use super::{
    Errand, Lane, Work,
    call::{Call, Done},
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
            self.put_down_if_lapsed();
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
            let in_time = self.give_back_late(work);
            taken.extend(in_time.and_then(|work| self.refuse(work)));
        }
        taken
    }

    /// Gives an entry back whose claim is over: another may have it by now.
    fn give_back_late(&mut self, work: Work) -> Option<Work> {
        if !work.is_late(self.now()) {
            return Some(work);
        }
        self.put_down([work]);
        self.wants_claim = true;
        None
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
            }
            Err(error) => {
                if self.shared.store_failed("mark_sent", error) == Remedy::Retry {
                    self.rest();
                }
                // Whether the marks are there is not known; nothing was sent.
                self.queue.extend(work.into_iter().map(|work| Work { may_be_marked: true, ..work }));
            }
        }
        if self.phase() >= Phase::Draining || self.leaving {
            self.put_down_unstarted();
        }
    }

    fn mark_set(&mut self, work: Work, result: TransitionResult) {
        if result == TransitionResult::Applied {
            self.marked.push_back(Work { may_be_marked: true, ..work });
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
        while let Some(work) = self.next_batch(batch_limit) {
            if !work.is_empty() {
                self.start_call(work);
            }
        }
    }

    /// What one call may take now; it is empty when what was looked at may not be emitted.
    fn next_batch(&mut self, batch_limit: usize) -> Option<Vec<Work>> {
        if !self.marked.is_empty() {
            // Marked entries have their place already, whatever the destination says about duplicates since.
            let batch: Vec<Work> = self.marked.drain(..batch_limit.min(self.marked.len())).collect();
            return Some(batch.into_iter().filter_map(|work| self.give_back_late(work)).collect());
        }
        let room = self.room(batch_limit);
        if self.loaded.is_harmful() || self.queue.is_empty() || room == 0 {
            return None;
        }
        Some(self.take_startable(room))
    }

    fn start_call(&mut self, work: Vec<Work>) {
        let Ok(emitter) = &self.loaded.emitter else {
            // A version whose emitter this process has not: the look for work holds the destination.
            return self.put_down(work);
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
        let outcomes = done.outcomes.into_iter().map(|(work, outcome)| (work, Event::Emitted(outcome)));
        self.finish(outcomes, done.started, done.finished);
    }

    /// The shutdown grace is over. What became of the cut emissions is not known: each is settled as interrupted, which
    /// charges nothing (trap D3), says nothing about the destination, and is remembered as unanswered (I-10).
    pub(super) fn cut_calls(&mut self) {
        let calls = core::mem::take(&mut self.calls);
        self.shared.metrics.emissions_cut(&self.slot.key, self.flying);
        self.flying = 0;
        let finished = self.shared.env.now();
        for call in calls {
            let (work, started) = call.cut();
            self.finish(work.into_iter().map(|work| (work, Event::Interrupted)), started, finished);
        }
    }

    /// Gives back what is claimed and was never started.
    pub(super) fn put_down_unstarted(&mut self) {
        let queue = core::mem::take(&mut self.queue);
        let marked = core::mem::take(&mut self.marked);
        self.put_down(queue.into_iter().chain(marked));
    }

    /// Gives entries back of which nothing was sent. A send mark can't be released: it is settled as not sent, which
    /// charges nothing and makes ready at once, too.
    fn put_down(&mut self, work: impl IntoIterator<Item = Work>) {
        let (marked, unmarked): (Vec<Work>, Vec<Work>) = work.into_iter().partition(|work| work.may_be_marked);
        self.unreleased.extend(unmarked.iter().map(Work::claim));
        let now = self.shared.env.now();
        self.finish(marked.into_iter().map(|work| (work, Event::NotSent)), now, now);
    }

    /// While this process may be taken for lost, nothing starts; what is in hand goes back, and is claimed again, which
    /// renews the lease first.
    fn put_down_if_lapsed(&mut self) {
        if !(self.queue.is_empty() && self.marked.is_empty()) && self.shared.lease_may_be_over() {
            self.put_down_unstarted();
            self.wants_claim = true;
        }
    }

    /// While the destination is not open, nothing more starts but the probe, which is claimed by itself; what else is in
    /// hand goes back uncharged.
    fn put_down_if_held(&mut self) {
        let unstarted = self.queue.iter().chain(&self.marked);
        if matches!(self.admission(), Admission::Open(_)) || unstarted.map(|work| work.errand).all(is_probe) {
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
