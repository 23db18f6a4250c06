//! apalis-sqlite 1.0, set durable: WAL and `synchronous=FULL` on every connection. One scenario per call, one JSON line.
//!
//! `bench-apalis-sqlite enqueue|drain|failing N BATCH`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteConnectOptions, SqlitePoolOptions, SqliteStorage};
use serde::{Deserialize, Serialize};

/// What is not done by then is not waited for.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Event {
    order_id: usize,
    customer: String,
    event: String,
    amount_cents: usize,
    note: String,
}

#[derive(Clone)]
struct Counter {
    runs: Arc<AtomicU64>,
    fail: bool,
}

async fn handle(_event: Event, counter: Data<Counter>) -> Result<(), BoxDynError> {
    counter.runs.fetch_add(1, Ordering::Relaxed);
    if counter.fail { Err("refused".into()) } else { Ok(()) }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (scenario, count, batch) =
        (arguments[1].as_str(), arguments[2].parse::<usize>().unwrap(), arguments[3].parse::<usize>().unwrap());
    let folder = tempfile::Builder::new()
        .prefix("bench-apalis")
        .tempdir_in(std::env::var("BENCH_DIR").unwrap_or(".".into()))
        .unwrap();
    let options: SqliteConnectOptions =
        format!("sqlite://{}/queue.db?mode=rwc", folder.path().display()).parse().unwrap();
    let options = options.pragma("journal_mode", "WAL").pragma("synchronous", "FULL").pragma("temp_store", "MEMORY");
    let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
    SqliteStorage::migrations().run(&pool).await.unwrap();
    let started = Instant::now();
    let mut number = 0;
    while number < count {
        let upto = count.min(number + batch);
        let items: Vec<_> = (number..upto)
            .map(|n| TaskBuilder::new(serde_json::to_vec(&event(n)).unwrap()).max_attempts(5).build())
            .collect();
        number = upto;
        let mut transaction = pool.begin().await.unwrap();
        apalis_sqlite::queries::push_tasks(&mut *transaction, "bench", &items).await.unwrap();
        transaction.commit().await.unwrap();
    }
    let enqueue = started.elapsed();
    if scenario == "enqueue" {
        return report(scenario, count as u64, enqueue);
    }
    let fail = scenario == "failing";
    let goal = if fail { count as u64 * 5 } else { count as u64 };
    let counter = Counter { runs: Arc::new(AtomicU64::new(0)), fail };
    let runs = Arc::clone(&counter.runs);
    let backend = SqliteStorage::<Event>::new(&pool)
        .with_config(Config::default().queue("bench").batch_size(500))
        .poll_with_strategy(Strategy::new().interval(Duration::from_millis(5)));
    let started = Instant::now();
    let worker = WorkerBuilder::new("bench-worker").backend(backend).data(counter).concurrency(500).build(handle);
    let task = tokio::spawn(async move { worker.run().await });
    while runs.load(Ordering::Relaxed) < goal && started.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    report(scenario, runs.load(Ordering::Relaxed), started.elapsed());
    task.abort();
}

fn event(number: usize) -> Event {
    Event {
        order_id: number,
        customer: format!("c-{}", number % 1000),
        event: "order.placed".to_owned(),
        amount_cents: number * 7 % 100_000,
        note: "x".repeat(200),
    }
}

fn report(scenario: &str, done: u64, span: Duration) {
    println!(
        "{{\"peer\":\"apalis-sqlite\",\"scenario\":\"{scenario}\",\"done\":{done},\"seconds\":{}}}",
        span.as_secs_f64()
    );
}
