//! Destinations: applied versions and holds by people.

use dlo_core::{
    AuditEvent, Destination, DestinationName, DestinationSpec, Health, TenantId, health::ManualHold, limits::MAX_PAGE,
};
use dlo_ports::{
    StoreError,
    store::{ActResult, Applied, AppliedChange, HoldAct},
};

use super::{Transaction, bounded, state::DestinationRow};

impl Transaction<'_> {
    pub(super) fn apply_destinations(
        &mut self,
        specs: Vec<DestinationSpec>,
        audit: AuditEvent,
    ) -> Result<Vec<Applied>, StoreError> {
        bounded("number of destinations to apply", specs.len(), 0, MAX_PAGE)?;
        self.record(audit);
        Ok(specs.into_iter().map(|spec| self.apply_one(spec)).collect())
    }

    fn apply_one(&mut self, spec: DestinationSpec) -> Applied {
        let applied = self.now;
        let name = spec.name.clone();
        match self.state.destinations.get_mut(&(spec.tenant.clone(), name.clone())) {
            None => {
                let key = (spec.tenant.clone(), name.clone());
                let row = DestinationRow::new(Destination { spec, version: 1, applied });
                self.state.destinations.insert(key, row);
                Applied { destination: name, version: 1, change: AppliedChange::Created }
            }
            Some(row) if row.destination.spec == spec => {
                Applied { destination: name, version: row.destination.version, change: AppliedChange::Unchanged }
            }
            Some(row) => {
                let version = row.destination.version + 1;
                row.destination = Destination { spec, version, applied };
                Applied { destination: name, version, change: AppliedChange::Updated }
            }
        }
    }

    pub(super) fn act_on_destinations(
        &mut self,
        tenant: &TenantId,
        destinations: &[DestinationName],
        act: &HoldAct,
        audit: AuditEvent,
    ) -> Result<Vec<ActResult>, StoreError> {
        bounded("number of destinations to act on", destinations.len(), 0, MAX_PAGE)?;
        let actor = audit.actor.name.clone();
        self.record(audit);
        Ok(destinations.iter().map(|name| self.act_on_destination(tenant, name, act, &actor)).collect())
    }

    fn act_on_destination(
        &mut self,
        tenant: &TenantId,
        name: &DestinationName,
        act: &HoldAct,
        actor: &str,
    ) -> ActResult {
        let since = self.now;
        let Some(row) = self.state.destinations.get_mut(&(tenant.clone(), name.clone())) else {
            return ActResult::Missing;
        };
        let changed: Option<Health> = match act {
            HoldAct::Hold { reason } => {
                row.health.hold_by_person(ManualHold { since, actor: actor.to_owned(), reason: reason.clone() })
            }
            HoldAct::Release => row.health.release(),
            HoldAct::Probe if !row.health.is_held() => return ActResult::WrongState("open"),
            HoldAct::Probe => row.health.request_probe(),
        };
        match changed {
            Some(health) => {
                row.save_health(health);
                ActResult::Done
            }
            None => ActResult::Unchanged,
        }
    }
}
