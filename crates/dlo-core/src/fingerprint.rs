//! Fingerprint of a failure: class, reason, destination and normalised text, versioned.

use core::fmt;

use crate::{Class, DestinationName, Reason, text::ErrorText};

/// Version of the fingerprint algorithm.
pub const VERSION: u16 = 1;

/// Fingerprint with the template that it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Algorithm version.
    pub version: u16,
    /// First 16 bytes of SHA-256 over class, reason, destination and template.
    pub hash: [u8; 16],
    /// Error text with ids and numbers replaced.
    pub template: ErrorText,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fp{}_", self.version)?;
        self.hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Longest template, in bytes: what differs later than this is one group.
pub const MAX_TEMPLATE_BYTES: usize = 512;

/// Longest quoted text that is taken as one variable, in characters; a quote without an end near by is a character.
const MAX_QUOTED: usize = 256;

/// Fingerprint (v1) of a failure: the same class, reason, destination and template give the same one.
pub fn fingerprint(class: Class, reason: &Reason, destination: &DestinationName, text: &str) -> Fingerprint {
    use sha2::Digest;
    let template = template(text);
    let mut hash = sha2::Sha256::new();
    for part in [class.as_str(), reason.as_str(), destination.as_str(), template.as_str()] {
        // The length keeps neighbouring parts from running into each other.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let (half, _) = digest.split_at(16);
    Fingerprint {
        version: VERSION,
        hash: half.try_into().expect("16 of 32 bytes are 16 bytes"),
        template: ErrorText::new(template),
    }
}

/// Error text with what differs from one entry to the next replaced: `<uuid>`, `<hex>`, `<id>`, `<n>`, `<str>`.
///
/// Words are kept as they are, so that near misses (`timeout`, `timeouts`) stay apart; a single digit in a word is part
/// of its name (`ipv4`, `ipv6`). White space collapses; the result is at most [`MAX_TEMPLATE_BYTES`].
pub fn template(text: &str) -> String {
    let chars: Vec<char> = text.chars().take(MAX_TEMPLATE_BYTES * 4).collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() && out.len() < MAX_TEMPLATE_BYTES {
        let c = chars[at];
        if let Some(end) = quoted(&chars, at) {
            out.push_str("<str>");
            at = end;
        } else if is_uuid(&chars, at) {
            out.push_str("<uuid>");
            at += UUID_CHARS;
        } else if c.is_alphanumeric() {
            let end = at + chars[at..].iter().take_while(|c| c.is_alphanumeric()).count();
            push_word(&mut out, &chars[at..end]);
            at = end;
        } else {
            if !c.is_whitespace() {
                out.push(c);
            } else if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
            at += 1;
        }
    }
    let mut end = out.len().min(MAX_TEMPLATE_BYTES);
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out.truncate(out.trim_end().len());
    out
}

/// End of the quoted text that begins here, if one does. An apostrophe inside a word begins none.
fn quoted(chars: &[char], at: usize) -> Option<usize> {
    let quote = *chars.get(at).filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let inside_word = at.checked_sub(1).and_then(|before| chars.get(before)).is_some_and(|c| c.is_alphanumeric());
    if inside_word {
        return None;
    }
    let length = chars[at + 1..].iter().take(MAX_QUOTED).position(|c| *c == quote)?;
    let end = at + 1 + length + 1;
    let ends_word = chars.get(end).is_none_or(|c| !c.is_alphanumeric());
    ends_word.then_some(end)
}

const UUID_CHARS: usize = 36;

fn is_uuid(chars: &[char], at: usize) -> bool {
    let free = |c: Option<&char>| c.is_none_or(|c| !c.is_alphanumeric());
    chars.get(at..at + UUID_CHARS).is_some_and(|candidate| {
        candidate.iter().enumerate().all(|(i, c)| match i {
            8 | 13 | 18 | 23 => *c == '-',
            _ => c.is_ascii_hexdigit(),
        })
    }) && free(at.checked_sub(1).and_then(|before| chars.get(before)))
        && free(chars.get(at + UUID_CHARS))
}

fn push_word(out: &mut String, word: &[char]) {
    let digits = word.iter().filter(|c| c.is_ascii_digit()).count();
    let all_hex = word.iter().all(char::is_ascii_hexdigit);
    let prefixed_hex = word.len() > 2 && word[0] == '0' && matches!(word[1], 'x' | 'X');
    if digits == word.len() {
        out.push_str("<n>");
    } else if digits > 0
        && ((word.len() >= 8 && all_hex) || (prefixed_hex && word[2..].iter().all(char::is_ascii_hexdigit)))
    {
        out.push_str("<hex>");
    } else if word.len() >= 8 && digit_runs(word) >= 2 {
        out.push_str("<id>");
    } else {
        push_with_numbers(out, word);
    }
}

fn digit_runs(word: &[char]) -> usize {
    word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).filter(|run| run[0].is_ascii_digit()).count()
}

