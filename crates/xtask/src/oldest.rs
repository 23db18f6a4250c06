//! The SQLite store under the oldest rusqlite of its range, so that an application which needs that one can embed it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::run::{have, loud, quiet};

/// Lower end of the range in the workspace's `Cargo.toml`.
const OLDEST: &str = "0.39.0";

/// Tests the committed state in a copy of its own under `target/`.
pub(crate) fn test(root: &Path) -> Outcome {
    let copy = root.join("target/oldest");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|error| format!("{} can't be removed: {error}", copy.display()))?;
    }
    quiet(Command::new("git").args(["clone", "--quiet"]).arg(root).arg(&copy))?;
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(arguments).current_dir(&copy).env("CARGO_TARGET_DIR", root.join("target/oldest-build"));
        command
    };
    quiet(&mut cargo(&["update", "--package", "rusqlite", "--precise", OLDEST]))?;
    let runner: &[&str] = if have("cargo-nextest") { &["nextest", "run"] } else { &["test"] };
    loud(&mut cargo(&[runner, &["--package", "dlo-sqlite"]].concat()))
}
