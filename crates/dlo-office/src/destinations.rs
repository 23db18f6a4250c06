//! Acts on destinations: apply, hold, release, probe.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dlo_core::{DestinationName, DestinationSpec, Duplicates, TenantId, limits, policy::MAX_DURATION, text::ActText};
use dlo_ports::{
    env::EmitterError,
    store::{ActResult, Applied, HoldAct},
};

use crate::{
    Authority, Office, OfficeError, acts,
    office::{check_items, optional_reason, required_reason, store_error},
};

/// The emitters' own check of a destination's settings.
pub type SettingsCheck = Arc<dyn Fn(&DestinationSpec) -> Result<(), EmitterError> + Send + Sync>;

/// Longest settings of a destination, in bytes: they are read with every change of version.
const MAX_SETTINGS_BYTES: usize = 64 * 1_024;
/// Most event-type rules of one destination: every enqueue without a named destination looks at them.
const MAX_EVENT_TYPE_RULES: usize = 256;

/// What became of an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// One result each, grouped by tenant.
    pub applied: Vec<(TenantId, Applied)>,
    /// What is allowed but worth a look, in sentences: an emitter kind that this process does not have, and [`advice`].
    pub warnings: Vec<String>,
}

impl Office {
    /// Creates and updates destinations. All of a tenant or none of it: one transaction and one audit event a tenant.
    ///
    /// Everything is checked before anything is saved. An emitter kind that this process does not have is taken with a
    /// warning: another process may have it, and until then the engine holds the destination. Needs `administer`.
    pub async fn apply_destinations(&self, specs: Vec<DestinationSpec>) -> Result<ApplyReport, OfficeError> {
        let total = specs.len();
        let names: Vec<String> = specs.iter().map(|spec| format!("{}/{}", spec.tenant, spec.name)).collect();
        check_items(acts::APPLY, &names, limits::MAX_PAGE)?;
        let mut report = ApplyReport::default();
        let mut by_tenant: BTreeMap<TenantId, Vec<DestinationSpec>> = BTreeMap::new();
        for spec in specs {
            self.permit(acts::APPLY, Authority::Administer, &spec.tenant, Some(&spec.name))?;
            check_spec(&spec)?;
            report.warnings.extend(self.check_settings(&spec)?);
            report.warnings.extend(advice(&spec));
            by_tenant.entry(spec.tenant.clone()).or_default().push(spec);
        }
        for (tenant, specs) in by_tenant {
            let names: Vec<DestinationName> = specs.iter().map(|spec| spec.name.clone()).collect();
            let detail = BTreeMap::from([("items", names.len().to_string())]);
            let audit = self.event(acts::APPLY, &tenant, &names, None, detail);
            let done = report.applied.len();
            let applied = self.store.apply_destinations(specs, audit).await.map_err(store_error(done, total))?;
            report.applied.extend(applied.into_iter().map(|applied| (tenant.clone(), applied)));
        }
        Ok(report)
    }

    fn check_settings(&self, spec: &DestinationSpec) -> Result<Option<String>, OfficeError> {
        let Some(check) = &self.settings else { return Ok(None) };
        match check(spec) {
            Ok(()) => Ok(None),
            Err(EmitterError::UnknownKind { kind }) => Ok(Some(format!(
                "destination `{}` of tenant `{}`: this process has no emitter of kind `{kind}`; an engine without it \
                 holds the destination and keeps its entries",
                spec.name, spec.tenant
            ))),
            Err(problem) => Err(OfficeError::SettingsInvalid { destination: spec.name.clone(), problem }),
        }
    }

    /// Holds destinations until a person releases them: nothing is tried, nothing is charged. Needs `triage`.
    pub async fn hold(
        &self,
        tenant: &TenantId,
        destinations: Vec<DestinationName>,
        reason: &str,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = required_reason(acts::HOLD, reason)?;
        let act = HoldAct::Hold { reason: reason.clone() };
        self.act_on_destinations(acts::HOLD, Authority::Triage, tenant, destinations, act, Some(reason)).await
    }

    /// Ends every hold of destinations, by a person or by evidence. Needs `execute`.
    pub async fn release(
        &self,
        tenant: &TenantId,
        destinations: Vec<DestinationName>,
        reason: &str,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = required_reason(acts::RELEASE, reason)?;
        let act = HoldAct::Release;
        self.act_on_destinations(acts::RELEASE, Authority::Execute, tenant, destinations, act, Some(reason)).await
    }

    /// Asks for one try at held destinations now. Needs `execute`.
    pub async fn probe(
        &self,
        tenant: &TenantId,
        destinations: Vec<DestinationName>,
        reason: Option<&str>,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = optional_reason(acts::PROBE, reason)?;
        self.act_on_destinations(acts::PROBE, Authority::Execute, tenant, destinations, HoldAct::Probe, reason).await
    }

    /// Holds every destination of a tenant, or of all tenants: stops everything. Needs `triage` in each of them.
    ///
    /// Destinations that are applied while this runs may be missed; their names are not in the answer.
    pub async fn hold_all(
        &self,
        tenant: Option<&TenantId>,
        reason: &str,
    ) -> Result<Vec<(TenantId, DestinationName, ActResult)>, OfficeError> {
        required_reason(acts::HOLD, reason)?;
        let by_tenant = self.all_destinations(tenant).await?;
        for tenant in by_tenant.keys() {
            self.permit(acts::HOLD, Authority::Triage, tenant, None)?;
        }
        let total = by_tenant.values().map(Vec::len).sum();
        let mut held = Vec::with_capacity(total);
        for (tenant, names) in by_tenant {
            for names in names.chunks(acts::MAX_ITEMS) {
                let done = held.len();
                let results = self.hold(&tenant, names.to_vec(), reason).await.map_err(|error| match error {
                    OfficeError::Store { done: more, source, .. } => {
                        OfficeError::Store { done: done + more, total, source }
                    }
                    other => other,
                })?;
                held.extend(names.iter().zip(results).map(|(name, result)| (tenant.clone(), name.clone(), result)));
            }
        }
        Ok(held)
    }

