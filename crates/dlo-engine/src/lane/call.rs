//! One call of an emitter: its deadline, its panic, its missing answers.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dlo_core::{Class, EntryId, Failure, Outcome, Phase, Timestamp, reason};
use dlo_ports::{BoxFuture, Emission, Emitted, Emitter, Env};

use super::Work;
use crate::limits;

/// A call under way. The emitter's future runs inside `catch_unwind`, and is dropped at the deadline.
pub(super) struct Call {
    work: Vec<Work>,
    emitting: BoxFuture<'static, Vec<Emitted>>,
    deadline: Option<BoxFuture<'static, ()>>,
    span: Duration,
    started: Timestamp,
    env: Arc<dyn Env>,
}

/// A call that has ended: each entry with its outcome.
pub(super) struct Done {
    pub(super) outcomes: Vec<(Work, Outcome)>,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

impl Call {
    /// Prepares a call; nothing happens until it is polled.
    pub(super) fn new(env: &Arc<dyn Env>, emitter: &Arc<dyn Emitter>, work: Vec<Work>, deadline: Duration) -> Self {
        let started = env.now();
        // An emitter that ends by itself can still say whether the request was sent.
        let timeout = deadline.saturating_sub((deadline / 20).min(limits::LONGEST_HEADROOM));
        let batch: Vec<Emission> = work.iter().map(|work| emission(work, started.after(timeout), timeout)).collect();
        let emitter = Arc::clone(emitter);
        Self {
            work,
            emitting: Box::pin(async move { emitter.emit(batch).await }),
            deadline: None,
            span: deadline,
            started,
            env: Arc::clone(env),
        }
    }

    /// The entries of a call that is cut.
    pub(super) fn cut(self) -> (Vec<Work>, Timestamp) {
        (self.work, self.started)
    }

    fn done(&mut self, mut outcome: impl FnMut(&Work, usize) -> Outcome) -> Poll<Done> {
        let work = core::mem::take(&mut self.work);
        let outcomes = work
            .into_iter()
            .enumerate()
            .map(|(index, work)| {
                let outcome = outcome(&work, index);
                (work, outcome)
            })
            .collect();
        Poll::Ready(Done { outcomes, started: self.started, finished: self.env.now() })
    }
}

impl Future for Call {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        let call = &mut *self;
        match catch_unwind(AssertUnwindSafe(|| call.emitting.as_mut().poll(cx))) {
            Ok(Poll::Ready(emitted)) => {
                let mut answers = Answers(emitted.into_iter().map(Some).collect());
                return call.done(|work, index| answers.take(work.entry().key.entry, index));
            }
            Ok(Poll::Pending) => {}
            Err(_) => return call.done(|_, _| panicked()),
        }
        // Made at the first wait only: an emitter that answers at once costs no timer.
        let deadline = call.deadline.get_or_insert_with(|| call.env.sleep(call.span));
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => call.done(|_, _| deadline_exceeded()),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn emission(work: &Work, deadline: Timestamp, timeout: Duration) -> Emission {
    let entry = work.entry();
    Emission {
        entry: entry.key.entry,
        tenant: entry.key.tenant.clone(),
        destination: entry.destination.clone(),
        generation: entry.key.generation,
        operation_key: entry.operation_key.clone(),
        attempt: entry.progress.attempts.saturating_add(1),
        deadline,
        timeout,
        envelope: Arc::clone(&work.claimed.envelope),
    }
}

/// Answers of an emitter, in any order, with gaps. The first answer for an entry counts.
struct Answers(Vec<Option<Emitted>>);

impl Answers {
    fn take(&mut self, entry: EntryId, index: usize) -> Outcome {
        let is_it = |emitted: &Option<Emitted>| emitted.as_ref().is_some_and(|emitted| emitted.entry == entry);
        // Most emitters answer in the order of the call.
        let at = if self.0.get(index).is_some_and(is_it) { Some(index) } else { self.0.iter().position(is_it) };
        at.and_then(|at| self.0[at].take()).map_or_else(no_answer, |emitted| emitted.outcome)
    }
}

/// The emitter did not answer in time: whether it was sent is not known.
fn deadline_exceeded() -> Outcome {
    Outcome::Ambiguous(Failure::custom(
        Class::Ambiguous,
        reason::EMISSION_DEADLINE,
        Phase::Unknown,
        "the emitter gave no answer before the deadline",
    ))
}

fn panicked() -> Outcome {
    Outcome::Failed(Failure::custom(
        Class::Unknown,
        reason::EMISSION_PANIC,
        Phase::Unknown,
        "the emitter panicked during this emission",
    ))
}

fn no_answer() -> Outcome {
    Outcome::Failed(Failure::custom(
        Class::Unknown,
        reason::EMISSION_NO_ANSWER,
        Phase::Unknown,
        "the emitter answered for other emissions of the call, and not for this one",
    ))
}
