//! Names for ids that a store makes itself, so that two stores can be compared.

use std::collections::BTreeMap;

/// Ids by their 32 hexadecimal digits, and the names that they got.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Names an id once; `bytes` are its 16 bytes.
    pub(super) fn name(&mut self, kind: &str, bytes: &[u8; 16]) {
        use core::fmt::Write;
        let mut digits = String::with_capacity(32);
        for byte in bytes {
            // Writing to a string can't fail.
            let _ = write!(digits, "{byte:02x}");
        }
        let next = self.0.len();
        self.0.entry(digits).or_insert_with(|| format!("{kind}{next}"));
    }

    /// Replaces every known id, with hyphens or without, by its name.
    pub(super) fn replace(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len());
        let (mut copied, mut at) = (0, 0);
        while at < bytes.len() {
            let start = at;
            while at < bytes.len() && is_digit(bytes[at]) {
                at += 1;
            }
            // Both forms have 32 digits; shorter runs are numbers and words.
            if at - start >= 32 {
                let digits: String = text[start..at].chars().filter(|c| *c != '-').collect();
                if let Some(name) = self.0.get(&digits) {
                    out.push_str(&text[copied..start]);
                    out.push_str(name);
                    copied = at;
                }
            }
            at += 1;
        }
        out.push_str(&text[copied..]);
        out
    }
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-')
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn known_ids_are_replaced_in_both_forms() {
        let mut names = Names::default();
        names.name("entry-", &[0xab; 16]);
        names.name("entry-", &[0xab; 16]);
        let hyphens = "EntryId(abababab-abab-abab-abab-abababababab)";
        assert_eq!(names.replace(hyphens), "EntryId(entry-0)");
        assert_eq!(names.replace(&format!("ent_{}", "ab".repeat(16))), "ent_entry-0");
        let unknown = "Token(01010101-0101-0101-0101-010101010101) seq: 12 due-date";
        assert_eq!(names.replace(unknown), unknown);
    }
}
