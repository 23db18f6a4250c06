//! When the next try is due. Randomness is an argument, so that the same inputs give the same time.

use core::time::Duration;

use crate::{DeliveryPolicy, Timestamp, policy::Jitter};

/// Longest time that is added to a minimum (a floor, a `Retry-After`), so that a herd does not come back as one.
pub const MAX_SPREAD: Duration = Duration::from_mins(1);

/// When the next try is due after the `failures`-th failed attempt of the generation (from 1).
///
/// The schedule's delay with equal jitter, and never less than two minimums: `retry_delay`, and the provider's
/// `retry_after` up to `retry_after_cap`. Jitter never shortens a minimum; a minimum that decides is spread upwards by
/// up to a tenth of it, at most [`MAX_SPREAD`]. With [`Jitter::None`] nothing is random.
pub fn retry_due(
    policy: &DeliveryPolicy,
    failures: u32,
    retry_after: Option<Duration>,
    now: Timestamp,
    random: u64,
) -> Timestamp {
    let index = (failures.max(1) as usize - 1).min(policy.schedule.len().saturating_sub(1));
    let scheduled = policy.schedule.get(index).copied().unwrap_or(policy.retry_delay);
    let asked = retry_after.unwrap_or_default().min(policy.retry_after_cap);
    let minimum = asked.max(policy.retry_delay);
    now.after(jittered(policy.jitter, scheduled, minimum, random))
}

/// When an entry is due that was put off.
///
/// A time that lies ahead is taken as it is (a provider's time beats `deferred_delay`). Without one, or with one that
/// has passed already, it waits `deferred_delay`: an emitter whose clock runs behind would otherwise be asked again
/// without a pause, and a put-off entry uses no allowance that would end this.
pub fn put_off_due(policy: &DeliveryPolicy, until: Option<Timestamp>, now: Timestamp, random: u64) -> Timestamp {
    match until {
        Some(until) if until > now => until,
        _ => now.after(jittered(policy.jitter, Duration::ZERO, policy.deferred_delay, random)),
    }
}

fn jittered(jitter: Jitter, delay: Duration, minimum: Duration, random: u64) -> Duration {
    match jitter {
        Jitter::None => delay.max(minimum),
        Jitter::Equal => {
            let half = delay / 2;
            let equal = half + part_of(delay.saturating_sub(half), random);
            if equal > minimum { equal } else { minimum + part_of((minimum / 10).min(MAX_SPREAD), random) }
        }
    }
}

/// A part of `span`, from nothing to all of it, in microseconds.
fn part_of(span: Duration, random: u64) -> Duration {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    match micros.checked_add(1) {
        Some(choices) => Duration::from_micros(random % choices),
        None => Duration::from_micros(random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn delay(policy: &DeliveryPolicy, failures: u32, retry_after: Option<Duration>, random: u64) -> Duration {
        retry_due(policy, failures, retry_after, NOW, random).since(NOW)
    }

    #[test]
    fn the_schedule_repeats_its_last_delay() {
        let policy = DeliveryPolicy { jitter: Jitter::None, ..Default::default() };
        let minutes: Vec<u64> = (0..7).map(|n| delay(&policy, n, None, 7).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 1, 5, 25, 125, 125, 125]);
    }

    #[test]
    fn equal_jitter_stays_between_half_and_all() {
        let policy = DeliveryPolicy { retry_delay: Duration::ZERO, ..Default::default() };
        let all = MINUTE * 25;
        let half = all / 2;
        assert_eq!(delay(&policy, 3, None, 0), half);
        assert_eq!(delay(&policy, 3, None, half.as_micros() as u64), all);
        for random in [1, 999, 12_345_678_901, u64::MAX] {
            let got = delay(&policy, 3, None, random);
            assert!(half <= got && got <= all, "{got:?}");
        }
    }

    #[test]
    fn retry_delay_is_a_floor_that_jitter_never_shortens() {
        let policy = DeliveryPolicy { retry_delay: MINUTE * 10, ..Default::default() };
        for random in [0, 1, u64::MAX] {
            let got = delay(&policy, 1, None, random);
            assert!(MINUTE * 10 <= got && got <= MINUTE * 11, "{got:?}");
        }
    }

    #[test]
    fn retry_after_is_a_minimum_and_capped() {
        let policy = DeliveryPolicy { jitter: Jitter::None, retry_after_cap: MINUTE * 60, ..Default::default() };
        assert_eq!(delay(&policy, 1, Some(MINUTE * 3), 0), MINUTE * 3);
        assert_eq!(delay(&policy, 2, Some(MINUTE * 3), 0), MINUTE * 5, "shorter than the schedule: no effect");
        assert_eq!(delay(&policy, 1, Some(Duration::MAX), 0), MINUTE * 60);
        let spread = DeliveryPolicy::default();
        let got = delay(&spread, 1, Some(MINUTE * 60), u64::MAX - 3);
        assert!(MINUTE * 60 <= got && got <= MINUTE * 61, "{got:?}");
    }

    #[test]
    fn put_off_takes_a_time_ahead_and_else_the_deferred_delay() {
        let policy = DeliveryPolicy { jitter: Jitter::None, ..Default::default() };
        let later = NOW.after(Duration::from_secs(5));
        assert_eq!(put_off_due(&policy, Some(later), NOW, 0), later);
        assert_eq!(put_off_due(&policy, None, NOW, 0), NOW.after(MINUTE));
        assert_eq!(put_off_due(&policy, Some(NOW.before(MINUTE)), NOW, 0), NOW.after(MINUTE));
    }

    #[test]
    fn extreme_durations_do_not_overflow() {
        let policy = DeliveryPolicy {
            schedule: vec![crate::policy::MAX_DURATION],
            retry_after_cap: crate::policy::MAX_DURATION,
            ..Default::default()
        };
        assert!(retry_due(&policy, u32::MAX, Some(Duration::MAX), Timestamp::MAX, u64::MAX) <= Timestamp::MAX);
    }
}
