//! The redrive by explicit ids.

use std::collections::BTreeMap;

use dlo_core::{DeadLetterId, RedriveId, TenantId, limits};
use dlo_ports::store::RedriveResult;

use crate::{
    Authority, Office, OfficeError, acts,
    office::{check_items, required_reason, store_error},
};

impl Office {
    /// Releases dead letters by id, at most [`limits::MAX_REDRIVE_ITEMS`]: the next generation of the same entry with
    /// the same operation key. One transaction, one audit event, a ledger row an item; results in order.
    ///
    /// An item whose last send is unanswered on a `harmful` destination, or past a window, is refused (I-10), and so is
    /// one that is not open any more (I-15); the others go on. Needs `execute`.
    pub async fn redrive(
        &self,
        tenant: &TenantId,
        items: Vec<DeadLetterId>,
        reason: &str,
    ) -> Result<(RedriveId, Vec<RedriveResult>), OfficeError> {
        let reason = required_reason(acts::REDRIVE, reason)?;
        check_items(acts::REDRIVE, &items, limits::MAX_REDRIVE_ITEMS)?;
        self.permit_dead_letters(tenant, &items).await?;
        let redrive = RedriveId::new(self.env.now(), self.random());
        let detail = BTreeMap::from([("items", items.len().to_string()), ("redrive", redrive.to_string())]);
        let audit = self.event(acts::REDRIVE, tenant, &items, Some(reason), detail);
        let total = items.len();
        let results = self.store.redrive(tenant.clone(), redrive, items, audit).await.map_err(store_error(0, total))?;
        Ok((redrive, results))
    }

    /// An actor with authority over some destinations only may touch no others; ids that are not there give nothing
    /// away, since the answer is the same.
    async fn permit_dead_letters(&self, tenant: &TenantId, items: &[DeadLetterId]) -> Result<(), OfficeError> {
        if self.permit(acts::REDRIVE, Authority::Execute, tenant, None).is_ok() {
            return Ok(());
        }
        if !self.holds_somewhere(Authority::Execute, tenant) {
            return Err(self.forbidden(acts::REDRIVE, Authority::Execute, tenant));
        }
        for id in items {
            let found = self.read.dead_letter(tenant.clone(), *id).await.map_err(store_error(0, items.len()))?;
            let destination = found.map(|view| view.dead_letter.destination);
            self.permit(acts::REDRIVE, Authority::Execute, tenant, destination.as_ref())?;
        }
        Ok(())
    }
}
