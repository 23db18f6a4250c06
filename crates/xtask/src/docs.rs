//! Checks on the documents: the requirements map, the benchmark file, lengths of files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Outcome;

/// Every requirement id: prefix, digits, first, last.
const IDS: [(&str, usize, u32); 3] = [("P", 2, 16), ("S", 2, 12), ("C", 3, 129)];

/// Longest source file without a reason written in its first lines.
const MAX_LINES: usize = 500;

/// Runs all checks and reports every problem at once.
pub(crate) fn check(root: &Path) -> Outcome {
    let mut problems = Vec::new();
    requirements(root, &mut problems)?;
    benchmarks(root, &mut problems)?;
    lengths(&root.join("crates"), &mut problems)?;
    if problems.is_empty() { Ok(()) } else { Err(format!("documents and code differ:\n{}", problems.join("\n"))) }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))
}

/// Each row is `| ID | what | where |`; `where` is `not yet…`, or has references in backticks or links.
fn requirements(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let text = read(&root.join("docs/requirements.md"))?;
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let [id, _, place] = cells[..] {
            if rows.insert(id.to_owned(), place.to_owned()).is_some() {
                problems.push(format!("docs/requirements.md names {id} twice"));
            }
        }
    }
    for (prefix, digits, last) in IDS {
        for number in 1..=last {
            let id = format!("{prefix}-{number:0digits$}");
            match rows.get(&id) {
                None => problems.push(format!("docs/requirements.md does not name {id}")),
                Some(place) => references(root, &id, place, problems),
            }
        }
    }
    Ok(())
}

/// A reference is `path::function` or `path`, in backticks; a page is a path that ends in `.md`.
fn references(root: &Path, id: &str, place: &str, problems: &mut Vec<String>) {
    let names: Vec<&str> = place.split('`').skip(1).step_by(2).collect();
    if names.is_empty() && !place.starts_with("not yet") {
        problems.push(format!("{id} names neither a test nor a page nor says `not yet`"));
    }
    for name in names {
        let (path, function) = name.split_once("::").map_or((name, None), |(path, function)| (path, Some(function)));
        let Ok(text) = fs::read_to_string(root.join(path)) else {
            problems.push(format!("{id} names {path}, which does not exist"));
            continue;
        };
        if let Some(function) = function.filter(|function| !text.contains(&format!("fn {function}("))) {
            problems.push(format!("{id} names {path}::{function}, and there is no such test"));
        }
    }
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
