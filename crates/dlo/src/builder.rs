//! An outbox described in code.

use std::path::PathBuf;
use std::sync::Arc;

use dlo_core::{Actor, AuthenticationStrength, Destination, DestinationSpec, TenantId};
use dlo_ports::{Emitter, env::EmitterError};
use dlo_sqlite::Attach;

use crate::config::{DEFAULT_STORE, StoreConfig, StoreKind};
use crate::{EmitterFactory, OpenError, OpenMode, Outbox, Registry, outbox::open_store};

/// Describes an outbox: where the store is, which emitters there are, which destinations are applied.
///
/// By default: the file `dlo.db` in the working directory, made if it is not there; tenant `default`; emitters
/// `webhook` and `noop`; no destinations.
pub struct Builder {
    store: StoreConfig,
    mode: OpenMode,
    tenant: TenantId,
    registry: Registry,
    destinations: Vec<DestinationSpec>,
    actor: Actor,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            store: StoreConfig { kind: StoreKind::Sqlite, path: PathBuf::from(DEFAULT_STORE), attach: Attach::Own },
            mode: OpenMode::Create,
            tenant: TenantId::default_tenant(),
            registry: Registry::builtin(),
            destinations: Vec::new(),
            actor: Actor { name: "application".to_owned(), strength: AuthenticationStrength::Asserted },
        }
    }
}

impl Builder {
    /// The SQLite file.
    pub fn sqlite(mut self, path: impl Into<PathBuf>) -> Self {
        self.store.path = path.into();
        self
    }

    /// Whose file it is; [`Attach::Application`] leaves an application's own file as it is.
    pub fn attach(mut self, attach: Attach) -> Self {
        self.store.attach = attach;
        self
    }

    /// Whether the file is made if it is not there.
    pub fn mode(mut self, mode: OpenMode) -> Self {
        self.mode = mode;
        self
    }

    /// Tenant of the outbox's own items.
    pub fn tenant(mut self, tenant: TenantId) -> Self {
        self.tenant = tenant;
        self
    }

    /// One more kind of emitter, as a function from a destination to its emitter ([`dlo_ports::emitter::emit_each`]
    /// makes one of a function). Called once per destination version and process.
    pub fn emitter(
        self,
        kind: impl Into<String>,
        make: impl Fn(&Destination) -> Result<Arc<dyn Emitter>, EmitterError> + Send + Sync + 'static,
    ) -> Self {
        self.emitter_factory(kind, Arc::new(make))
    }

    /// The same with a factory that also checks settings.
    pub fn emitter_factory(mut self, kind: impl Into<String>, factory: Arc<dyn EmitterFactory>) -> Self {
        self.registry = self.registry.with(kind, factory);
        self
    }

    /// A destination that is applied when the outbox is opened; nothing is written if it is as it was.
    pub fn destination(mut self, spec: DestinationSpec) -> Self {
        self.destinations.push(spec);
        self
    }

    /// In whose name destinations are applied; by default `application`, asserted.
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Opens the store and applies the destinations.
    ///
    /// # Errors
    /// Those of the store, and of a destination that is not valid: then none was applied.
    pub async fn open(self) -> Result<Outbox, OpenError> {
        let store = open_store(&self.store, self.mode).await?;
        let outbox = Outbox::on(store, self.registry, self.tenant);
        if !self.destinations.is_empty() {
            let report = outbox.office(self.actor).apply_destinations(self.destinations).await?;
            for warning in report.warnings {
                tracing::warn!("{warning}");
            }
        }
        Ok(outbox)
    }
}
