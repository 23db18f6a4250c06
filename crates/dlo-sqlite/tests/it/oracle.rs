//! The model is the oracle of this store: random sequences of operations give equal answers and equal state on both.

use std::sync::Arc;

use dlo_core::EntryKey;
use dlo_ports::{
    Store,
    conformance::{Harness, ManualClock, oracle::check},
};
use dlo_sim::{ModelStore, counting_randomness};

struct Model(Arc<ModelStore>);

impl Harness for Model {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn make_unreadable(&mut self, key: &EntryKey) -> bool {
        self.0.make_unreadable(key)
    }

    fn single_engine(&self) -> bool {
        true
    }
}

fn model(clock: Arc<ManualClock>) -> Box<dyn Harness> {
    Box::new(Model(Arc::new(ModelStore::new(clock, counting_randomness()).single_engine())))
}

#[test]
fn the_store_agrees_with_the_model() {
    let unmet = check(128, 80, [3; 32], &crate::conformance::open, &model);
    assert!(unmet.is_empty(), "no sequence met {unmet:?}");
}

#[test]
fn the_store_agrees_with_the_model_over_long_sequences() {
    check(16, 300, [7; 32], &crate::conformance::open, &model);
}
