//! Pace: the token bucket of a destination. It only delays (I-08).

use core::time::Duration;

use crate::{Timestamp, destination::Pace};

/// What a bucket grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Emissions that may go now.
    pub granted: usize,
    /// New theoretical arrival time, to be kept in [`crate::Health::pace_at`].
    pub pace_at: Timestamp,
    /// When the next one may go, if fewer than wanted were granted.
    pub next: Option<Timestamp>,
}

/// Takes up to `want` emissions from the bucket (a generic cell rate algorithm: one stored time, no tokens to refill).
///
/// A stored time that lies further ahead than the whole burst allows (the clock went back) is brought back to it, so
/// that an odd clock can delay by one burst at the most.
pub fn take(pace: Pace, stored: Option<Timestamp>, now: Timestamp, want: usize) -> Grant {
    let interval = interval(pace);
    let burst = interval * pace.burst.max(1);
    let latest = now.after(burst);
    let mut at = stored.map_or(now, |stored| stored.clamp(now, latest));
    let mut granted = 0;
    while granted < want && at.after(interval) <= latest {
        at = at.after(interval);
        granted += 1;
    }
    let next = (granted < want).then(|| at.after(interval).before(burst));
    Grant { granted, pace_at: at, next }
}

fn interval(pace: Pace) -> Duration {
    Duration::from_micros(60_000_000 / u64::from(pace.per_minute.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { per_minute: 60, burst: 3 };

    #[test]
    fn burst_then_one_an_interval() {
        let now = Timestamp::from_micros(1_000_000_000);
        let first = take(PACE, None, now, 10);
        assert_eq!(first.granted, 3);
        assert_eq!(first.next, Some(now.after(Duration::from_secs(1))));
        let second = take(PACE, Some(first.pace_at), now.after(Duration::from_secs(1)), 10);
        assert_eq!(second.granted, 1);
        let much_later = take(PACE, Some(second.pace_at), now.after(Duration::from_mins(10)), 10);
        assert_eq!(much_later.granted, 3);
    }

    #[test]
    fn a_clock_that_goes_back_delays_by_one_burst_at_most() {
        let now = Timestamp::from_micros(1_000_000_000);
        let grant = take(PACE, Some(now.after(Duration::from_hours(24))), now, 1);
        assert_eq!(grant.granted, 0);
        assert_eq!(grant.next, Some(now.after(Duration::from_secs(1))));
    }
}
