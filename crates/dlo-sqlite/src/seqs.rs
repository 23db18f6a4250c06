//! Sequence numbers as one parameter of a statement: a JSON array.

use core::fmt::Write;

/// Numbers on their way into a statement.
#[derive(Default)]
pub(crate) struct Seqs {
    json: String,
    count: usize,
}

impl Seqs {
    pub(crate) fn add(&mut self, seq: i64) {
        let before = if self.count == 0 { '[' } else { ',' };
        write!(self.json, "{before}{seq}").expect("writing to a string can't fail");
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The array, for `json_each`.
    pub(crate) fn as_json(&self) -> String {
        if self.is_empty() { "[]".to_owned() } else { format!("{}]", self.json) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_an_array() {
        let mut seqs = Seqs::default();
        assert_eq!(seqs.as_json(), "[]");
        seqs.add(1);
        seqs.add(i64::MAX);
        assert_eq!((seqs.as_json().as_str(), seqs.len()), ("[1,9223372036854775807]", 2));
    }
}
