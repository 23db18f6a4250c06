//! Checks on the documents: the maps of requirements and traps, the benchmark file, lengths of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{Outcome, bench, maps};

/// Longest source file without a reason written in its first lines.
const MAX_LINES: usize = 500;

/// Runs all checks and reports every problem at once.
pub(crate) fn check(root: &Path) -> Outcome {
    let mut problems = Vec::new();
    maps::check(root, &mut problems)?;
    benchmarks(root, &mut problems)?;
    bench::check(root, &mut problems)?;
    lengths(&root.join("crates"), &mut problems)?;
    if problems.is_empty() { Ok(()) } else { Err(format!("documents and code differ:\n{}", problems.join("\n"))) }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))
}

/// `docs/benchmarks.json` is a list of complete rows with known name prefixes.
fn benchmarks(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let path = root.join("docs/benchmarks.json");
    let rows: Vec<BTreeMap<String, serde_json::Value>> =
        serde_json::from_str(&read(&path)?).map_err(|error| format!("{} is not valid: {error}", path.display()))?;
    for row in &rows {
        let name = row.get("name").and_then(serde_json::Value::as_str).unwrap_or("");
        let known = ["sqlite.", "postgres.", "quarantine.", "redrive.", "office."];
        if !known.iter().any(|prefix| name.starts_with(prefix)) {
            problems.push(format!("docs/benchmarks.json: `{name}` has no known prefix"));
        }
        for field in ["value", "unit", "target", "holds", "command", "note"] {
            if !row.contains_key(field) {
                problems.push(format!("docs/benchmarks.json: `{name}` has no `{field}`"));
            }
        }
    }
    Ok(())
}

fn lengths(folder: &Path, problems: &mut Vec<String>) -> Outcome {
    sources(folder, &mut |path, text| {
        let lines = text.lines().count();
        if lines > MAX_LINES && !text.lines().take(12).any(|line| line.contains("Longer than 500 lines because")) {
            problems.push(format!("{} has {lines} lines: split it, or give the reason at its head", path.display()));
        }
    })
}

/// Calls for every Rust file below a folder.
fn sources(folder: &Path, each: &mut dyn FnMut(&Path, &str)) -> Outcome {
    let entries = fs::read_dir(folder).map_err(|error| format!("{} can't be read: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                sources(&path, each)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path, &read(&path)?);
        }
    }
    Ok(())
}
