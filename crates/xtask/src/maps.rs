//! The maps from requirements and traps to what shows them: complete, without repetitions, and true to the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Outcome;

/// A page with one row `| ID | what | where |` for each of its ids.
struct Map {
    page: &'static str,
    /// Prefix, digits and last number of each family of ids; numbers start at 1.
    ids: &'static [(&'static str, usize, u32)],
    /// How a row may begin that needs no reference.
    otherwise: &'static str,
    /// Whether a row has to name a test, and a page is not enough.
    tests_only: bool,
}

const MAPS: [Map; 2] = [
    Map {
        page: "docs/requirements.md",
        ids: &[("P-", 2, 16), ("S-", 2, 12), ("C-", 3, 129)],
        otherwise: "not yet",
        tests_only: false,
    },
    Map { page: "docs/traps.md", ids: &[("D", 1, 23)], otherwise: "ruled out", tests_only: true },
];

/// Checks both maps.
pub(crate) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    for map in &MAPS {
        let page = root.join(map.page);
        let text = fs::read_to_string(&page).map_err(|error| format!("{} can't be read: {error}", page.display()))?;
        map.check(root, &text, problems);
    }
    Ok(())
}

impl Map {
    fn check(&self, root: &Path, text: &str, problems: &mut Vec<String>) {
        let mut rows = BTreeMap::new();
        for (id, place) in text.lines().filter_map(row).filter(|(id, _)| self.is_id(id)) {
            if rows.insert(id, place).is_some() {
                problems.push(format!("{} names {id} twice", self.page));
            }
        }
        for id in self.wanted() {
            match rows.remove(id.as_str()) {
                None => problems.push(format!("{} does not name {id}", self.page)),
                Some(place) => self.references(root, &id, place, problems),
            }
        }
        for id in rows.keys() {
            problems.push(format!("{} names {id}, and there is no such id", self.page));
        }
    }

    /// A prefix of the map and digits; other rows are heads of tables.
    fn is_id(&self, text: &str) -> bool {
        let number = self.ids.iter().find_map(|(prefix, ..)| text.strip_prefix(prefix));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn wanted(&self) -> impl Iterator<Item = String> {
        let of_family = |(prefix, digits, last): &(&'static str, usize, u32)| {
            let (prefix, digits) = (*prefix, *digits);
            (1..=*last).map(move |number| format!("{prefix}{number:0digits$}"))
        };
        self.ids.iter().flat_map(of_family)
    }

    /// Every reference of a row has to hold, also where the row says `not yet` and names what is there already.
    fn references(&self, root: &Path, id: &str, place: &str, problems: &mut Vec<String>) {
        let names: Vec<&str> = place.split('`').skip(1).step_by(2).filter(|name| is_reference(name)).collect();
        let shown = names.iter().any(|name| !self.tests_only || name.contains("::"));
        if !shown && !place.starts_with(self.otherwise) {
            let wanted = if self.tests_only { "a test" } else { "a test or a page" };
            problems.push(format!("{id} names not {wanted}, nor does it begin with `{}`", self.otherwise));
        }
        for name in names {
            if let Some(problem) = wrong(root, name) {
                problems.push(format!("{id} names {name}: {problem}"));
            }
        }
    }
}

/// Id and last cell of a row.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.trim_end_matches('|').split(" | ").map(str::trim).collect();
    match cells[..] {
        [id, _, place] => Some((id, place)),
        _ => None,
    }
}

/// Words such as a name of an option stand in backticks too, and have neither a folder nor an ending.
fn is_reference(name: &str) -> bool {
    name.contains(['/', '.', ':'])
}

/// What is wrong with a reference: `path`, or `path::function`.
fn wrong(root: &Path, name: &str) -> Option<&'static str> {
    let (path, function) = name.split_once("::").map_or((name, None), |(path, function)| (path, Some(function)));
    let Ok(text) = fs::read_to_string(root.join(path)) else { return Some("there is no such file") };
    if !is_compiled(root, path) {
        return Some("the `main.rs` beside it does not name that file, so nothing in it runs");
    }
    function.and_then(|function| no_test(&text, function))
}

/// A file of integration tests is a module of the `main.rs` beside it; all other files are found by the compiler's
/// own warnings.
fn is_compiled(root: &Path, path: &str) -> bool {
    let Some((folder, file)) = path.rsplit_once('/').filter(|(folder, _)| folder.ends_with("/tests/it")) else {
        return true;
    };
    let module = format!("mod {};", file.trim_end_matches(".rs"));
    fs::read_to_string(root.join(folder).join("main.rs")).is_ok_and(|main| main.lines().any(|line| line == module))
}

/// A test carries a test attribute, or is a case of the conformance suite (which the compiler calls dead code unless
/// the suite lists it).
fn no_test(text: &str, function: &str) -> Option<&'static str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let Some(at) = lines.iter().position(|line| line.contains(&format!("fn {function}("))) else {
        return Some("the file has no such function");
    };
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let mut attributes = above.filter(|line| line.starts_with("#["));
    let is_test = attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    let is_case = lines[at].contains("(b: &mut Bench)");
    (!is_test && !is_case).then_some("that function is no test")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: Map = Map { page: "map.md", ids: &[("D", 1, 3)], otherwise: "ruled out", tests_only: true };

    fn problems(text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        MAP.check(Path::new(env!("CARGO_MANIFEST_DIR")), text, &mut problems);
        problems
    }

    #[test]
    fn a_true_map_has_no_problem() {
        let text = "| id | trap | test |\n| --- | --- | --- |\n\
                    | D1 | one | `src/maps.rs::a_true_map_has_no_problem` |\n\
                    | D2 | two | ruled out: `Option` says it |\n\
                    | D3 | three | `Cargo.toml` and `src/maps.rs::what_is_not_so_is_told` |\n";
        assert_eq!(problems(text), [""; 0]);
    }

    #[test]
    fn what_is_not_so_is_told() {
        let text = "| D1 | one | `src/maps.rs::nothing` |\n| D1 | one | `src/maps.rs::row` |\n\
                    | D2 | two | `Cargo.toml` |\n| D4 | four | ruled out |\n";
        let expected = [
            "map.md names D1 twice",
            "D1 names src/maps.rs::row: that function is no test",
            "D2 names not a test, nor does it begin with `ruled out`",
            "map.md does not name D3",
            "map.md names D4, and there is no such id",
        ];
        assert_eq!(problems(text), expected);
        assert_eq!(wrong(Path::new("."), "no/such.md"), Some("there is no such file"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(is_compiled(&root, "crates/dlo-core/tests/it/causes.rs"));
        assert!(!is_compiled(&root, "crates/dlo-core/tests/it/nothing.rs"));
        assert_eq!(no_test("fn other() {}", "this"), Some("the file has no such function"));
        assert_eq!(no_test("pub(super) fn case(b: &mut Bench) {", "case"), None);
        assert_eq!(no_test("/// Says.\n#[tokio::test]\n#[ignore]\nasync fn this() {}", "this"), None);
    }
}
