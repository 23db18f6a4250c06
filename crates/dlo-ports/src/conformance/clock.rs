//! Time and waiting for tests: a clock that moves when it is told to, and the smallest executor.

use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicI64, Ordering},
    task::{Context, Poll},
    time::Duration,
};
use std::{
    sync::Arc,
    task::{Wake, Waker},
    thread::{self, Thread},
};

use dlo_core::Timestamp;

use crate::Clock;

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at 2027-01-15T08:00:00Z.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_800_000_000_000_000)))
    }

    /// Moves it on.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().after(span));
    }

    /// Moves it back.
    pub fn step_back(&self, span: Duration) {
        self.set(self.now().before(span));
    }

    /// Sets it.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread until it is ready. A store may work on threads of its own meanwhile.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
