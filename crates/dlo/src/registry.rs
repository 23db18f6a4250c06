//! Which kinds of emitter a process has.

use std::collections::BTreeMap;
use std::sync::Arc;

use dlo_core::{Destination, DestinationSpec, Timestamp};
use dlo_ports::{Emitter, emitter::Noop, env::EmitterError};
use dlo_webhook::WebhookFactory;

use crate::env::SystemClock;

/// Makes the emitters of one kind.
///
/// Any `Fn(&Destination) -> Result<Arc<dyn Emitter>, EmitterError>` is one. It is called once per destination version
/// and process, so it may build clients; it must not do IO, which belongs into the emission.
pub trait EmitterFactory: Send + Sync {
    /// Checks the settings of a destination before a store sees them. By default an emitter is built and dropped.
    fn validate(&self, spec: &DestinationSpec) -> Result<(), EmitterError> {
        let destination = Destination { spec: spec.clone(), version: 0, applied: Timestamp::EPOCH };
        self.build(&destination).map(drop)
    }

    /// The emitter of a destination.
    fn build(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError>;
}

impl<F> EmitterFactory for F
where
    F: Fn(&Destination) -> Result<Arc<dyn Emitter>, EmitterError> + Send + Sync,
{
    fn build(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        self(destination)
    }
}

/// The webhook emitter; its settings are checked without building a client.
struct Webhook(WebhookFactory);

impl EmitterFactory for Webhook {
    fn validate(&self, spec: &DestinationSpec) -> Result<(), EmitterError> {
        dlo_webhook::validate(&spec.settings)
    }

    fn build(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        self.0.build(destination)
    }
}

/// Emitter kinds by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Registry(Arc<BTreeMap<String, Arc<dyn EmitterFactory>>>);

impl Registry {
    /// No kind at all: a process that never emits, or one that has only kinds of its own.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The kinds that come with the product: `webhook` and `noop`.
    pub fn builtin() -> Self {
        let noop = |_: &Destination| Ok(Arc::new(Noop) as Arc<dyn Emitter>);
        let webhook = Webhook(WebhookFactory::new(Arc::new(SystemClock)));
        Self::empty().with(Noop::KIND, Arc::new(noop)).with(dlo_webhook::KIND, Arc::new(webhook))
    }

    /// The same with one more kind; a kind of the same name is replaced.
    pub fn with(self, kind: impl Into<String>, factory: Arc<dyn EmitterFactory>) -> Self {
        let mut kinds = Arc::unwrap_or_clone(self.0);
        kinds.insert(kind.into(), factory);
        Self(Arc::new(kinds))
    }

    /// Names of the kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Checks a destination's settings by its emitter.
    pub fn validate(&self, spec: &DestinationSpec) -> Result<(), EmitterError> {
        self.factory(&spec.emitter)?.validate(spec)
    }

    /// The emitter of a destination.
    pub fn build(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        self.factory(&destination.spec.emitter)?.build(destination)
    }

    fn factory(&self, kind: &str) -> Result<&Arc<dyn EmitterFactory>, EmitterError> {
        self.0.get(kind).ok_or_else(|| EmitterError::UnknownKind { kind: kind.to_owned() })
    }
}
