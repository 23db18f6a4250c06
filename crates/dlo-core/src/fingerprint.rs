//! Fingerprint of a failure: class, reason, destination and normalised text, versioned.

use core::fmt;

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
    pub template: crate::text::ErrorText,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fp{}_", self.version)?;
        self.hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
