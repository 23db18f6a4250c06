//! effectum 0.7.0 as shipped: `synchronous=normal`, its own journal mode. One scenario per call, one JSON line out.
//!
//! `bench-effectum enqueue|drain|failing N BATCH`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use effectum::{Job, JobRunner, Queue, RunningJob, Worker};

/// Batches that the producer has under way at once, as in the other programs.
const IN_FLIGHT: usize = 2;

/// What is not done by then is not waited for.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Context {
    runs: AtomicU64,
    fail: bool,
}

async fn handle(_job: RunningJob, context: Arc<Context>) -> Result<(), String> {
    context.runs.fetch_add(1, Ordering::Relaxed);
    if context.fail { Err("refused".to_owned()) } else { Ok(()) }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (scenario, count, batch) =
        (arguments[1].as_str(), arguments[2].parse::<usize>().unwrap(), arguments[3].parse::<usize>().unwrap());
    let folder = tempfile::Builder::new()
        .prefix("bench-effectum")
        .tempdir_in(std::env::var("BENCH_DIR").unwrap_or(".".into()))
        .unwrap();
    let queue = Arc::new(Queue::new(&folder.path().join("queue.db")).await.unwrap());
    let started = Instant::now();
    let mut left = count;
    let mut flying = std::collections::VecDeque::new();
    while left > 0 || !flying.is_empty() {
        if left > 0 && flying.len() < IN_FLIGHT {
            let jobs: Vec<Job> = (0..left.min(batch)).map(job).collect();
            left -= jobs.len();
            let queue = Arc::clone(&queue);
            flying.push_back(tokio::spawn(async move { queue.add_jobs(jobs).await.unwrap() }));
        } else if let Some(next) = flying.pop_front() {
            next.await.unwrap();
        }
    }
    let enqueue = started.elapsed();
    if scenario == "enqueue" {
        return report(scenario, count as u64, enqueue);
    }
    let fail = scenario == "failing";
    let goal = if fail { count as u64 * 5 } else { count as u64 };
    let context = Arc::new(Context { runs: AtomicU64::new(0), fail });
    let started = Instant::now();
    let worker = Worker::builder(&queue, Arc::clone(&context))
        .min_concurrency(100)
        .max_concurrency(200)
        .jobs([JobRunner::builder("event", handle).build()])
        .build()
        .await
        .unwrap();
    while context.runs.load(Ordering::Relaxed) < goal && started.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    report(scenario, context.runs.load(Ordering::Relaxed), started.elapsed());
    let _ = worker.unregister(Some(Duration::from_secs(5))).await;
}

fn job(number: usize) -> Job {
    Job::builder("event")
        .payload(payload(number))
        .max_retries(4)
        .backoff_initial_interval(Duration::from_millis(1))
        .backoff_multiplier(1.0)
        .backoff_randomization(0.0)
        .build()
}

fn payload(number: usize) -> Vec<u8> {
    format!(
        "{{\"order_id\":{number},\"customer\":\"c-{}\",\"event\":\"order.placed\",\"amount_cents\":{},\"note\":\"{}\"}}",
        number % 1000,
        number * 7 % 100_000,
        "x".repeat(200)
    )
    .into_bytes()
}

fn report(scenario: &str, done: u64, span: Duration) {
    println!(
        "{{\"peer\":\"effectum\",\"scenario\":\"{scenario}\",\"done\":{done},\"seconds\":{}}}",
        span.as_secs_f64()
    );
}
