//! Against effectum and apalis-sqlite: the same work, each in a process of its own, one after the other in every round.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use dlo_core::{Class, DestinationSpec, Failure, Outcome, Phase, policy::Jitter, reason};
use dlo_ports::{Emitter, emitter::emit_each};
use serde_json::Value;

use crate::{
    bed::{self, BATCH, Counter, Options},
    report::{Figure, Series, Target},
};

const SCENARIO: &str = "peers";
const KIND: &str = "handler";

/// A peer and how many entries each scenario gives it: as many as it gets through in a few seconds.
struct Peer {
    name: &'static str,
    folder: &'static str,
    program: &'static str,
    enqueue: usize,
    drain: usize,
    failing: usize,
    figures: [&'static str; 3],
    said: &'static str,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "effectum",
        folder: "effectum",
        program: "bench-effectum",
        enqueue: 100_000,
        drain: 20_000,
        failing: 2_000,
        figures: ["sqlite.enqueue_vs_effectum", "sqlite.drain_vs_effectum", "sqlite.failing_vs_effectum"],
        said: "effectum 0.7 as shipped: `synchronous=normal`, so a commit is not on the disk when it is answered; ours is",
    },
    Peer {
        name: "apalis-sqlite",
        folder: "apalis-sqlite",
        program: "bench-apalis-sqlite",
        enqueue: 40_000,
        drain: 4_000,
        failing: 2_000,
        figures: ["sqlite.enqueue_vs_apalis", "sqlite.drain_vs_apalis", "sqlite.failing_vs_apalis"],
        said: "apalis-sqlite 1.0 set durable: WAL and `synchronous=FULL`",
    },
];

const KINDS: [&str; 3] = ["enqueue", "drain", "failing"];

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    PEERS.iter().flat_map(|peer| against(peer, options)).collect()
}

fn against(peer: &Peer, options: &Options) -> Vec<Figure> {
    let program = program(peer);
    assert!(program.exists(), "{} is not built: `cargo xtask bench peers` builds it", program.display());
    let counts = [peer.enqueue, peer.drain, peer.failing].map(|rows| options.rows(rows));
    let mut ratios: BTreeMap<&str, (Series, Series, Series)> = BTreeMap::new();
    let mut ended = Series::default();
    for round in 0..options.runs {
        for (kind, count) in KINDS.into_iter().zip(counts) {
            let folder = bed::folder();
            let (count, batch) = (count.to_string(), BATCH.to_string());
            let theirs =
                || measure(Command::new(&program).args([kind, &count, &batch]).env("BENCH_DIR", folder.path()));
            let ours = || measure(bed::child(&["child-peer", kind, &count, &batch]).env("BENCH_DIR", folder.path()));
            let (a, b) = if round % 2 == 0 {
                let a = ours();
                (a, theirs())
            } else {
                let b = theirs();
                (ours(), b)
            };
            eprintln!("  round {round}: {kind}: ours {:.0}/s, {} {:.0}/s", a.rate, peer.name, b.rate);
            let (ratio, our, their) = ratios.entry(kind).or_default();
            ratio.push(a.rate / b.rate);
            our.push(a.rate);
            their.push(b.rate);
            if kind == "failing" {
                ended.push(a.rate / 5.0);
            }
        }
    }
    let units = ["entries", "entries", "entries, failed attempts"];
    let mut figures = Vec::new();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let (ratio, our, their) = &ratios[kind];
        let mut note = format!(
            "{} {}: ours {:.0}/s, {} {:.0}/s; {}; {}{}",
            counts[index],
            units[index],
            our.median(),
            peer.name,
            their.median(),
            ratio.spread(),
            peer.said,
            options.size()
        );
        if kind == "failing" {
            note.push_str(&format!(
                "; every entry fails five times without delay and ends in quarantine: {:.0} dead letters/s",
                ended.median()
            ));
        }
        figures.push(Figure {
            name: peer.figures[index],
            value: ratio.median(),
            unit: "ratio",
            target: Target::AtLeast(1.0),
            scenario: SCENARIO,
            note,
        });
    }
    figures
}

fn program(peer: &Peer) -> PathBuf {
    bed::root().join("bench").join(peer.folder).join("target/release").join(peer.program)
}

struct Measured {
    rate: f64,
}

/// Runs a process that prints one JSON line.
fn measure(command: &mut Command) -> Measured {
    let output = command.stderr(Stdio::null()).output().expect("a peer starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let line =
        text.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{command:?} printed no figure"));
    let value: Value = serde_json::from_str(line).expect("a peer prints JSON");
    let number = |name: &str| value[name].as_f64().expect("a number");
    Measured { rate: number("done") / number("seconds") }
}

/// Our side, in the same form as the peers': `enqueue|drain|failing N BATCH`.
pub(crate) fn ours(arguments: &[String]) {
    let kind = arguments[0].as_str();
    let (count, batch): (usize, usize) =
        (arguments[1].parse().expect("a number"), arguments[2].parse().expect("a number"));
    let folder = bed::folder();
    let (done, span) = bed::run(async {
        let store = bed::open(&folder.path().join("ours.db"));
        bed::apply(&store, vec![destination()]).await;
        let span = bed::enqueue(&store, 1, count, batch).await;
        if kind == "enqueue" {
            return (count as u64, span);
        }
        let runs = Counter::default();
        let span = bed::drain(bed::engine(&store, KIND, handler(runs.clone(), kind == "failing"))).await;
        (runs.get(), span)
    });
    println!("{{\"peer\":\"dlo\",\"scenario\":\"{kind}\",\"done\":{done},\"seconds\":{}}}", span.as_secs_f64());
}

/// Five attempts without a delay, as the peers are set; everything else is default.
fn destination() -> DestinationSpec {
    let mut spec = bed::destination(0, KIND);
    spec.policy.retry_delay = Duration::ZERO;
    spec.policy.schedule = vec![Duration::ZERO];
    spec.policy.jitter = Jitter::None;
    spec
}

/// A handler of one entry at a time. A failure says nothing about its cause, as an error of the peers' handlers does:
/// it is retried and charged, and is no evidence against the destination, so the breaker stays closed.
fn handler(runs: Counter, fail: bool) -> Arc<dyn Emitter> {
    emit_each(move |_| {
        runs.add(1);
        core::future::ready(if fail {
            Outcome::Failed(Failure::custom(Class::Unknown, reason::EMISSION_FAILED, Phase::Unknown, "refused"))
        } else {
            Outcome::Delivered { receipt: None }
        })
    })
}
