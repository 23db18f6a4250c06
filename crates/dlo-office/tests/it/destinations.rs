//! Acts on destinations: apply, hold, release, probe, hold all.

use std::sync::Arc;

use dlo_core::{DestinationName, Duplicates, TenantId, destination::Pace};
use dlo_office::{OfficeError, acts};
use dlo_ports::env::EmitterError;
use dlo_ports::store::{ActResult, AppliedChange, DrainStore, ReadStore};

use crate::desk::{Desk, name, spec};

#[tokio::test]
async fn apply_makes_destinations_and_audits_each_tenant() {
    let desk = Desk::new();
    let specs = vec![
        spec("default", "a", Duplicates::Tolerated),
        spec("acme", "a", Duplicates::Harmful),
        spec("default", "b", Duplicates::Tolerated),
    ];
    let report = desk.office.apply_destinations(specs.clone()).await.unwrap();
    assert_eq!(report.applied.len(), 3);
    assert!(report.applied.iter().all(|(_, applied)| applied.change == AppliedChange::Created));
    let again = desk.office.apply_destinations(specs).await.unwrap();
    assert!(again.applied.iter().all(|(_, applied)| applied.change == AppliedChange::Unchanged));
    let page = dlo_ports::store::PageRequest { after: None, limit: 10 };
    let events = desk.store.audit_events(None, page).await.unwrap().rows;
    let first: Vec<_> = events.iter().rev().take(2).map(|e| (e.tenant.as_str(), e.target.as_str())).collect();
    assert_eq!(first, [("acme", "a"), ("default", "a b")]);
    assert!(events.iter().all(|event| event.actor == "local:alice" && event.strength == "asserted"));
}

#[tokio::test]
async fn apply_refuses_before_anything_is_saved() {
    let desk = Desk::new();
    let good = spec("default", "good", Duplicates::Tolerated);
    let bad = |change: fn(&mut dlo_core::DestinationSpec)| {
        let mut bad = spec("default", "bad", Duplicates::Tolerated);
        change(&mut bad);
        bad
    };
    let window = |seconds| Duplicates::Deduplicated { window: core::time::Duration::from_secs(seconds) };
    for (bad, code) in [
        (bad(|s| s.policy.page = 0), "office.policy_invalid"),
        (bad(|s| s.emitter = "Web Hook".to_owned()), "office.destination_invalid"),
        (bad(|s| s.settings = "x".repeat(100_000)), "office.destination_invalid"),
        (bad(|s| s.pace = Some(Pace { per_minute: 0, burst: 1 })), "office.destination_invalid"),
        (bad(|s| s.owner = Some(" ".to_owned())), "office.destination_invalid"),
        (bad(|s| s.event_types = vec!["a".parse().unwrap(), "a".parse().unwrap()]), "office.destination_invalid"),
        (spec("default", "bad", window(0)), "office.destination_invalid"),
        (spec("default", "good", Duplicates::Harmful), "office.duplicate_item"),
    ] {
        let error = desk.office.apply_destinations(vec![good.clone(), bad]).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(desk.store.destinations(None, None, 10).await.unwrap().is_empty());
    }
    assert_eq!(desk.office.apply_destinations(Vec::new()).await.unwrap_err().code(), "office.no_items");
}

#[tokio::test]
async fn emitters_check_settings_and_unknown_kinds_are_warnings() {
    let desk = Desk::new();
    let office = desk.office_with(dlo_office::Grants::operator()).with_settings_check(Arc::new(|spec| {
        match spec.emitter.as_str() {
            "noop" => Ok(()),
            "strict" => Err(EmitterError::Settings { kind: "strict".into(), problem: "`url` is required".into() }),
            kind => Err(EmitterError::UnknownKind { kind: kind.to_owned() }),
        }
    }));
    let of = |kind: &str| {
        let mut spec = spec("default", "x", Duplicates::Tolerated);
        spec.emitter = kind.to_owned();
        vec![spec]
    };
    assert_eq!(office.apply_destinations(of("strict")).await.unwrap_err().code(), "office.settings_invalid");
    assert!(office.apply_destinations(of("noop")).await.unwrap().warnings.is_empty());
    let report = office.apply_destinations(of("pigeon")).await.unwrap();
    assert_eq!((report.applied.len(), report.warnings.len()), (1, 1));
    assert!(report.warnings[0].contains("`pigeon`"), "{:?}", report.warnings);
}

