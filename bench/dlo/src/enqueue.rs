//! Enqueue through the public verb against the bare loop, and single items with and without company.

use std::sync::Arc;
use std::time::Instant;

use dlo_core::NewEntry;
use dlo_ports::store::EnqueueStore;

use crate::{
    bare,
    bed::{self, BATCH, Options, metered, rate},
    report::{Figure, Series, Target},
};

const SCENARIO: &str = "enqueue";

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let count = options.rows(100_000);
    let singles = options.rows(2_000);
    let items: Vec<NewEntry> = (0..count).map(|number| bed::item(number, &bed::name(0))).collect();
    let rows = bare::rows_of(&items);
    drop(items);
    let (mut ours, mut reference, mut ratio, mut cpu) =
        (Series::default(), Series::default(), Series::default(), Series::default());
    let (mut alone, mut together) = (Series::default(), Series::default());
    for round in 0..options.runs {
        let folder = bed::folder();
        let product = || {
            bed::run(async {
                let store = bed::open(&folder.path().join("ours.db"));
                bed::apply(&store, vec![bed::destination(0, "noop")]).await;
                rate(count, bed::enqueue(&store, 1, count, BATCH).await)
            })
        };
        let loops = || {
            let mut conn = bare::open(&folder.path().join("bare.db"));
            rate(count, bare::enqueue(&mut conn, &rows, BATCH))
        };
        // Who goes first changes with every round.
        let ((a, used), (b, bare_used)) = if round % 2 == 0 {
            let a = metered(count, product);
            (a, metered(count, loops))
        } else {
            let b = metered(count, loops);
            (metered(count, product), b)
        };
        cpu.push(used / bare_used);
        ours.push(a);
        reference.push(b);
        ratio.push(a / b);
        alone.push(single(&folder.path().join("alone.db"), singles / 4, 1));
        together.push(single(&folder.path().join("together.db"), singles * 4, 64));
        eprintln!("  round {round}: ours {a:.0}/s {used:.2} us, bare {b:.0}/s {bare_used:.2} us, ratio {:.3}", a / b);
    }
    let setting = format!("{count} entries of 300 bytes, batch {BATCH}, WAL and FULL{}", options.size());
    let figure =
        |name, value, unit, target, note: String| Figure { name, value, unit, target, scenario: SCENARIO, note };
    vec![
        figure(
            "sqlite.enqueue_ratio",
            ratio.median(),
            "ratio",
            Target::AtLeast(0.6),
            format!(
                "{setting}; {}; processor time of all threads {:.2} times the loop's",
                ratio.spread(),
                cpu.median()
            ),
        ),
        figure("sqlite.enqueue_per_second", ours.median(), "entries/s", Target::None, setting.clone()),
        figure("sqlite.enqueue_bare_per_second", reference.median(), "entries/s", Target::None, setting),
        figure(
            "sqlite.enqueue_single_per_second",
            alone.median(),
            "commits/s",
            Target::None,
            "one caller, one item a call, each waits for its commit".to_owned(),
        ),
        figure(
            "sqlite.enqueue_single_64_callers_per_second",
            together.median(),
            "items/s",
            Target::None,
            "64 callers, one item a call: group commit".to_owned(),
        ),
    ]
}

/// Items a second when `callers` enqueue one at a time.
fn single(path: &std::path::Path, count: usize, callers: usize) -> f64 {
    bed::run(async {
        let store = bed::open(path);
        bed::apply(&store, vec![bed::destination(0, "noop")]).await;
        let started = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    for number in (caller..count).step_by(callers) {
                        store.enqueue(vec![bed::item(number, &bed::name(0))]).await.expect("an enqueue works");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a caller does not panic");
        }
        rate(count, started.elapsed())
    })
}
