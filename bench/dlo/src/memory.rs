//! Memory of a process that drains a long backlog, prepared by another process.

use std::sync::Arc;

use dlo_core::Outcome;
use dlo_ports::emitter::emit_each;

use crate::{
    bed::{self, BATCH, Counter, Options},
    report::{Figure, Target},
};

const SCENARIO: &str = "memory";
const KIND: &str = "handler";

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let count = options.rows(1_000_000);
    let folder = bed::folder();
    let path = folder.path().join("backlog.db");
    let path = path.to_str().expect("a path in UTF-8");
    let filled = bed::child(&["child-fill", path, &count.to_string()]).status().expect("a child starts");
    assert!(filled.success(), "the backlog was not prepared");
    eprintln!("  {count} entries prepared");
    let output = bed::child(&["child-drain", path, &count.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("a child starts");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the child prints JSON");
    let number = |name: &str| value[name].as_f64().expect("a number");
    let (peak, quarter, end) = (number("peak_kib") / 1024.0, number("quarter_kib"), number("end_kib"));
    eprintln!("  peak {peak:.1} MiB, at a quarter {quarter} KiB, at the end {end} KiB, {} s", number("seconds"));
    vec![
        Figure {
            name: "sqlite.drain_peak_rss_mib",
            value: peak,
            unit: "MiB",
            target: Target::AtMost(64.0),
            scenario: SCENARIO,
            note: format!("VmHWM of a process that drains {count} entries of 300 bytes{}", options.size()),
        },
        Figure {
            name: "sqlite.drain_rss_growth",
            value: end / quarter,
            unit: "ratio",
            target: Target::AtMost(1.1),
            scenario: SCENARIO,
            note: format!("resident memory when all {count} entries are drained against when a quarter is"),
        },
    ]
}

/// `PATH COUNT`: makes the backlog.
pub(crate) fn fill(arguments: &[String]) {
    let count = arguments[1].parse().expect("a number");
    bed::run(async {
        let store = bed::open(arguments[0].as_ref());
        bed::apply(&store, vec![bed::destination(0, KIND)]).await;
        bed::enqueue(&store, 1, count, BATCH).await;
    });
}

/// `PATH COUNT`: drains it and prints what memory it took.
pub(crate) fn drain(arguments: &[String]) {
    let count: u64 = arguments[1].parse().expect("a number");
    let (quarter, end, runs) = (Counter::default(), Counter::default(), Counter::default());
    let (at_quarter, at_end, handled) = (quarter.clone(), end.clone(), runs.clone());
    let emitter = emit_each(move |_| {
        handled.add(1);
        if handled.get() == count / 4 {
            at_quarter.add(status("VmRSS:"));
        }
        if handled.get() == count {
            at_end.add(status("VmRSS:"));
        }
        core::future::ready(Outcome::Delivered { receipt: None })
    });
    let span = bed::run(async {
        let store = bed::open(arguments[0].as_ref());
        bed::drain(bed::engine(&store, KIND, Arc::clone(&emitter))).await
    });
    assert_eq!(runs.get(), count, "every entry is handled once");
    println!(
        "{{\"peak_kib\":{},\"quarter_kib\":{},\"end_kib\":{},\"seconds\":{}}}",
        status("VmHWM:"),
        quarter.get(),
        end.get(),
        span.as_secs_f64()
    );
}

/// A line of `/proc/self/status`, in KiB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("this runs on Linux");
    let line = text.lines().find(|line| line.starts_with(name)).expect("the line is there");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of KiB")
}
