//! Repository tasks, run as `cargo xtask TASK`.
//!
//! * `test` installs what the tests need and runs every test but the doc tests;
//! * `setup` only installs;
//! * `docs` checks the maps of requirements and traps, the benchmark file, lengths of files;
//! * `bench` reproduces figures of `docs/benchmarks.json`;
//! * `oldest` tests the SQLite store under the oldest rusqlite of its range.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod bench;
mod docs;
mod maps;
mod oldest;
mod run;
mod setup;
mod test;

/// What a task answers: an error is printed and ends the process with 1.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let outcome = match arguments.first().map(String::as_str) {
        Some("test") => test::test(&root, &arguments[1..]),
        Some("setup") => setup::setup(&root).map(drop),
        Some("docs") => docs::check(&root),
        Some("bench") => bench::bench(&root, &arguments[1..]),
        Some("oldest") => oldest::test(&root),
        other => Err(format!("unknown task `{}`: test, setup, docs, bench or oldest", other.unwrap_or(""))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            run::say(&format!("xtask: {problem}"));
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: two folders above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map_or_else(PathBuf::new, Path::to_path_buf)
}
