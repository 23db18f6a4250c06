//! What the command line shows of a store, as JSON fields and as table cells. Field names are stable.
//!
//! Wire types are made of views, which hold no payload byte: so nothing here can show one (I-13).

pub(crate) mod act;
pub(crate) mod attempt;
pub(crate) mod audit;
pub(crate) mod dead_letter;
pub(crate) mod destination;
pub(crate) mod entry;
pub(crate) mod envelope;
pub(crate) mod stats;
pub(crate) mod worker;

use core::time::Duration;

use dlo_core::Timestamp;

/// Said of an entry or dead letter whose last send may have been taken: a 500 is an answer, and settles nothing (I-10).
pub(crate) const UNANSWERED: &str = "no answer to the last send settles whether it happened: it may have";

/// A time in JSON: RFC 3339 with six fraction digits; `null` for "until a person acts".
pub(crate) fn time(at: Timestamp) -> Option<String> {
    (at < Timestamp::MAX).then(|| at.to_string())
}

/// A time in a table: to the second.
pub(crate) fn time_cell(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

/// An optional value in a table.
pub(crate) fn or_dash(value: Option<String>) -> String {
    value.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use core::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A span for people: the two largest units.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 && !span.is_zero() => format!("{}ms", span.as_millis()),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let text = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(text(0), "0s");
        assert_eq!(span(Duration::from_millis(20)), "20ms");
        assert_eq!(text(75), "1m15s");
        assert_eq!(text(3_700), "1h01m");
        assert_eq!(text(90_000), "1d01h");
    }

    #[test]
    fn times_are_cut_to_the_second_in_tables_only() {
        let at = Timestamp::from_micros(1_500_000);
        assert_eq!(time_cell(at), "1970-01-01T00:00:01Z");
        assert_eq!(time(at).as_deref(), Some("1970-01-01T00:00:01.500000Z"));
        assert_eq!(time(Timestamp::MAX), None);
    }
}
