//! The database's time between two answers of the store (I-06, trap D17).

use core::sync::atomic::{AtomicI64, Ordering};

use dlo_core::Timestamp;

/// How far the database's clock is from the engine's, as the store's latest answer showed.
///
/// Due times are stamped by the database's clock; a worker whose own clock is wrong must neither take work early nor
/// stamp a wrong time.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    ahead_micros: AtomicI64,
}

impl StoreClock {
    /// Takes note of the database's time in an answer that arrived at `here`.
    pub(crate) fn answered(&self, there: Timestamp, here: Timestamp) {
        self.ahead_micros.store(there.as_micros().saturating_sub(here.as_micros()), Ordering::Relaxed);
    }

    /// The database's time at the engine's time `here`.
    pub(crate) fn at(&self, here: Timestamp) -> Timestamp {
        Timestamp::from_micros(here.as_micros().saturating_add(self.ahead_micros.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_database_however_wrong_the_own_clock_is() {
        let clock = StoreClock::default();
        clock.answered(Timestamp::from_micros(5_000), Timestamp::from_micros(9_000));
        assert_eq!(clock.at(Timestamp::from_micros(9_500)), Timestamp::from_micros(5_500));
        clock.answered(Timestamp::from_micros(6_000), Timestamp::from_micros(1_000));
        assert_eq!(clock.at(Timestamp::from_micros(1_000)), Timestamp::from_micros(6_000));
    }
}