    async fn all_destinations(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<BTreeMap<TenantId, Vec<DestinationName>>, OfficeError> {
        let mut found: BTreeMap<TenantId, Vec<DestinationName>> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.read.destinations(tenant.cloned(), after, limits::MAX_PAGE).await;
            let page = page.map_err(store_error(0, 0))?;
            let full = page.len() == limits::MAX_PAGE;
            after = page.last().map(|last| (last.destination.spec.tenant.clone(), last.destination.spec.name.clone()));
            for view in page {
                found.entry(view.destination.spec.tenant).or_default().push(view.destination.spec.name);
            }
            if !full {
                return Ok(found);
            }
        }
    }

    async fn act_on_destinations(
        &self,
        name: &'static str,
        authority: Authority,
        tenant: &TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        reason: Option<ActText>,
    ) -> Result<Vec<ActResult>, OfficeError> {
        check_items(name, &destinations, acts::MAX_ITEMS)?;
        for destination in &destinations {
            self.permit(name, authority, tenant, Some(destination))?;
        }
        let total = destinations.len();
        let mut results = Vec::with_capacity(total);
        for chunk in destinations.chunks(acts::ITEMS_PER_EVENT) {
            let detail = BTreeMap::from([("items", chunk.len().to_string())]);
            let audit = self.event(name, tenant, chunk, reason.clone(), detail);
            let answer = self.store.act_on_destinations(tenant.clone(), chunk.to_vec(), act.clone(), audit).await;
            results.extend(answer.map_err(store_error(results.len(), total))?);
        }
        Ok(results)
    }
}

/// What is allowed for a destination but worth a look, in a sentence: its retries outlive its deduplication window, so
/// that an unanswered send late in the schedule is dead-lettered instead of repeated (I-10).
pub fn advice(spec: &DestinationSpec) -> Option<String> {
    let Duplicates::Deduplicated { window } = spec.duplicates else { return None };
    let last = spec.policy.schedule.last().copied().unwrap_or_default();
    let delays = spec.policy.schedule.iter().copied().chain(core::iter::repeat(last));
    // The first attempt waits for nothing; beyond a thousand the sum has outgrown every window that is allowed.
    let waits = spec.policy.max_retry_attempts.saturating_sub(1).min(1_000) as usize;
    let total: Duration = delays.take(waits).map(|delay| delay.max(spec.policy.retry_delay)).sum();
    (total > window).then(|| {
        format!(
            "destination `{}` of tenant `{}`: its {waits} retries take {} s and its deduplication window is {} s: a \
             send without an answer after the window is dead-lettered, not repeated",
            spec.name,
            spec.tenant,
            total.as_secs(),
            window.as_secs()
        )
    })
}

fn check_spec(spec: &DestinationSpec) -> Result<(), OfficeError> {
    let destination = &spec.name;
    let invalid = |field, rule| OfficeError::DestinationInvalid { destination: destination.clone(), field, rule };
    let check = |ok: bool, field, rule| if ok { Ok(()) } else { Err(invalid(field, rule)) };
    spec.policy
        .validate()
        .map_err(|problem| OfficeError::PolicyInvalid { destination: destination.clone(), problem })?;
    let kind_ok = !spec.emitter.is_empty()
        && spec.emitter.len() <= limits::MAX_NAME_BYTES
        && spec.emitter.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    check(kind_ok, "`emitter`", "must be 1 to 64 bytes of a-z, 0-9, `.`, `_`, `-`")?;
    check(spec.settings.len() <= MAX_SETTINGS_BYTES, "`settings`", "must be at most 64 KiB")?;
    if let Duplicates::Deduplicated { window } = spec.duplicates {
        check(
            !window.is_zero() && window <= MAX_DURATION,
            "`duplicates`",
            "must have a window of more than zero and at most 366 days",
        )?;
    }
    if let Some(pace) = spec.pace {
        check(pace.per_minute >= 1, "`pace.per_minute`", "must be at least 1: use a hold to stop a destination")?;
        check(pace.burst >= 1, "`pace.burst`", "must be at least 1")?;
    }
    check(spec.event_types.len() <= MAX_EVENT_TYPE_RULES, "`event_types`", "must have at most 256 rules")?;
    let rules: BTreeSet<&str> = spec.event_types.iter().map(dlo_core::destination::EventTypeRule::as_str).collect();
    check(rules.len() == spec.event_types.len(), "`event_types`", "must name each rule once")?;
    for (field, value) in [("`owner`", &spec.owner), ("`region`", &spec.region)] {
        let ok = value.as_ref().is_none_or(|value| {
            !value.trim().is_empty()
                && value.len() <= limits::MAX_ATTRIBUTE_BYTES
                && !value.chars().any(char::is_control)
        });
        check(ok, field, "must be 1 to 2048 bytes without control characters, or left out")?;
    }
    Ok(())
}