#[tokio::test]
async fn retries_that_outlive_the_deduplication_window_are_a_warning() {
    let desk = Desk::new();
    let minutes = |minutes| Duplicates::Deduplicated { window: core::time::Duration::from_mins(minutes) };
    // The default schedule waits 1 + 5 + 25 + 125 minutes.
    let report = desk.office.apply_destinations(vec![spec("default", "a", minutes(156))]).await.unwrap();
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    let report = desk.office.apply_destinations(vec![spec("default", "a", minutes(155))]).await.unwrap();
    assert!(report.warnings[0].contains("its 4 retries take 9360 s"), "{:?}", report.warnings);
}

#[tokio::test]
async fn hold_and_release_change_and_audit_in_one_act() {
    let desk = Desk::with(&["a", "b"]).await;
    let held = desk.office.hold(&desk.tenant, vec![name("a"), name("gone")], "provider is down").await.unwrap();
    assert_eq!(held, [ActResult::Done, ActResult::Missing]);
    let health = desk.store.destination(desk.tenant.clone(), name("a")).await.unwrap().unwrap().1;
    let manual = health.manual.unwrap();
    assert_eq!((manual.actor.as_str(), manual.reason.as_str()), ("local:alice", "provider is down"));
    desk.office.probe(&desk.tenant, vec![name("a")], None).await.unwrap();
    let released = desk.office.release(&desk.tenant, vec![name("a")], "provider is back").await.unwrap();
    assert_eq!(released, [ActResult::Done]);
    let acts: Vec<_> = desk.audit().await.into_iter().map(|event| (event.act, event.target)).collect();
    let expected = [(acts::HOLD, "a gone"), (acts::PROBE, "a"), (acts::RELEASE, "a")];
    assert_eq!(acts, expected.map(|(act, target)| (act.to_owned(), target.to_owned())));
}

#[tokio::test]
async fn reasons_are_required_and_bounded() {
    let desk = Desk::with(&["a"]).await;
    for reason in ["", " \t"] {
        let hold = desk.office.hold(&desk.tenant, vec![name("a")], reason).await.unwrap_err();
        let release = desk.office.release(&desk.tenant, vec![name("a")], reason).await.unwrap_err();
        let probe = desk.office.probe(&desk.tenant, vec![name("a")], Some(reason)).await.unwrap_err();
        let all = desk.office.hold_all(None, reason).await.unwrap_err();
        assert_eq!([hold, release, probe, all].map(|e| e.code()), ["office.reason_blank"; 4]);
    }
    let long = desk.office.hold(&desk.tenant, vec![name("a")], &"x".repeat(3_000)).await.unwrap_err();
    assert_eq!(long.to_string(), "the reason has 3000 bytes: at most 2048 are kept");
    assert!(desk.audit().await.is_empty(), "what is refused leaves no event");
}

#[tokio::test]
async fn hold_all_holds_every_destination_of_every_tenant() {
    let desk = Desk::new();
    let names: Vec<String> = (0..250).map(|at| format!("d{at:03}")).collect();
    let specs = |tenant: &str| names.iter().map(|n| spec(tenant, n, Duplicates::Tolerated)).collect::<Vec<_>>();
    desk.office.apply_destinations(specs("default")).await.unwrap();
    desk.office.apply_destinations(specs("acme")).await.unwrap();
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(desk.office.hold_all(Some(&acme), "stop").await.unwrap().len(), 250);
    let held = desk.office.hold_all(None, "stop everything").await.unwrap();
    assert_eq!(held.len(), 500);
    let done = held.iter().filter(|(tenant, _, result)| *tenant != acme && *result == ActResult::Done).count();
    assert_eq!(done, 250);
    let views = desk.store.destinations(None, None, 1_000).await.unwrap();
    assert!(views.iter().all(|view| view.health.is_held()));
    let named: usize = desk.audit().await.iter().map(|event| event.target.split(' ').count()).sum();
    assert_eq!(named, 750, "every event names each of its items");
}

#[tokio::test]
async fn items_are_counted_and_named_once() {
    let desk = Desk::with(&["a"]).await;
    let hold = |names: Vec<DestinationName>| desk.office.hold(&desk.tenant, names, "stop");
    assert_eq!(hold(Vec::new()).await.unwrap_err().code(), "office.no_items");
    let twice = hold(vec![name("a"), name("b"), name("a")]).await.unwrap_err();
    assert!(matches!(twice, OfficeError::DuplicateItem { ref item, .. } if item == "a"), "{twice}");
    let many = (0..=acts::MAX_ITEMS).map(|at| name(&format!("d{at}"))).collect();
    assert_eq!(hold(many).await.unwrap_err().code(), "office.too_many_items");
}