/// A word with its runs of two or more digits replaced: `order1234` and `order1235` are one, `ipv4` and `ipv6` two.
fn push_with_numbers(out: &mut String, word: &[char]) {
    for run in word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        if run[0].is_ascii_digit() && run.len() >= 2 {
            out.push_str("<n>");
        } else {
            out.extend(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_entries_is_replaced() {
        for (text, expected) in [
            ("status 503 after 1500 ms", "status <n> after <n> ms"),
            ("no order 3f2504e0-4f89-11d3-9a0c-0305e82c3301 here", "no order <uuid> here"),
            ("ent_0190c3f2a7b87c3e9d1f2a3b4c5d6e7f failed", "ent_<hex> failed"),
            ("at 0xdeadbeef", "at <hex>"),
            ("deadbeef", "deadbeef"),
            ("digest 9f8a7b6c5d", "digest <hex>"),
            ("customer x7Kq92LmZp", "customer <id>"),
            ("unknown field \"amount\" in `body`", "unknown field <str> in <str>"),
            ("can't read peer's answer", "can't read peer's answer"),
            ("order1234 and order-99", "order<n> and order-<n>"),
            ("10.0.0.7:8080  refused\n", "<n>.<n>.<n>.<n>:<n> refused"),
            ("ipv4 or ipv6", "ipv4 or ipv6"),
            ("", ""),
        ] {
            let got = template(text);
            // Single digits of an address are numbers of their own.
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn near_miss_words_stay_apart() {
        let of = |text: &str| {
            fingerprint(
                Class::Transient,
                &crate::reason::CONNECT_FAILED,
                &DestinationName::new("billing").expect("valid"),
                text,
            )
        };
        assert_ne!(of("timeout").hash, of("timeouts").hash);
        assert_ne!(of("ipv4 unreachable").hash, of("ipv6 unreachable").hash);
        assert_eq!(of("timed out after 30 s").hash, of("timed out after 31 s").hash);
        assert!(of("x").to_string().starts_with("fp1_"));
    }

    #[test]
    fn class_reason_and_destination_keep_failures_apart() {
        let name = |text: &str| DestinationName::new(text).expect("valid");
        let base = fingerprint(Class::Unknown, &crate::reason::EMISSION_FAILED, &name("a"), "text");
        let others = [
            fingerprint(Class::Transient, &crate::reason::EMISSION_FAILED, &name("a"), "text"),
            fingerprint(Class::Unknown, &crate::reason::EMISSION_PANIC, &name("a"), "text"),
            fingerprint(Class::Unknown, &crate::reason::EMISSION_FAILED, &name("b"), "text"),
        ];
        for other in others {
            assert_ne!(base.hash, other.hash);
        }
    }

    #[test]
    fn any_text_gives_a_bounded_template() {
        for text in ["€".repeat(10_000), "\"".repeat(3_000), "a1".repeat(5_000), "\u{0}\u{1b}".repeat(99)] {
            assert!(template(&text).len() <= MAX_TEMPLATE_BYTES);
        }
    }
}
