//! One of ten destinations hangs: how fast are the other nine, against the nine alone?

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use dlo_core::Outcome;
use dlo_ports::{Emitter, emitter::emit_each};
use tokio::sync::Notify;

use crate::{
    bed::{self, BATCH, Counter, Options, rate},
    report::{Figure, Series, Target},
};

const SCENARIO: &str = "hanging";
const KIND: &str = "handler";
/// Destinations that answer; the last one hangs.
const ANSWERING: usize = 9;
/// How long an answer takes.
const LATENCY: Duration = Duration::from_millis(2);

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let each = options.rows(5_000);
    let folder = bed::folder();
    let [alone, company] = ["alone.db", "company.db"].map(|name| folder.path().join(name));
    for (path, destinations) in [(&alone, ANSWERING), (&company, ANSWERING + 1)] {
        bed::run(async {
            let store = bed::open(path);
            bed::apply(&store, (0..=ANSWERING).map(|number| bed::destination(number, KIND)).collect()).await;
            bed::enqueue(&store, destinations, each * destinations, BATCH).await;
        });
    }
    let mut ratio = Series::default();
    for round in 0..options.runs {
        let folder = bed::folder();
        let speed = |from: &std::path::Path, name: &str| {
            let path = folder.path().join(name);
            bed::copy(from, &path);
            bed::run(nine(path, each * ANSWERING))
        };
        let (a, b) = if round % 2 == 0 {
            let a = speed(&company, "a.db");
            (a, speed(&alone, "b.db"))
        } else {
            let b = speed(&alone, "b.db");
            (speed(&company, "a.db"), b)
        };
        ratio.push(a / b);
        eprintln!("  round {round}: beside a hanging one {a:.0}/s, alone {b:.0}/s, ratio {:.3}", a / b);
    }
    vec![Figure {
        name: "sqlite.hanging_ratio",
        value: ratio.median(),
        unit: "ratio",
        target: Target::AtLeast(0.9),
        scenario: SCENARIO,
        note: format!(
            "nine destinations with {each} entries each and answers after 2 ms, while a tenth with as many never answers, \
             against the nine without the tenth; {}{}",
            ratio.spread(),
            options.size()
        ),
    }]
}

/// Rows a second of the answering destinations.
async fn nine(path: std::path::PathBuf, count: usize) -> f64 {
    let store = bed::open(&path);
    let (done, all) = (Counter::default(), Arc::new(Notify::new()));
    let engine = bed::engine(&store, KIND, emitter(done, count as u64, Arc::clone(&all)));
    let started = Instant::now();
    let running = tokio::spawn(engine.run(core::future::pending()));
    all.notified().await;
    let span = started.elapsed();
    // The hanging emissions would use the whole shutdown grace.
    running.abort();
    let _ = running.await;
    rate(count, span)
}

fn emitter(done: Counter, count: u64, all: Arc<Notify>) -> Arc<dyn Emitter> {
    let hanging = bed::name(ANSWERING);
    emit_each(move |emission| {
        let (done, all, hangs) = (done.clone(), Arc::clone(&all), emission.destination == hanging);
        async move {
            if hangs {
                core::future::pending::<()>().await;
            }
            tokio::time::sleep(LATENCY).await;
            done.add(1);
            if done.get() == count {
                all.notify_one();
            }
            Outcome::Delivered { receipt: None }
        }
    })
}
