//! Threads that end by a fault, and queues that do not keep each other waiting.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::mpsc::channel;

use dlo_core::Timestamp;

use super::*;
use crate::open::StoreClock;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1)
    }
}

fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = OpenOptions::new(folder.path().join("dlo.db"), StoreClock::Given(Arc::new(Still)));
    options.create = true;
    let store = Arc::new(SqliteStore::open(options).unwrap());
    (folder, store)
}

fn assert_ended<T: core::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Io);
    assert!(!error.is_passing(), "who repeats the call would repeat it for ever");
    assert!(error.to_string().ends_with("a thread of the store ended because of a fault: open the store again"));
}

#[tokio::test]
async fn a_writer_that_ended_is_no_passing_trouble() {
    let (_folder, store) = store();
    let faulty = store.write::<()>(Weight::default(), false, |_| panic!("broken on purpose"));
    assert_ended(faulty.await);
    assert_ended(store.write(Weight::default(), false, |_| Ok(())).await);
}

#[tokio::test]
async fn a_reader_that_ended_is_no_passing_trouble() {
    let (_folder, store) = store();
    assert_ended(store.look::<()>(|_, _| panic!("broken on purpose")).await);
    assert_ended(store.look(|_, _| Ok(())).await);
    store.view(|_, _| Ok(())).await.unwrap();
}

/// More views than there are threads and places in the queue: workers' looks and writes go on.
#[tokio::test]
async fn long_views_keep_no_worker_waiting() {
    let (_folder, store) = store();
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let views: Vec<_> = (0..=QUEUE + VIEW_READERS)
        .map(|_| {
            let (store, released) = (store.clone(), released.clone());
            tokio::spawn(async move {
                // Waits until the sender is gone.
                let wait = move |_: &Connection, _| Ok(released.lock().unwrap().recv().is_err());
                store.view(wait).await.unwrap()
            })
        })
        .collect();
    while store.queue(|queues| &queues.views).unwrap().permits.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    store.look(|_, _| Ok(())).await.unwrap();
    store.write(Weight::default(), false, |_| Ok(())).await.unwrap();
    drop(release);
    for view in views {
        assert!(view.await.unwrap());
    }
}
