//! Opening, the builder, and what the facade wires together.

use std::path::PathBuf;
use std::sync::Arc;

use dlo::config::Overrides;
use dlo::core::{Destination, DestinationSpec, Duplicates, EngineOptions, Outcome, Payload, Timestamp};
use dlo::engine::Until;
use dlo::office::{Grants, local_actor};
use dlo::ports::emitter::emit_each;
use dlo::ports::env::EmitterError;
use dlo::ports::store::{EnqueueAnswer, Refusal};
use dlo::{Config, OpenMode, Outbox, Registry};

fn spec(name: &str, emitter: &str) -> DestinationSpec {
    DestinationSpec::new(name.parse().unwrap(), emitter, Duplicates::Tolerated)
}

fn config(path: PathBuf) -> Config {
    let overrides = Overrides::default().set("store.path", "--store", path.to_string_lossy());
    // A folder without a configuration file of its own.
    let empty = path.parent().unwrap().join("empty.toml");
    std::fs::write(&empty, "").unwrap();
    Config::load(Some(&empty), &|_| None, &overrides).unwrap()
}

#[tokio::test]
async fn an_existing_store_is_asked_for_and_its_absence_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path().join("missing.db"));
    let error = Outbox::open(&config, Registry::builtin(), OpenMode::Existing).await.err().unwrap();
    assert_eq!(error.code(), "store.unavailable");
    assert!(error.to_string().contains("missing.db") && error.to_string().contains("dlo init"), "{error}");
    assert!(!config.store.path.exists());
    Outbox::open(&config, Registry::builtin(), OpenMode::Create).await.unwrap();
    Outbox::open(&config, Registry::builtin(), OpenMode::Existing).await.unwrap();
}

#[tokio::test]
async fn opening_with_destinations_applies_them_once() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let file = folder.path().join("dlo.db");
        Outbox::builder().sqlite(file).destination(spec("a", "noop")).destination(spec("b", "pigeon")).open()
    };
    open().await.unwrap();
    let outbox = open().await.unwrap();
    let views = outbox.reader().destinations(None, None, 10).await.unwrap();
    let versions: Vec<_> =
        views.iter().map(|view| (view.destination.spec.name.as_str(), view.destination.version)).collect();
    assert_eq!(versions, [("a", 1), ("b", 1)]);
}

#[tokio::test]
async fn settings_that_an_emitter_refuses_never_reach_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dlo.db");
    let mut webhook = spec("hook", "webhook");
    webhook.settings = r#"{"url": "http://169.254.169.254/"}"#.to_owned();
    let error = Outbox::builder().sqlite(&file).destination(spec("a", "noop")).destination(webhook).open().await;
    assert_eq!(error.err().unwrap().code(), "office.settings_invalid");
    let outbox = Outbox::builder().sqlite(&file).open().await.unwrap();
    assert!(outbox.reader().destinations(None, None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_emitter_is_made_by_its_kind_for_each_destination() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::builder()
        .sqlite(folder.path().join("dlo.db"))
        .emitter("picky", |destination: &Destination| match destination.spec.settings.as_str() {
            "{}" => Ok(emit_each(|_| async { Outcome::Delivered { receipt: None } })),
            _ => Err(EmitterError::Settings { kind: "picky".into(), problem: "none are taken".into() }),
        })
        .destination(spec("a", "picky"))
        .open()
        .await
        .unwrap();
    let kinds: Vec<_> = outbox.registry().kinds().collect();
    assert_eq!(kinds, ["noop", "picky", "webhook"]);
    let mut bad = spec("b", "picky");
    bad.settings = r#"{"x":1}"#.to_owned();
    let error = outbox.office(local_actor("test")).apply_destinations(vec![bad]).await.unwrap_err();
    assert_eq!(error.to_string(), "destination `b`: settings of emitter `picky` are not valid: none are taken");
    outbox.enqueue(vec![outbox.item("t", Payload::None).to("a".parse().unwrap())]).await.unwrap();
    let engine = outbox.engine(EngineOptions::new("test".parse().unwrap())).unwrap();
    engine.run_until(Until::Empty, std::future::pending()).await.unwrap();
    assert_eq!(outbox.reader().stats().await.unwrap().destinations[0].delivered_total, 1);
}

#[tokio::test]
async fn an_engine_in_this_process_delivers_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let emitted = Arc::new(tokio::sync::Notify::new());
    let tell = emitted.clone();
    let outbox = Outbox::builder()
        .sqlite(folder.path().join("dlo.db"))
        .emitter("telling", move |_: &Destination| {
            let tell = tell.clone();
            Ok(emit_each(move |_| {
                tell.notify_one();
                async { Outcome::Delivered { receipt: None } }
            }))
        })
        .destination(spec("a", "telling"))
        .open()
        .await
        .unwrap();
    outbox.enqueue(vec![outbox.item("t", Payload::None).to("a".parse().unwrap())]).await.unwrap();
    let ended = outbox.run_in_process(emitted.notified()).await.unwrap();
    assert_eq!(ended, dlo::engine::Ended::Stopped);
    assert_eq!(outbox.reader().stats().await.unwrap().destinations[0].delivered_total, 1);
    assert!(outbox.reader().workers(10).await.unwrap()[0].ended.is_some());
}

#[tokio::test]
async fn enqueue_in_refuses_like_enqueue_and_leaves_the_transaction_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dlo.db");
    let outbox = Outbox::builder().sqlite(&file).open().await.unwrap();
    let item = outbox.item("t", Payload::None);
    let refused = outbox.enqueue(vec![item.clone()]).await.unwrap();
    assert!(matches!(&refused[0], EnqueueAnswer::Refused(Refusal::NoRoute { .. })), "{refused:?}");
    let mut connection = rusqlite::Connection::open(&file).unwrap();
    let transaction = connection.transaction().unwrap();
    transaction.execute_batch("CREATE TABLE kept (id)").unwrap();
    assert_eq!(outbox.enqueue_in(&transaction, &[item]).unwrap(), refused);
    transaction.commit().unwrap();
    connection.execute("INSERT INTO kept VALUES (1)", []).unwrap();
}

#[tokio::test]
async fn an_office_for_a_worker_may_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::builder().sqlite(folder.path().join("dlo.db")).open().await.unwrap();
    let office = outbox.office_with(local_actor("worker"), Grants::worker());
    assert_eq!(office.apply_destinations(vec![spec("a", "noop")]).await.unwrap_err().code(), "office.forbidden");
}

#[test]
fn ids_of_items_are_fresh_and_the_clock_is_the_system_s() {
    let env = dlo::ProcessEnv::new(Registry::empty());
    use dlo::ports::{Clock, Env};
    let (mut a, mut b) = ([0; 16], [0; 16]);
    env.random(&mut a);
    env.random(&mut b);
    assert_ne!(a, b);
    let built: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    assert!(env.now() > built.before(std::time::Duration::from_hours(24 * 366)), "microseconds, not another unit");
}
