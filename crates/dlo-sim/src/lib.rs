//! The model store: what a store of Dead Letter Office means, in maps behind one lock.
//!
//! **What it is for.** It is the oracle of the real stores: random sequences of operations must give the same answers
//! and the same state on both (`dlo_ports::conformance::oracle`). Engine tests use it as a store without a disk.
//!
//! **What it must never do.** It is no product: it scans where a database has an index, keeps everything in memory and
//! promises nothing about durability. Whenever it could be clear or fast, it is clear.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dlo_core::Timestamp;
//! use dlo_sim::ModelStore;
//!
//! struct Noon;
//! impl dlo_ports::Clock for Noon {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_micros(43_200_000_000)
//!     }
//! }
//!
//! let store = ModelStore::new(Arc::new(Noon), dlo_sim::counting_randomness());
//! let store: Arc<dyn dlo_ports::Store> = Arc::new(store);
//! # let _ = store;
//! ```

mod model;

pub use model::{ModelStore, Randomness, counting_randomness};
