//! Permission comes before everything else, and a refusal changes and audits nothing.

use dlo_core::{DeadLetterId, Duplicates, EntryId, TenantId};
use dlo_office::{Authority, Grant, Grants, OfficeError, Scope};
use dlo_ports::store::ActResult;

use crate::desk::{Desk, name, spec};

#[tokio::test]
async fn workers_and_producers_may_do_no_act() {
    let desk = Desk::with(&["a"]).await;
    let entries = desk.enqueue("a", 1).await;
    let tenant = &desk.tenant;
    for grants in [Grants::worker(), Grants::producer(tenant.clone()), Grants::default()] {
        let office = desk.office_with(grants);
        let errors = [
            office.apply_destinations(vec![spec("default", "b", Duplicates::Harmful)]).await.unwrap_err(),
            office.hold(tenant, vec![name("a")], "why").await.unwrap_err(),
            office.hold_all(None, "why").await.unwrap_err(),
            office.release(tenant, vec![name("a")], "why").await.unwrap_err(),
            office.probe(tenant, vec![name("a")], None).await.unwrap_err(),
            office.cancel(tenant, &entries, "why").await.unwrap_err(),
            office.retry_now(tenant, &entries, 60, None).await.unwrap_err(),
            office.dead_letter(tenant, &entries, "why").await.unwrap_err(),
            office.redrive(tenant, vec![DeadLetterId::from_bytes([1; 16])], "why").await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, OfficeError::Forbidden { ref actor, .. } if actor == "local:bob"), "{error}");
        }
    }
    assert!(desk.audit().await.is_empty());
}

#[tokio::test]
async fn a_grant_for_one_destination_reaches_its_entries_only() {
    let desk = Desk::with(&["a", "b"]).await;
    let of_a = desk.enqueue("a", 1).await;
    let of_b = desk.enqueue("b", 1).await;
    let scope = Scope { tenant: Some(desk.tenant.clone()), destination: Some(name("a")) };
    let office = desk.office_with(Grants::new(vec![Grant { authority: Authority::Dispose, scope }]));
    assert_eq!(office.cancel(&desk.tenant, &of_a, "why").await.unwrap(), [ActResult::Done]);
    let other = office.cancel(&desk.tenant, &of_b, "why").await.unwrap_err();
    let missing = office.cancel(&desk.tenant, &[EntryId::from_bytes([9; 16])], "why").await.unwrap_err();
    assert_eq!(other.to_string(), missing.to_string(), "an id out of scope looks like one that is not there");
    let tenant = TenantId::new("acme").unwrap();
    assert_eq!(office.cancel(&tenant, &of_a, "why").await.unwrap_err().code(), "office.forbidden");
}
