//! Manners towards other processes that write to the same file.

use core::time::Duration;
use std::time::Instant;

use rusqlite::Connection;

/// Another process counts as writing for this long after a commit of it was seen.
const LATELY: Duration = Duration::from_secs(1);
/// Shortest and longest pause after a commit while another process writes.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(30));

/// How long to leave the file alone after a transaction: as long as it took, within bounds, while somebody else has
/// written lately; otherwise not at all.
pub(crate) fn pause(since_others: Option<Duration>, took: Duration) -> Duration {
    match since_others {
        Some(since) if since < LATELY => took.clamp(PAUSE.0, PAUSE.1),
        _ => Duration::ZERO,
    }
}

/// What was seen of others.
#[derive(Default)]
pub(crate) struct Manners {
    data_version: Option<i64>,
    others: Option<Instant>,
}

impl Manners {
    /// Looks whether another connection has committed since the last look.
    pub(crate) fn look(&mut self, conn: &Connection) -> bool {
        let version = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        // What can't be read now is seen at the next look; the verbs themselves report the trouble.
        let Ok(version) = version else { return false };
        let changed = self.data_version.replace(version).is_some_and(|before| before != version);
        if changed {
            self.met_others();
        }
        changed
    }

    /// Another process held the file.
    pub(crate) fn met_others(&mut self) {
        self.others = Some(Instant::now());
    }

    /// How long ago another process was seen writing.
    pub(crate) fn since_others(&self) -> Option<Duration> {
        self.others.map(|at| at.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_only_while_others_write() {
        assert_eq!(pause(None, MS * 10), Duration::ZERO);
        assert_eq!(pause(Some(LATELY), MS * 10), Duration::ZERO);
        assert_eq!(pause(Some(MS * 999), MS * 10), MS * 10);
    }

    #[test]
    fn pauses_as_long_as_the_transaction_took_within_bounds() {
        assert_eq!(pause(Some(MS), Duration::ZERO), MS);
        assert_eq!(pause(Some(MS), MS * 7), MS * 7);
        assert_eq!(pause(Some(MS), MS * 5_000), MS * 30);
    }
}
