//! Figures of the embedded store, each against a reference that runs in the same minute on the same machine.
//!
//! `bench-dlo SCENARIO [--runs N] [--small]`; `cargo xtask bench SCENARIO` builds and calls it. Figures go into
//! `docs/benchmarks.json`; what they mean is told in `docs/benchmarks.md`. `BENCH_DIR` names the folder in which
//! databases are made (default: a folder of the build), `BENCH_OUT` the file of figures.

mod bare;
mod bed;
mod drain;
mod enqueue;
mod flat;
mod flat_fill;
mod hanging;
mod host;
mod memory;
mod outage;
mod peers;
mod report;

use bed::Options;

/// Scenarios in the order of `all`.
const SCENARIOS: [(&str, fn(&Options) -> Vec<report::Figure>); 8] = [
    ("enqueue", enqueue::run),
    ("drain", drain::run),
    ("peers", peers::run),
    ("memory", memory::run),
    ("flat", flat::run),
    ("hanging", hanging::run),
    ("host", host::run),
    ("outage", outage::run),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scenario = arguments.first().map_or("", String::as_str);
    match scenario {
        // Processes that a scenario starts.
        "child-peer" => return peers::ours(&arguments[1..]),
        "child-fill" => return memory::fill(&arguments[1..]),
        "child-drain" => return memory::drain(&arguments[1..]),
        "child-host" => return host::application(&arguments[1..]),
        _ => {}
    }
    let options = Options::read(&arguments[1.min(arguments.len())..]);
    let chosen: Vec<_> = SCENARIOS.iter().filter(|(name, _)| scenario == *name || scenario == "all").collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: bench-dlo SCENARIO|all [--runs N] [--small]\nscenarios: {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, run) in chosen {
        eprintln!("{name}:");
        let figures = run(&options);
        report::publish(&options.out, &figures);
    }
}
