//! A host application writes to the same file, from a process of its own, while we enqueue and drain at full speed.

use core::time::Duration;
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dlo_core::Outcome;
use dlo_ports::{emitter::emit_each, store::EnqueueStore};
use rusqlite::{Connection, TransactionBehavior};

use crate::{
    bed::{self, BATCH, Counter, Options},
    report::{Figure, Series, Target, percentile},
};

const SCENARIO: &str = "host";
const KIND: &str = "handler";
/// Time between the application's writes.
const EVERY: Duration = Duration::from_millis(5);

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let seconds = if options.small { 2 } else { 6 };
    let (mut wait, mut whole, mut rate) = (Series::default(), Series::default(), Series::default());
    for round in 0..options.runs {
        let (waits, wholes, drained) = round_of(seconds);
        eprintln!(
            "  round {round}: lock p99 {waits:.1} ms, transaction p99 {wholes:.1} ms, we drain {drained:.0}/s beside it"
        );
        wait.push(waits);
        whole.push(wholes);
        rate.push(drained);
    }
    let setting = format!(
        "a process with its own connection and SQLite's own busy handler writes a row every 5 ms for {seconds} s with BEGIN \
         IMMEDIATE, while we enqueue in batches of {BATCH} and drain, default settings; we drain {:.0}/s meanwhile",
        rate.median()
    );
    vec![
        Figure {
            name: "sqlite.host_p99_ms",
            value: wait.median(),
            unit: "ms",
            target: Target::AtMost(50.0),
            scenario: SCENARIO,
            note: format!("wait for the write lock; {setting}; {}", wait.spread()),
        },
        Figure {
            name: "sqlite.host_transaction_p99_ms",
            value: whole.median(),
            unit: "ms",
            target: Target::None,
            scenario: SCENARIO,
            note: format!("the application's whole transaction, its own commit included; {}", whole.spread()),
        },
    ]
}

fn round_of(seconds: u64) -> (f64, f64, f64) {
    let folder = bed::folder();
    let path = folder.path().join("host.db");
    bed::run(async {
        let store = bed::open(&path);
        bed::apply(&store, vec![bed::destination(0, KIND)]).await;
        let done = Counter::default();
        let counted = done.clone();
        let emitter = emit_each(move |_| {
            counted.add(1);
            core::future::ready(Outcome::Delivered { receipt: None })
        });
        let engine = bed::engine(&store, KIND, emitter);
        let handle = engine.handle();
        let running = tokio::spawn(engine.run(core::future::pending()));
        let stop = Arc::new(AtomicBool::new(false));
        let producing = tokio::spawn(produce(Arc::clone(&store), Arc::clone(&stop), done.clone()));
        let mut host = bed::child(&["child-host", path.to_str().expect("UTF-8"), &seconds.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child starts");
        let started = Instant::now();
        let before = done.get();
        let text = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            host.stdout.take().expect("piped").read_to_string(&mut text).expect("the child prints");
            assert!(host.wait().expect("the child ends").success());
            text
        })
        .await
        .expect("reading does not panic");
        let drained = (done.get() - before) as f64 / started.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        producing.await.expect("the producer does not panic");
        handle.stop();
        running.await.expect("the engine does not panic").expect("the engine runs");
        let value: serde_json::Value = serde_json::from_str(&text).expect("the child prints JSON");
        let number = |name: &str| value[name].as_f64().expect("a number");
        (number("lock_p99_ms"), number("transaction_p99_ms"), drained)
    })
}

/// Enqueues without a pause, and waits only when it is far ahead of the engine.
async fn produce(store: Arc<dlo_sqlite::SqliteStore>, stop: Arc<AtomicBool>, done: Counter) {
    let name = bed::name(0);
    let mut from = 0;
    while !stop.load(Ordering::Relaxed) {
        if from as u64 > done.get() + 50_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let items = (from..from + BATCH).map(|number| bed::item(number, &name)).collect();
        from += BATCH;
        store.enqueue(items).await.expect("an enqueue works");
    }
}

/// `PATH SECONDS`: the application.
pub(crate) fn application(arguments: &[String]) {
    let span = Duration::from_secs(arguments[1].parse().expect("a number"));
    let mut conn = Connection::open(&arguments[0]).expect("the file opens");
    conn.busy_timeout(Duration::from_secs(30)).expect("a timeout is taken");
    conn.execute_batch(
        "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS app_order (id INTEGER PRIMARY KEY, note TEXT)",
    )
    .expect("the table is made");
    let (mut waits, mut wholes) = (Vec::new(), Vec::new());
    let started = Instant::now();
    while started.elapsed() < span {
        let begun = Instant::now();
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction starts");
        waits.push(begun.elapsed().as_secs_f64() * 1e3);
        tx.execute("INSERT INTO app_order (note) VALUES ('an order')", []).expect("a row is saved");
        tx.commit().expect("a commit works");
        wholes.push(begun.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(EVERY);
    }
    println!(
        "{{\"lock_p99_ms\":{},\"transaction_p99_ms\":{},\"writes\":{}}}",
        percentile(&mut waits, 0.99),
        percentile(&mut wholes, 0.99),
        waits.len()
    );
}
