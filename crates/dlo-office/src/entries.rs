//! Acts on live entries: cancel, retry now, dead-letter.

use core::time::Duration;
use std::collections::BTreeMap;

use dlo_core::{DeadLetterId, EntryId, TenantId, Timestamp, dead_letter::by_operator, text::ActText};
use dlo_ports::store::{ActResult, EntryAct};

use crate::{
    Authority, Office, OfficeError, acts,
    office::{check_items, optional_reason, required_reason, store_error},
};

/// What every transaction of one act has in common.
struct Act {
    name: &'static str,
    reason: Option<ActText>,
    detail: BTreeMap<&'static str, String>,
}

impl Office {
    /// Ends live entries without delivery and without a dead letter; not while they are claimed. Results in order.
    /// Needs `dispose`.
    pub async fn cancel(
        &self,
        tenant: &TenantId,
        entries: &[EntryId],
        reason: &str,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = Some(required_reason(acts::CANCEL, reason)?);
        self.permit_entries(acts::CANCEL, Authority::Dispose, tenant, entries).await?;
        let items = entries.iter().map(|entry| (*entry, EntryAct::Cancel)).collect();
        self.act_on_entries(tenant, items, Act { name: acts::CANCEL, reason, detail: BTreeMap::new() }).await
    }

    /// Makes live entries due, at most `per_minute` of them a minute in the order given: the first at once, so that a
    /// release of many does not fall on a destination all at once. Out of manual review it starts a new generation.
    /// Not while they are claimed. Results in order. Needs `execute`.
    pub async fn retry_now(
        &self,
        tenant: &TenantId,
        entries: &[EntryId],
        per_minute: u32,
        reason: Option<&str>,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = optional_reason(acts::RETRY_NOW, reason)?;
        if !(1..=acts::MAX_RETRIES_PER_MINUTE).contains(&per_minute) {
            return Err(OfficeError::PaceInvalid { seen: per_minute, limit: acts::MAX_RETRIES_PER_MINUTE });
        }
        self.permit_entries(acts::RETRY_NOW, Authority::Execute, tenant, entries).await?;
        let due = paced(self.env.now(), per_minute);
        let items = entries.iter().zip(due).map(|(entry, due)| (*entry, EntryAct::RetryNow { due })).collect();
        let detail = BTreeMap::from([("per_minute", per_minute.to_string())]);
        self.act_on_entries(tenant, items, Act { name: acts::RETRY_NOW, reason, detail }).await
    }

    /// Puts entries in manual review into quarantine. The dead letter keeps the failure that set the entry aside,
    /// and has the reason as its message.
    /// Results in order. Needs `triage`.
    pub async fn dead_letter(
        &self,
        tenant: &TenantId,
        entries: &[EntryId],
        reason: &str,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let reason = required_reason(acts::DEAD_LETTER, reason)?;
        self.permit_entries(acts::DEAD_LETTER, Authority::Triage, tenant, entries).await?;
        let mut items = Vec::with_capacity(entries.len());
        for entry in entries {
            let found = self.read.entry(tenant.clone(), *entry).await.map_err(store_error(0, entries.len()))?;
            if let Some(view) = found {
                let id = DeadLetterId::new(self.env.now(), self.random());
                let draft = by_operator(id, view.last_failure.as_ref(), &view.summary.destination, &reason);
                items.push((*entry, EntryAct::DeadLetter(Box::new(draft))));
            }
        }
        let found: Vec<EntryId> = items.iter().map(|(entry, _)| *entry).collect();
        let act = Act { name: acts::DEAD_LETTER, reason: Some(reason), detail: BTreeMap::new() };
        let results: BTreeMap<EntryId, ActResult> =
            found.into_iter().zip(self.act_on_entries(tenant, items, act).await?).collect();
        Ok(entries.iter().map(|entry| results.get(entry).cloned().unwrap_or(ActResult::Missing)).collect())
    }

    async fn act_on_entries(
        &self,
        tenant: &TenantId,
        items: Vec<(EntryId, EntryAct)>,
        act: Act,
    ) -> Result<Vec<ActResult>, OfficeError> {
        let total = items.len();
        let mut results = Vec::with_capacity(total);
        for chunk in items.chunks(acts::ITEMS_PER_EVENT) {
            let entries: Vec<EntryId> = chunk.iter().map(|(entry, _)| *entry).collect();
            let mut detail = act.detail.clone();
            detail.insert("items", entries.len().to_string());
            let audit = self.event(act.name, tenant, &entries, act.reason.clone(), detail);
            let answer = self.store.act_on_entries(tenant.clone(), chunk.to_vec(), audit).await;
            results.extend(answer.map_err(store_error(results.len(), total))?);
        }
        Ok(results)
    }

    /// Checks the items, and the authority: in the whole tenant, or else for the destination of each entry. Ids that
    /// are not there give nothing away, since the answer is the same as for a destination out of scope.
    async fn permit_entries(
        &self,
        act: &'static str,
        authority: Authority,
        tenant: &TenantId,
        entries: &[EntryId],
    ) -> Result<(), OfficeError> {
        check_items(act, entries, acts::MAX_ITEMS)?;
        if self.permit(act, authority, tenant, None).is_ok() {
            return Ok(());
        }
        if !self.holds_somewhere(authority, tenant) {
            return Err(self.forbidden(act, authority, tenant));
        }
        for entry in entries {
            let found = self.read.entry(tenant.clone(), *entry).await.map_err(store_error(0, entries.len()))?;
            let destination = found.map(|view| view.summary.destination);
            self.permit(act, authority, tenant, destination.as_ref())?;
        }
        Ok(())
    }
}

/// Due times from `start`, `per_minute` to a minute, without end.
fn paced(start: Timestamp, per_minute: u32) -> impl Iterator<Item = Timestamp> {
    (0_u64..).map(move |index| start.after(Duration::from_micros(index * 60_000_000 / u64::from(per_minute))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_spread_by_the_minute() {
        let start = Timestamp::from_micros(1_000_000);
        let due: Vec<_> = paced(start, 30).take(31).map(|due| due.since(start).as_secs()).collect();
        assert_eq!(due[..3], [0, 2, 4]);
        assert_eq!(due[30], 60);
    }
}
