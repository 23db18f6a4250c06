//! Destinations with their emitters, loaded once per version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dlo_core::{Destination, Duplicates, Health};
use dlo_ports::{Emitter, Store, StoreError, env::EmitterError};

use crate::{
    limits,
    shared::{LaneKey, locked},
};

/// A destination version with its emitter.
pub(crate) struct Loaded {
    /// What it is.
    pub(crate) destination: Destination,
    /// What emits to it, or why nothing in this process does.
    pub(crate) emitter: Result<Arc<dyn Emitter>, EmitterError>,
}

impl Loaded {
    /// Whether a duplicate does harm there, so that send marks are needed (I-10).
    pub(crate) fn is_harmful(&self) -> bool {
        self.destination.spec.duplicates == Duplicates::Harmful
    }
}

/// What a read of a destination found.
pub(crate) type Found = Option<(Arc<Loaded>, Health)>;

/// The cache.
#[derive(Default)]
pub(crate) struct Directory {
    loaded: Mutex<BTreeMap<LaneKey, Arc<Loaded>>>,
}

impl Directory {
    /// The destination, if that version of it is here.
    pub(crate) fn cached(&self, key: &LaneKey, version: u64) -> Option<Arc<Loaded>> {
        locked(&self.loaded).get(key).filter(|loaded| loaded.destination.version == version).cloned()
    }

    /// Reads the destination; makes its emitter if the version is new to this process.
    pub(crate) async fn load(
        &self,
        store: &dyn Store,
        emitters: impl FnOnce(&Destination) -> Result<Arc<dyn Emitter>, EmitterError>,
        key: &LaneKey,
    ) -> Result<Found, StoreError> {
        let Some((destination, health)) = store.destination(key.0.clone(), key.1.clone()).await? else {
            return Ok(None);
        };
        if let Some(loaded) = self.cached(key, destination.version) {
            return Ok(Some((loaded, health)));
        }
        let emitter = emitters(&destination);
        let loaded = Arc::new(Loaded { destination, emitter });
        if loaded.emitter.is_err() {
            // Asked again with the next probe: a secret may be there by then.
            return Ok(Some((loaded, health)));
        }
        let mut cache = locked(&self.loaded);
        if cache.len() >= limits::MAX_CACHED_DESTINATIONS && !cache.contains_key(key) {
            // What is being drained holds its own reference; the rest is read again when it has work.
            cache.clear();
        }
        cache.insert(key.clone(), Arc::clone(&loaded));
        Ok(Some((loaded, health)))
    }
}
