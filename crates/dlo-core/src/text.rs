//! Bounded text: what may be stored of anything that a provider, an exception or a person said.

use core::fmt;

/// Text of at most `MAX` bytes, valid UTF-8, without NUL or other control characters.
///
/// Making one cannot fail (trap D11): control characters become spaces and what is too long is cut on a character
/// boundary and ends in `…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounded<const MAX: usize>(String);

/// Error text as stored in attempts and dead letters.
pub type ErrorText = Bounded<{ crate::limits::MAX_ERROR_TEXT_BYTES }>;
/// A provider's code as stored beside ours.
pub type Code = Bounded<{ crate::limits::MAX_CODE_BYTES }>;
/// A person's reason or note.
pub type ActText = Bounded<{ crate::limits::MAX_ACT_TEXT_BYTES }>;

impl<const MAX: usize> Bounded<MAX> {
    /// Makes bounded text of anything.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let clean: String = text.chars().take(MAX + 1).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if clean.len() <= MAX {
            return Self(clean);
        }
        let mut end = MAX.saturating_sub('…'.len_utf8());
        while !clean.is_char_boundary(end) {
            end -= 1;
        }
        Self(format!("{}…", &clean[..end]))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl<const MAX: usize> fmt::Display for Bounded<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const MAX: usize> From<&str> for Bounded<MAX> {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits() {
        assert_eq!(Bounded::<8>::new("a\0b\nc").as_str(), "a b c");
        assert_eq!(Bounded::<8>::new("ääääääää").as_str(), "ää…");
        assert!(ErrorText::new("€".repeat(10_000)).as_str().len() <= crate::limits::MAX_ERROR_TEXT_BYTES);
    }
}
