//! The suite that every store must pass.

use std::sync::Arc;

use dlo_core::{EntryKey, NewEntry};
use dlo_ports::{
    Clock, Store,
    conformance::{Harness, ManualClock},
    store::EnqueueAnswer,
};
use dlo_sim::counting_randomness;
use dlo_sqlite::{OpenOptions, SqliteStore, StoreClock, enqueue_in};
use rusqlite::{Connection, TransactionBehavior, params};
use tempfile::TempDir;

struct SqliteHarness {
    store: Option<Arc<SqliteStore>>,
    clock: Arc<ManualClock>,
    folder: TempDir,
    random: dlo_sqlite::Random,
}

impl SqliteHarness {
    fn file(&self) -> Connection {
        Connection::open(self.folder.path().join("dlo.db")).unwrap()
    }

    fn open_store(&mut self) {
        let clock = StoreClock::Given(self.clock.clone());
        let mut options = OpenOptions::new(self.folder.path().join("dlo.db"), clock);
        options.create = true;
        options.random = self.random.clone();
        self.store = Some(Arc::new(SqliteStore::open(options).unwrap()));
    }
}

impl Harness for SqliteHarness {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn reopen(&mut self) -> bool {
        self.store = None;
        self.open_store();
        true
    }

    fn enqueue_in_caller_transaction(&mut self, items: Vec<NewEntry>, commit: bool) -> Option<Vec<EnqueueAnswer>> {
        let mut conn = self.file();
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let answers = enqueue_in(&tx, &items, self.clock.now(), &*self.random).unwrap();
        if commit {
            tx.commit().unwrap();
        } else {
            tx.rollback().unwrap();
        }
        Some(answers)
    }

    fn make_unreadable(&mut self, key: &EntryKey) -> bool {
        let damaged = self.file().execute(
            "UPDATE dlo_envelope SET meta = 'not json'
             WHERE id = (SELECT envelope_ref FROM dlo_entry WHERE tenant = ?1 AND entry = ?2)",
            params![key.tenant.as_str(), key.entry.as_bytes()],
        );
        damaged.unwrap() == 1
    }

    fn single_engine(&self) -> bool {
        true
    }
}

pub(crate) fn open(clock: Arc<ManualClock>) -> Box<dyn Harness> {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = SqliteHarness { store: None, clock, folder, random: counting_randomness() };
    harness.open_store();
    Box::new(harness)
}

dlo_ports::conformance_suite!(super::super::conformance::open);
