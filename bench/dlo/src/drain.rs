//! Drain by the engine to an emitter that does nothing, against the bare loop.

use dlo_ports::Emitter;
use std::sync::Arc;

use crate::{
    bare,
    bed::{self, BATCH, Options, metered, rate},
    report::{Figure, Series, Target},
};

const SCENARIO: &str = "drain";

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let count = options.rows(100_000);
    let folder = bed::folder();
    let template = folder.path().join("template.db");
    bed::run(async {
        let store = bed::open(&template);
        bed::apply(&store, vec![bed::destination(0, "noop")]).await;
        bed::enqueue(&store, 1, count, BATCH).await;
    });
    let (mut ours, mut reference, mut ratio, mut cpu) =
        (Series::default(), Series::default(), Series::default(), Series::default());
    for round in 0..options.runs {
        let folder = bed::folder();
        let product = || {
            let path = folder.path().join("ours.db");
            bed::copy(&template, &path);
            bed::run(async {
                let store = bed::open(&path);
                let emitter: Arc<dyn Emitter> = Arc::new(dlo_ports::emitter::Noop);
                rate(count, bed::drain(bed::engine(&store, "noop", emitter)).await)
            })
        };
        let loops = || {
            let path = folder.path().join("bare.db");
            bed::copy(&template, &path);
            let mut conn = bare::open(&path);
            rate(count, bare::drain(&mut conn, bed::name(0).as_str()))
        };
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
        eprintln!("  round {round}: ours {a:.0}/s {used:.2} us, bare {b:.0}/s {bare_used:.2} us, ratio {:.3}", a / b);
    }
    let setting = format!("{count} entries of 300 bytes, page 100, emitter `noop`{}", options.size());
    let figure =
        |name, value, unit, target, note: String| Figure { name, value, unit, target, scenario: SCENARIO, note };
    vec![
        figure(
            "sqlite.drain_ratio",
            ratio.median(),
            "ratio",
            Target::AtLeast(0.7),
            format!(
                "{setting}; {}; processor time of all threads {:.2} times the loop's",
                ratio.spread(),
                cpu.median()
            ),
        ),
        figure("sqlite.drain_per_second", ours.median(), "entries/s", Target::None, setting.clone()),
        figure("sqlite.drain_bare_per_second", reference.median(), "entries/s", Target::None, setting),
    ]
}
