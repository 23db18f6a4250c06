//! The office itself: who acts, on which store, and what every act has in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dlo_core::{Actor, AuditEvent, AuditId, AuthenticationStrength, DestinationName, TenantId, limits, text::ActText};
use dlo_ports::{
    Env, StoreError,
    store::{OfficeStore, ReadStore},
};

use crate::{Authority, Grants, OfficeError, SettingsCheck};

/// An actor's desk: acts of one actor on one store. Cheap to make; make one per actor.
pub struct Office {
    pub(crate) store: Arc<dyn OfficeStore>,
    pub(crate) read: Arc<dyn ReadStore>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) settings: Option<SettingsCheck>,
    actor: Actor,
    grants: Grants,
}

/// The actor of direct mode, where whoever opens the database acts: `local:<os user>`, *asserted*.
pub fn local_actor(os_user: &str) -> Actor {
    let clean: String = os_user.chars().filter(|c| !c.is_control()).take(limits::MAX_KEY_BYTES / 4).collect();
    let user = if clean.is_empty() { "unknown" } else { &clean };
    Actor { name: format!("local:{user}"), strength: AuthenticationStrength::Asserted }
}

impl Office {
    /// An office for `actor`, who may do what `grants` say. The environment gives time and randomness for ids.
    pub fn new(
        store: Arc<dyn OfficeStore>,
        read: Arc<dyn ReadStore>,
        env: Arc<dyn Env>,
        actor: Actor,
        grants: Grants,
    ) -> Self {
        Self { store, read, env, settings: None, actor, grants }
    }

    /// The same with the emitters' own check of a destination's settings, asked before the store sees them.
    pub fn with_settings_check(mut self, check: SettingsCheck) -> Self {
        self.settings = Some(check);
        self
    }

    /// Who acts.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    pub(crate) fn permit(
        &self,
        act: &'static str,
        authority: Authority,
        tenant: &TenantId,
        destination: Option<&DestinationName>,
    ) -> Result<(), OfficeError> {
        if self.grants.allow(authority, tenant, destination) {
            return Ok(());
        }
        Err(self.forbidden(act, authority, tenant))
    }

    pub(crate) fn holds_somewhere(&self, authority: Authority, tenant: &TenantId) -> bool {
        self.grants.allow_some(authority, tenant)
    }

    pub(crate) fn forbidden(&self, act: &'static str, authority: Authority, tenant: &TenantId) -> OfficeError {
        OfficeError::Forbidden {
            actor: self.actor.name.clone(),
            act,
            tenant: tenant.clone(),
            authority: authority.as_str(),
        }
    }

    pub(crate) fn event(
        &self,
        act: &'static str,
        tenant: &TenantId,
        items: &[impl ToString],
        reason: Option<ActText>,
        detail: BTreeMap<&'static str, String>,
    ) -> AuditEvent {
        AuditEvent {
            id: AuditId::new(self.env.now(), self.random()),
            tenant: tenant.clone(),
            actor: self.actor.clone(),
            act,
            target: items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            reason,
            detail,
        }
    }

    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.env.random(&mut bytes);
        bytes
    }
}

/// A reason that must be given.
pub(crate) fn required_reason(act: &'static str, reason: &str) -> Result<ActText, OfficeError> {
    optional_reason(act, Some(reason)).and_then(|text| text.ok_or(OfficeError::ReasonBlank { act }))
}

/// A reason that may be given; a blank one is an error all the same, since somebody meant to give one.
pub(crate) fn optional_reason(act: &'static str, reason: Option<&str>) -> Result<Option<ActText>, OfficeError> {
    let Some(reason) = reason else { return Ok(None) };
    if reason.trim().is_empty() {
        return Err(OfficeError::ReasonBlank { act });
    }
    if reason.len() > limits::MAX_ACT_TEXT_BYTES {
        return Err(OfficeError::ReasonTooLong { seen: reason.len(), limit: limits::MAX_ACT_TEXT_BYTES });
    }
    Ok(Some(ActText::new(reason)))
}

/// Items of an act: at least one, at most `limit`, none twice.
pub(crate) fn check_items<T: Ord + ToString>(act: &'static str, items: &[T], limit: usize) -> Result<(), OfficeError> {
    if items.is_empty() {
        return Err(OfficeError::NoItems { act });
    }
    if items.len() > limit {
        return Err(OfficeError::TooManyItems { act, seen: items.len(), limit });
    }
    let mut seen = BTreeSet::new();
    match items.iter().find(|item| !seen.insert(*item)) {
        Some(twice) => Err(OfficeError::DuplicateItem { act, item: twice.to_string() }),
        None => Ok(()),
    }
}

/// A failure of the store after `done` of `total` items.
pub(crate) fn store_error(done: usize, total: usize) -> impl FnOnce(StoreError) -> OfficeError {
    move |source| OfficeError::Store { done, total, source }
}
