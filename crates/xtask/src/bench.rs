//! Figures: builds the measuring programs in release, runs them, and writes the table of `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::Outcome;
use crate::run::{loud, say};

/// The programs that the scenario `peers` compares with, each a workspace of its own.
const PEERS: [&str; 2] = ["effectum", "apalis-sqlite"];
/// Between these lines the page belongs to this task.
const MARKS: (&str, &str) = ("<!-- figures: written by `cargo xtask bench` -->", "<!-- end of figures -->");
const PAGE: &str = "docs/benchmarks.md";
const FIGURES: &str = "docs/benchmarks.json";

/// A row of the figures file, as far as the page shows it.
#[derive(Deserialize)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
    target: Option<String>,
    holds: Option<bool>,
    note: String,
}

/// `bench SCENARIO|all [--runs N] [--small]`; `bench table` only writes the table.
pub(crate) fn bench(root: &Path, arguments: &[String]) -> Outcome {
    let Some(scenario) = arguments.first() else {
        return Err("bench needs a scenario, `all`, or `table`".to_owned());
    };
    if scenario != "table" {
        if matches!(scenario.as_str(), "peers" | "all") {
            for peer in PEERS {
                build(root, peer, &["--locked"])?;
            }
        }
        build(root, "dlo", &[])?;
        let program = root.join("bench/dlo/target/release/bench-dlo");
        loud(Command::new(program).args(arguments).current_dir(root))?;
    }
    write_table(root)
}

fn build(root: &Path, folder: &str, further: &[&str]) -> Outcome {
    say(&format!("building bench/{folder}"));
    let manifest = root.join("bench").join(folder).join("Cargo.toml");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(manifest).args(further);
    // Its own target folder, whatever the caller's environment says.
    loud(command.env_remove("CARGO_TARGET_DIR").current_dir(root))
}

fn write_table(root: &Path) -> Outcome {
    let path = root.join(PAGE);
    let page = read(&path)?;
    let wanted = with_table(&page, &table(root)?)?;
    fs::write(&path, wanted).map_err(|error| format!("{} can't be written: {error}", path.display()))
}

/// Whether the page shows what the figures file says.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let page = read(&root.join(PAGE))?;
    if with_table(&page, &table(root)?)? != page {
        problems.push(format!("{PAGE} does not show {FIGURES}: run `cargo xtask bench table`"));
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))
}

fn with_table(page: &str, table: &str) -> Result<String, String> {
    let parts = page.split_once(MARKS.0).and_then(|(before, rest)| Some((before, rest.split_once(MARKS.1)?.1)));
    let Some((before, after)) = parts else {
        return Err(format!("{PAGE} has no lines `{}` and `{}`", MARKS.0, MARKS.1));
    };
    Ok(format!("{before}{}\n\n{table}\n{}{after}", MARKS.0, MARKS.1))
}

fn table(root: &Path) -> Result<String, String> {
    let path = root.join(FIGURES);
    let figures: Vec<Figure> = serde_json::from_str(&read(&path)?)
        .map_err(|error| format!("{} is not a list of figures: {error}", path.display()))?;
    let mut table = String::from("| figure | value | target | holds | setting |\n| --- | ---: | --- | --- | --- |\n");
    for figure in figures {
        let holds = figure.holds.map_or("", |holds| if holds { "yes" } else { "**no**" });
        let target = figure.target.as_deref().unwrap_or("");
        let note = figure.note.replace('|', "\\|");
        let _ =
            writeln!(table, "| `{}` | {} {} | {target} | {holds} | {note} |", figure.name, figure.value, figure.unit);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_replaces_what_stands_between_the_marks() {
        let page = format!("before\n{}\nold\n{}\nafter\n", MARKS.0, MARKS.1);
        let written = with_table(&page, "new\n").expect("the marks are there");
        assert_eq!(written, format!("before\n{}\n\nnew\n\n{}\nafter\n", MARKS.0, MARKS.1));
        assert_eq!(with_table(&written, "new\n").as_ref(), Ok(&written));
        assert!(with_table("no marks", "new\n").is_err());
    }
}
