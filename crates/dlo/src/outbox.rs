//! The outbox: one opened store with the environment of this process.

use std::sync::Arc;

use dlo_core::{Actor, NewEntry, TenantId};
use dlo_office::{Grants, Office};
use dlo_ports::{
    Env, Store, StoreError,
    store::{EnqueueAnswer, ReadStore},
};

use crate::{Config, OpenError, ProcessEnv, Registry};

/// Whether a store that is not there is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Make it if it is not there, and migrate it.
    Create,
    /// Refuse with a hint if it is not there; migrate it.
    Existing,
}

/// An opened store with the environment of this process. Cheap to clone.
#[derive(Clone)]
pub struct Outbox {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    registry: Registry,
    tenant: TenantId,
}

impl Outbox {
    /// Opens the store that a configuration names. Applies nothing: destinations of the file are input to
    /// [`Office::apply_destinations`].
    pub async fn open(config: &Config, registry: Registry, mode: OpenMode) -> Result<Self, OpenError> {
        let _ = (config, registry, mode);
        core::future::ready(()).await;
        Err(OpenError::Store(StoreError::new(dlo_ports::StoreErrorKind::Unavailable, "store is being wired")))
    }

    /// An outbox on any store, for stores of one's own and for tests.
    pub fn on(store: Arc<dyn Store>, registry: Registry, tenant: TenantId) -> Self {
        let env = Arc::new(ProcessEnv::new(registry.clone()));
        Self { store, env, registry, tenant }
    }

    /// Tenant of this outbox's own items.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The whole store.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The reading verbs.
    pub fn reader(&self) -> Arc<dyn ReadStore> {
        self.store.clone()
    }

    /// Time, randomness, spawning and emitters of this process.
    pub fn env(&self) -> Arc<dyn Env> {
        Arc::clone(&self.env)
    }

    /// Emitter kinds of this process.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Saves items; the answer comes after the commit. At most [`dlo_core::limits::MAX_ENQUEUE_BATCH`].
    pub async fn enqueue(&self, items: Vec<NewEntry>) -> Result<Vec<EnqueueAnswer>, StoreError> {
        self.store.enqueue(items).await
    }

    /// The office for an actor of direct mode, who may do everything: whoever can open the store can.
    ///
    /// See [`dlo_office::local_actor`] for the name of an operating-system user.
    pub fn office(&self, actor: Actor) -> Office {
        self.office_with(actor, Grants::operator())
    }

    /// The office for an actor who may do what the grants say.
    pub fn office_with(&self, actor: Actor, grants: Grants) -> Office {
        let registry = self.registry.clone();
        Office::new(self.store.clone(), self.store.clone(), self.env(), actor, grants)
            .with_settings_check(Arc::new(move |spec| registry.validate(spec)))
    }
}
