//! Durations as people write them: `5m`, `30s`, `1h 30m`, `250ms`, `7d`.

use core::time::Duration;

/// Units, largest first, with their length in microseconds. No month and no year: their length is not fixed.
const UNITS: [(&str, u64); 7] = [
    ("w", 7 * 86_400_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// A text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a duration such as `30s`, `5m`, `1h 30m` or `7d`: whole numbers, each with one of the units w, d, h, m, s, \
     ms, us, largest first"
)]
pub struct DurationError;

/// Reads a duration. Strict: a number without a unit, a unit twice, a sign or a fraction is an error.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(dlo::duration::parse("1h 30m"), Ok(Duration::from_secs(5_400)));
/// assert!(dlo::duration::parse("90").is_err());
/// ```
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut units = UNITS.as_slice();
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |b| b.is_ascii_digit());
        let (unit, after) = split_while(after, |b| b.is_ascii_lowercase());
        let at = units.iter().position(|(name, _)| *name == unit).ok_or(DurationError)?;
        let number: u64 = number.parse().map_err(|_| DurationError)?;
        let part = number.checked_mul(units[at].1).ok_or(DurationError)?;
        total = total.checked_add(part).ok_or(DurationError)?;
        units = &units[at + 1..];
        rest = match after.strip_prefix(' ') {
            Some("") => return Err(DurationError),
            Some(more) => more,
            None => after,
        };
    }
    if text.is_empty() { Err(DurationError) } else { Ok(Duration::from_micros(total)) }
}

fn split_while(text: &str, take: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !take(b)).unwrap_or(text.len()))
}

/// Writes a duration so that [`parse`] reads it back, to the microsecond; weeks are written as days.
pub fn format(span: Duration) -> String {
    let mut rest = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (unit, micros) in &UNITS[1..] {
        if rest >= *micros {
            parts.push(format!("{}{unit}", rest / micros));
            rest %= micros;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn friendly_forms_are_read() {
        for (text, millis) in [
            ("0s", 0),
            ("250ms", 250),
            ("5m", 300_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("1w", 604_800_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            " ",
            "5",
            "m",
            "5 m",
            "-5m",
            "1.5h",
            "5m ",
            " 5m",
            "5m  3s",
            "3s 5m",
            "5m 5m",
            "5M",
            "5min",
            "99999999999w",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for micros in [0, 1, 999, 1_000, 61_000_000, 90_061_000_001, 700_000_000_000] {
            let span = Duration::from_micros(micros);
            assert_eq!(parse(&format(span)), Ok(span));
        }
        assert_eq!(format(Duration::from_mins(90)), "1h 30m");
    }
}
