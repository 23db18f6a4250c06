//! From a destination to its emitter.

use core::fmt;
use std::sync::Arc;

use dlo_core::{Destination, Duplicates};
use dlo_ports::env::EmitterError;
use dlo_ports::{Clock, Emitter};

use crate::emitter::Webhook;
use crate::resolve::{Resolver, SystemResolver};
use crate::secret::EnvLookup;
use crate::settings::{Settings, SettingsError};
use crate::{KIND, client};

/// Makes webhook emitters. Cheap to clone.
#[derive(Clone)]
pub struct WebhookFactory {
    clock: Arc<dyn Clock>,
    env: EnvLookup,
    resolver: Arc<dyn Resolver>,
}

impl fmt::Debug for WebhookFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookFactory")
    }
}

impl WebhookFactory {
    /// A factory whose emitters take the time from `clock` (for `webhook-timestamp` and dates in `Retry-After`),
    /// secrets from this process's environment, and addresses from the system's resolver.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, env: Arc::new(|name| std::env::var(name).ok()), resolver: Arc::new(SystemResolver) }
    }

    /// Takes `env:` secrets from elsewhere.
    pub fn with_env(mut self, env: EnvLookup) -> Self {
        self.env = env;
        self
    }

    /// Resolves names in another way. What it answers is checked all the same.
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// The emitter of a destination version. Emissions need a tokio runtime with time and IO.
    ///
    /// # Errors
    /// [`EmitterError::UnknownKind`] for a destination of another kind, [`EmitterError::Settings`] for settings that
    /// are not valid or name a `ca_file` that can't be read.
    pub fn build(&self, destination: &Destination) -> Result<Arc<dyn Emitter>, EmitterError> {
        let spec = &destination.spec;
        if spec.emitter != KIND {
            return Err(EmitterError::UnknownKind { kind: spec.emitter.clone() });
        }
        let settings = Settings::parse(&spec.settings).map_err(emitter_error)?;
        // A cut on a connection from the pool can't be told from a cut after sending: where that matters, none is used.
        let fresh = spec.duplicates == Duplicates::Harmful;
        let client = client::build(&settings, Arc::clone(&self.resolver), fresh).map_err(emitter_error)?;
        Ok(Arc::new(Webhook { settings, client, clock: Arc::clone(&self.clock), env: Arc::clone(&self.env), fresh }))
    }
}

/// Checks the settings of a destination when it is applied. Reads no file, secret or name.
///
/// # Errors
/// [`EmitterError::Settings`] with the first setting that is not valid and the rule.
pub fn validate(settings: &str) -> Result<(), EmitterError> {
    Settings::parse(settings).map(|_| ()).map_err(emitter_error)
}

fn emitter_error(error: SettingsError) -> EmitterError {
    EmitterError::Settings { kind: KIND.to_owned(), problem: error.to_string() }
}
