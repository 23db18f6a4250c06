//! Installs what the tests need: idempotent, quiet, and clear about what can't be had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{have, loud, quiet, say};

/// Where the tests find what was fetched for them.
pub(crate) struct TestData {
    /// Folder of the package with real webhook payloads.
    pub(crate) webhook_examples: PathBuf,
}

/// The package of real payloads, pinned.
const EXAMPLES: &str = "@octokit/webhooks-examples@7.6.1";

/// Installs everything; an error names what is missing, why, and what to do.
pub(crate) fn setup(root: &Path) -> Result<TestData, String> {
    compiler()?;
    debian(&["strace"])?;
    Ok(TestData { webhook_examples: webhook_examples(root)? })
}

/// SQLite and ring are compiled from C.
fn compiler() -> Result<(), String> {
    if have("cc") { Ok(()) } else { debian_package("gcc", "cc") }
}

/// Programs that are Debian packages of the same name.
fn debian(programs: &[&str]) -> Result<(), String> {
    programs.iter().filter(|program| !have(program)).try_for_each(|program| debian_package(program, program))
}

fn debian_package(package: &str, program: &str) -> Result<(), String> {
    let missing = |why: &str| {
        format!("`{program}` is needed by the tests and can't be installed here ({why}): install `{package}` by hand")
    };
    if !have("apt-get") {
        return Err(missing("no apt-get"));
    }
    say(&format!("xtask: installing {package}"));
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let install = |()| quiet(apt().args(["install", "-y", "--no-install-recommends", package]));
    install(()).or_else(|_| quiet(apt().arg("update")).and_then(install)).map_err(|why| missing(&why))?;
    if have(program) { Ok(()) } else { Err(missing("the package does not bring it")) }
}

fn webhook_examples(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/test-data");
    let package = folder.join("node_modules/@octokit/webhooks-examples");
    let stamp = folder.join("webhooks-examples.version");
    if fs::read_to_string(&stamp).is_ok_and(|version| version == EXAMPLES) && package.is_dir() {
        return Ok(package);
    }
    if !have("npm") {
        debian_package("npm", "npm")?;
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{} can't be made: {error}", folder.display()))?;
    say(&format!("xtask: fetching {EXAMPLES}"));
    loud(
        Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--prefix"])
            .arg(&folder)
            .arg(EXAMPLES),
    )
    .map_err(|why| format!("the real payloads that a test reads can't be fetched: {why}"))?;
    fs::write(&stamp, EXAMPLES).map_err(|error| format!("{} can't be written: {error}", stamp.display()))?;
    Ok(package)
}
