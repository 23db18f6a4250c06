//! A world for one test: virtual time that advances to the next sleeper when nothing can run, one thread, counted
//! randomness, named emitters.

use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Wake;

use dlo_core::{Destination, Timestamp};
use dlo_ports::{BoxFuture, Clock, Emitter, Env, emitter::Noop, env::EmitterError};
use futures_util::stream::{FuturesUnordered, StreamExt};

pub const START: i64 = 1_800_000_000_000_000;

#[derive(Default)]
struct Sleepers {
    by_time: BTreeMap<(i64, u64), Waker>,
}

pub struct World {
    now: AtomicI64,
    /// What the engine's own clock is ahead of the database's.
    skew: AtomicI64,
    ids: AtomicU64,
    sleepers: Arc<Mutex<Sleepers>>,
    spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
    emitters: Mutex<BTreeMap<String, Arc<dyn Emitter>>>,
}

/// The database's clock of a world.
pub struct DatabaseClock(pub Arc<World>);

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        self.0.time()
    }
}

struct Sleep {
    at: i64,
    id: u64,
    world: Arc<World>,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let key = (self.at, self.id);
        let mut sleepers = self.world.sleepers.lock().unwrap();
        if self.world.now.load(Ordering::Relaxed) >= self.at {
            sleepers.by_time.remove(&key);
            return Poll::Ready(());
        }
        sleepers.by_time.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.world.sleepers.lock().unwrap().by_time.remove(&(self.at, self.id));
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicI64::new(START),
            skew: AtomicI64::new(0),
            ids: AtomicU64::new(1),
            sleepers: Arc::default(),
            spawned: Mutex::default(),
            emitters: Mutex::new(BTreeMap::from([("noop".to_owned(), Arc::new(Noop) as Arc<dyn Emitter>)])),
        })
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.now.load(Ordering::Relaxed))
    }

    pub fn since_start(&self) -> Duration {
        self.time().since(Timestamp::from_micros(START))
    }

    pub fn skew(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }

    /// Sets all clocks forward, as after a sleep of the machine.
    pub fn jump(&self, span: Duration) {
        self.now.fetch_add(i64::try_from(span.as_micros()).unwrap(), Ordering::Relaxed);
    }

    pub fn emitter(self: &Arc<Self>, kind: &str, emitter: Arc<dyn Emitter>) {
        self.emitters.lock().unwrap().insert(kind.to_owned(), emitter);
    }

    pub fn sleep(self: &Arc<Self>, span: Duration) -> BoxFuture<'static, ()> {
        let at = self.now.load(Ordering::Relaxed).saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX));
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        Box::pin(Sleep { at, id, world: Arc::clone(self) })
    }

    /// Lets time pass until the next sleeper is due, and wakes all that are due then.
    fn wake_next(&self) {
        let mut sleepers = self.sleepers.lock().unwrap();
        let (at, _) = *sleepers.by_time.first_key_value().expect("nothing can run and nobody sleeps: the test hangs").0;
        self.now.fetch_max(at, Ordering::Relaxed);
        let later = sleepers.by_time.split_off(&(at + 1, 0));
        let due = core::mem::replace(&mut sleepers.by_time, later);
        drop(sleepers);
        due.into_values().for_each(Waker::wake);
    }

    /// Runs a future, and what it spawns, until it ends. What was spawned and has not ended by then is dropped, as it
    /// is when a process ends.
    pub fn run<T>(self: &Arc<Self>, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        let mut tasks: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut cx = Context::from_waker(&waker);
        loop {
            while flag.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(output) = main.as_mut().poll(&mut cx) {
                    self.spawned.lock().unwrap().clear();
                    return output;
                }
                let spawned: Vec<_> = self.spawned.lock().unwrap().drain(..).collect();
                tasks.extend(spawned);
                while let Poll::Ready(Some(())) = tasks.poll_next_unpin(&mut cx) {}
                if !self.spawned.lock().unwrap().is_empty() {
                    flag.0.store(true, Ordering::Relaxed);
                }
            }
            self.wake_next();
        }
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now.load(Ordering::Relaxed) + self.skew.load(Ordering::Relaxed))
    }
}

/// The environment of one engine in a world.
pub struct WorldEnv(pub Arc<World>);

impl Clock for WorldEnv {
    fn now(&self) -> Timestamp {
        Clock::now(&*self.0)
    }
}

impl Env for WorldEnv {
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }

    fn random(&self, bytes: &mut [u8]) {
        // Splitmix64: different every time, the same in every run.
        for chunk in bytes.chunks_mut(8) {
            let mut z = self.0.ids.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let word = (z ^ (z >> 31)).to_be_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawned.lock().unwrap().push(task);
    }

    fn emitter(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        let kind = &destination.spec.emitter;
        let emitter = self.0.emitters.lock().unwrap().get(kind).cloned();
        emitter.ok_or_else(|| EmitterError::UnknownKind { kind: kind.clone() })
    }
}
