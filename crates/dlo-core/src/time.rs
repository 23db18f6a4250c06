//! The one time type: microseconds since the Unix epoch, UTC.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Arithmetic saturates, so that a far-future `Retry-After` or an odd clock can't overflow a due time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than anything that happens; the deadline of a lease without end (plain mode).
    pub const MAX: Self = Self(253_402_207_199_999_999);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This time plus `span`, at most [`Timestamp::MAX`].
    pub fn after(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// This time minus `span`, saturating.
    pub fn before(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with six fraction digits, or the raw microseconds outside the calendar's range.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(stamp) => write!(f, "{stamp:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

/// A text was not an RFC 3339 time with an offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time with an offset (for example 2026-11-30T12:00:00Z)")]
pub struct ParseTimestampError;

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let stamp: jiff::Timestamp = text.parse().map_err(|_| ParseTimestampError)?;
        Ok(Self(stamp.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let at: Timestamp = "2026-11-30T13:00:00.25+01:00".parse().expect("valid");
        assert_eq!(at.to_string(), "2026-11-30T12:00:00.250000Z");
        assert_eq!(at.to_string().parse(), Ok(at));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
    }
}
