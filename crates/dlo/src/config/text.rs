//! The text of the file: places in it, and names that are near to each other.

use core::ops::Range;
use std::path::{Path, PathBuf};

/// A file's path and text.
pub(super) struct FileText {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl FileText {
    /// Line and column of a byte offset, both from 1; the column counts characters.
    pub(super) fn position(&self, span: &Range<usize>) -> (usize, usize) {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// `dlo.toml:12:5`.
    pub(super) fn place(&self, span: &Range<usize>) -> String {
        let (line, column) = self.position(span);
        format!("{}:{line}:{column}", self.path.display())
    }

    /// A path in the file counts from the file's folder.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }
}

/// The known name nearest to what was written, if one is near.
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = |name: &&str| {
        let distance = distance(written, name);
        (distance <= name.len().max(written.len()).div_ceil(3).min(4)).then_some(distance)
    };
    known.iter().filter_map(|name| near(name).map(|distance| (distance, *name))).min().map(|(_, name)| name)
}

/// Number of insertions, removals and replacements from one to the other; names are short, so this is cheap.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("leese", &["lease", "mode", "worker"]), Some("lease"));
        assert_eq!(nearest("idlepoll", &["idle_poll", "mode"]), Some("idle_poll"));
        assert_eq!(nearest("kubernetes", &["lease", "mode"]), None);
    }

    #[test]
    fn positions_count_lines_and_characters() {
        let file = FileText { path: "dlo.toml".into(), text: "a = 1\nä = 2 # x".to_owned() };
        assert_eq!(file.position(&(0..1)), (1, 1));
        let offset = file.text.find('2').expect("there");
        assert_eq!(file.place(&(offset..offset + 1)), "dlo.toml:2:5");
    }
}
