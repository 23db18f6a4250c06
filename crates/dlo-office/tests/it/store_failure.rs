//! A store that fails in the middle of an act: what was done is said, and nothing of it is undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlo_core::{AuditEvent, DeadLetterId, DestinationName, DestinationSpec, EntryId, RedriveId, TenantId};
use dlo_office::{Grants, Office, OfficeError, local_actor};
use dlo_ports::store::{ActResult, Applied, EntryAct, HoldAct, OfficeStore, RedriveResult, StoreResult};
use dlo_ports::{StoreError, StoreErrorKind};
use dlo_sim::ModelStore;

use crate::desk::Desk;

/// Passes so many calls on, then has no space.
struct FailsAfter {
    calls: AtomicUsize,
    store: Arc<ModelStore>,
}

impl FailsAfter {
    fn pass<'a, T: Send + 'static>(
        &'a self,
        verb: impl FnOnce(&'a ModelStore) -> StoreResult<'a, T>,
    ) -> StoreResult<'a, T> {
        let left = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => verb(&self.store),
            Err(_) => Box::pin(async { Err(StoreError::new(StoreErrorKind::DiskFull, "no space")) }),
        }
    }
}

impl OfficeStore for FailsAfter {
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>> {
        self.pass(|store| store.apply_destinations(specs, audit))
    }

    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.pass(|store| store.act_on_destinations(tenant, destinations, act, audit))
    }

    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>> {
        self.pass(|store| store.act_on_entries(tenant, acts, audit))
    }

    fn redrive(
        &self,
        tenant: TenantId,
        redrive: RedriveId,
        items: Vec<DeadLetterId>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<RedriveResult>> {
        self.pass(|store| store.redrive(tenant, redrive, items, audit))
    }
}

#[tokio::test]
async fn the_error_says_how_many_items_were_done_and_repeating_the_act_finishes_it() {
    let desk = Desk::with(&["a"]).await;
    let entries = desk.enqueue("a", 250).await;
    let failing = Arc::new(FailsAfter { calls: AtomicUsize::new(2), store: desk.store.clone() });
    let office = Office::new(failing, desk.store.clone(), desk.env.clone(), local_actor("alice"), Grants::operator());
    let error = office.cancel(&desk.tenant, &entries, "no longer wanted").await.unwrap_err();
    assert!(matches!(error, OfficeError::Store { done: 200, total: 250, .. }), "{error:?}");
    assert_eq!(error.code(), "store.disk_full");
    assert_eq!(desk.audit().await.len(), 2);
    let again = desk.office.cancel(&desk.tenant, &entries, "no longer wanted").await.unwrap();
    assert_eq!(again.iter().filter(|result| **result == ActResult::Done).count(), 50);
}
