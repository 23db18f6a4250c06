//! What commands stand on: the configuration, the opened store, who acts, and where data goes.

use dlo::config::Overrides;
use dlo::office::{Office, local_actor};
use dlo::{Config, OpenMode, Outbox, Registry};
use dlo_core::TenantId;

use crate::args::{Global, LogFormat};
use crate::failure::Result;
use crate::output::Out;

/// The configuration of this process, and stdout.
pub(crate) struct Context {
    /// The configuration, flags included.
    pub(crate) config: Config,
    /// Where data goes.
    pub(crate) out: Out,
    /// The tenant that a flag names. It is not put over the configuration: there `tenant` is also the tenant of
    /// destinations that name none, and no flag may move a destination to another tenant.
    named_tenant: Option<TenantId>,
}

impl Context {
    /// Reads the configuration.
    pub(crate) fn load(global: &Global, overrides: Overrides, out: Out) -> Result<Self> {
        let config = Config::load(global.config.as_deref(), &variable, &put_over(global, overrides))?;
        Ok(Self { config, out, named_tenant: global.tenant.clone() })
    }

    /// Emitter kinds of this binary.
    pub(crate) fn registry() -> Registry {
        Registry::builtin()
    }

    /// Opens the store, which must exist.
    pub(crate) async fn open(&self) -> Result<Outbox> {
        Ok(Outbox::open(&self.config, Self::registry(), OpenMode::Existing).await?)
    }

    /// The tenant of acts.
    pub(crate) fn tenant(&self) -> &TenantId {
        self.named_tenant.as_ref().unwrap_or(&self.config.tenant)
    }

    /// The tenant that lists are narrowed to, if a flag names one.
    pub(crate) fn listed_tenant(&self) -> Option<TenantId> {
        self.named_tenant.clone()
    }
}

/// The office of whoever runs this process.
pub(crate) fn office(outbox: &Outbox) -> Office {
    outbox.office(local_actor(&os_user()))
}

fn put_over(global: &Global, mut overrides: Overrides) -> Overrides {
    if let Some(store) = &global.store {
        overrides = overrides.set("store.path", "--store", store.to_string_lossy());
    }
    match global.log_format {
        Some(LogFormat::Text) => overrides = overrides.set("log.format", "--log-format", "text"),
        Some(LogFormat::Json) => overrides = overrides.set("log.format", "--log-format", "json"),
        None => {}
    }
    match global.verbose {
        0 => overrides,
        1 => overrides.set("log.level", "-v", "info"),
        2 => overrides.set("log.level", "-vv", "debug"),
        _ => overrides.set("log.level", "-vvv", "trace"),
    }
}

/// Environment variables as the configuration reads them; one that is not UTF-8 counts as not set.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Name of the user who runs this process: by its user id where that can be looked up, else what the environment says.
/// Audit events call it *asserted* in any case.
fn os_user() -> String {
    passwd_name().or_else(|| variable("USER")).or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unknown".to_owned())
}

/// On Linux the owner of `/proc/self` is the effective user.
fn passwd_name() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}
