//! The outbox: one opened store with the environment of this process.

use core::future::Future;
use std::sync::Arc;

use dlo_core::{Actor, EngineOptions, Envelope, EnvelopeId, NewEntry, OptionError, Payload, TenantId, WorkerId};
use dlo_engine::{Ended, Engine, EngineError};
use dlo_office::{Grants, Office};
use dlo_ports::{
    Env, Store, StoreError,
    store::{EnqueueAnswer, ReadStore},
};
use dlo_sqlite::{OpenOptions, SqliteStore, StoreClock};

use crate::config::{DEFAULT_WORKER, StoreConfig, StoreKind};
use crate::env::SystemClock;
use crate::{Builder, Config, OpenError, ProcessEnv, Registry};

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
    /// Starts to describe an outbox in code.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens the store that a configuration names. Applies nothing: destinations of the file are input to
    /// [`Office::apply_destinations`].
    ///
    /// # Errors
    /// Those of the store; every one names the file.
    pub async fn open(config: &Config, registry: Registry, mode: OpenMode) -> Result<Self, OpenError> {
        let store = open_store(&config.store, mode).await?;
        Ok(Self::on(store, registry, config.tenant.clone()))
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

    /// An item of this outbox's tenant, with an envelope id of its own; set the other fields by name.
    pub fn item(&self, event_type: impl Into<String>, payload: Payload) -> NewEntry {
        let mut random = [0; 10];
        self.env.random(&mut random);
        let id = EnvelopeId::new(self.env.now(), random);
        NewEntry::new(Envelope::new(id, self.tenant.clone(), event_type, payload))
    }

    /// Saves items; one answer each, after the commit. At most [`dlo_core::limits::MAX_ENQUEUE_BATCH`].
    pub async fn enqueue(&self, items: Vec<NewEntry>) -> Result<Vec<EnqueueAnswer>, StoreError> {
        self.store.enqueue(items).await
    }

    /// Saves items in the application's own transaction on the same file: with its change, or not at all.
    ///
    /// The same statements as [`Self::enqueue`]; see [`dlo_sqlite::enqueue_in`] for what the transaction must be.
    pub fn enqueue_in(
        &self,
        transaction: &rusqlite::Transaction<'_>,
        items: &[NewEntry],
    ) -> Result<Vec<EnqueueAnswer>, StoreError> {
        dlo_sqlite::enqueue_in(transaction, items, self.env.now(), &|bytes| self.env.random(bytes))
    }

    /// An engine over this store; it does nothing until it is run. One at a time for a SQLite file.
    pub fn engine(&self, options: EngineOptions) -> Result<Engine, OptionError> {
        Engine::new(self.store(), self.env(), options)
    }

    /// Runs an engine with default options until `shutdown` is ready; for applications that drain in their own process.
    pub async fn run_in_process(&self, shutdown: impl Future<Output = ()>) -> Result<Ended, EngineError> {
        let worker = WorkerId::new(DEFAULT_WORKER).expect("the default name is a valid worker name");
        self.engine(EngineOptions::new(worker))?.run(shutdown).await
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

/// Opens a store. Migrations and recovery may take long, so this runs beside the tasks of the runtime.
pub(crate) async fn open_store(config: &StoreConfig, mode: OpenMode) -> Result<Arc<dyn Store>, StoreError> {
    let StoreKind::Sqlite = config.kind;
    let options = OpenOptions {
        create: mode == OpenMode::Create,
        attach: config.attach,
        ..OpenOptions::new(config.path.clone(), StoreClock::Database(Arc::new(SystemClock)))
    };
    let opened = crate::env::blocking(move || SqliteStore::open(options)).await?;
    Ok(Arc::new(opened))
}
