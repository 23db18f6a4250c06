//! What `dlo doctor` asks of a store: damage by another process is found, promises are those of the file.

use dlo_ports::store::{PageRequest, ReadStore};

use crate::support::{Bench, delivered, tenant};

#[tokio::test]
async fn damage_by_another_process_is_found_and_named() {
    let bench = Bench::new();
    let incarnation = bench.start(1).await;
    let entries = bench.enqueue(3).await;
    let page = bench.claim(incarnation, 1, 1).await;
    bench.settle(vec![delivered(&page.claimed[0])]).await;
    assert_eq!(bench.store.check(100).await.unwrap(), []);
    bench.other().execute("DELETE FROM dlo_entry WHERE entry = ?1", [entries[1].as_bytes()]).unwrap();
    let found = bench.store.check(100).await.unwrap();
    assert!(found.iter().all(|violation| violation.invariant == "I-01"), "{found:#?}");
    assert!(found.iter().any(|violation| violation.what.contains("default/orders")), "{found:#?}");
    assert_eq!(bench.store.check(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_store_says_what_its_commit_promises() {
    let bench = Bench::new();
    let described = bench.store.describe().await.unwrap();
    assert_eq!((described.kind, described.schema_version), ("sqlite", dlo_sqlite::SCHEMA_VERSION));
    assert!(described.location.ends_with("dlo.db"), "{}", described.location);
    assert!(described.promises.iter().any(|promise| promise.contains("flushed")), "{:?}", described.promises);
    let settings = ["synchronous", "journal_mode", "fullfsync"];
    assert!(
        described.warnings.iter().all(|warning| settings.iter().all(|setting| !warning.contains(setting))),
        "{:?}",
        described.warnings
    );
}

#[tokio::test]
async fn a_damaged_row_does_not_hide_the_others() {
    let bench = Bench::new();
    let entries = bench.enqueue(2).await;
    let set = "UPDATE dlo_entry SET status = 'unheard-of' WHERE entry = ?1";
    bench.other().execute(set, [entries[0].as_bytes()]).unwrap();
    bench.other().execute("UPDATE dlo_envelope SET refs = 0", []).unwrap();
    let found = bench.store.check(100).await.unwrap();
    assert!(found.iter().any(|violation| violation.what.contains("column `status` can't be read")), "{found:#?}");
    assert_eq!(found.iter().filter(|violation| violation.what.contains("counts 0 uses")).count(), 2, "{found:#?}");
    let page = PageRequest { after: None, limit: 10 };
    let listed = bench.store.entries(Default::default(), page).await.unwrap().rows;
    assert_eq!(listed.iter().map(|row| row.key.entry).collect::<Vec<_>>(), [entries[1]]);
    let error = bench.store.entry(tenant(), entries[0]).await.unwrap_err();
    assert_eq!(error.code(), "store.corrupt");
    assert!(error.to_string().contains("`status`") && error.to_string().contains("dlo doctor"), "{error}");
}
