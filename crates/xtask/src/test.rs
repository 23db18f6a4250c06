//! The README's second command: every test, with what they need.

use std::path::Path;
use std::process::Command;

use crate::run::{have, loud};
use crate::{Outcome, docs, setup};

/// Runs every test but the doc tests; further arguments go to the runner.
pub(crate) fn test(root: &Path, further: &[String]) -> Outcome {
    docs::check(root)?;
    let data = setup::setup(root)?;
    let mut command = Command::new("cargo");
    if have("cargo-nextest") {
        command.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--status-level", "fail"]);
    } else {
        command.args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests", "--examples"]);
    }
    command.args(further).current_dir(root).env("DLO_TEST_WEBHOOK_EXAMPLES", &data.webhook_examples);
    loud(&mut command)
}
