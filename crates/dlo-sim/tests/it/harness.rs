//! The model store under test.

use std::sync::Arc;

use dlo_core::EntryKey;
use dlo_ports::{
    Store,
    conformance::{Harness, ManualClock},
};
use dlo_sim::{ModelStore, counting_randomness};

struct ModelHarness {
    store: Arc<ModelStore>,
    single_engine: bool,
}

impl Harness for ModelHarness {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn make_unreadable(&mut self, key: &EntryKey) -> bool {
        self.store.make_unreadable(key)
    }

    fn single_engine(&self) -> bool {
        self.single_engine
    }
}

pub(crate) fn many_engines(clock: Arc<ManualClock>) -> Box<dyn Harness> {
    let store = Arc::new(ModelStore::new(clock, counting_randomness()));
    Box::new(ModelHarness { store, single_engine: false })
}

pub(crate) fn one_engine(clock: Arc<ManualClock>) -> Box<dyn Harness> {
    let store = Arc::new(ModelStore::new(clock, counting_randomness()).single_engine());
    Box::new(ModelHarness { store, single_engine: true })
}
