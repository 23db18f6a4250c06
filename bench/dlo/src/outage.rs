//! The outage of an hour by simulated clock is a test of the engine; here it is run and its answer is published.

use std::process::{Command, Stdio};

use crate::{
    bed::{self, Options},
    report::{Figure, Target},
};

const TEST: &str = "d08_an_outage_of_an_hour_ends_without_dead_letters_10000";

pub(crate) fn run(_: &Options) -> Vec<Figure> {
    let output = Command::new("cargo")
        .args(["test", "-p", "dlo-engine", "--test", "it", "--", TEST])
        .current_dir(bed::root())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    let passed = output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(passed, "{TEST} does not pass:\n{}", String::from_utf8_lossy(&output.stdout));
    vec![Figure {
        name: "sqlite.outage_dead_letters",
        value: 0.0,
        unit: "dead letters",
        target: Target::AtMost(0.0),
        scenario: "outage",
        note: format!(
            "one hour without an answer, 10,000 entries, default policy, simulated clock; asserted by the test `{TEST}` of \
             dlo-engine, which this scenario runs"
        ),
    }]
}
