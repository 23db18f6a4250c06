//! Destinations whose rows can't be read: told once, left alone, tried again after a while; the others go on (trap D10).

use dlo_core::Timestamp;
use dlo_ports::{StoreError, StoreErrorKind, store::StoreResult};

use crate::{
    events, limits,
    shared::{LaneKey, Shared, locked},
};

/// Whether an error may be about the rows of one destination.
pub(crate) fn is_about_rows(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Schema)
}

impl Shared {
    /// Leaves a destination alone for a while, after that verb found rows of it that it can't read.
    pub(crate) fn set_aside(&self, key: &LaneKey, verb: &'static str, error: &StoreError) {
        self.metrics.store_error(error.code());
        let until = self.now().after(limits::UNREADABLE_RETRY);
        let mut set_aside = locked(&self.set_aside);
        if let Some((_, known)) = set_aside.get_mut(key) {
            *known = until;
        } else {
            set_aside.insert(key.clone(), (verb, until));
            events::destination_unreadable(key, verb, error);
        }
    }

    /// The verb works for the destination: if it was set aside because of that verb, it is taken up again.
    pub(crate) fn take_up(&self, key: &LaneKey, verb: &'static str) {
        let mut set_aside = locked(&self.set_aside);
        if set_aside.get(key).is_some_and(|(failed, _)| *failed == verb) {
            set_aside.remove(key);
            events::destination_readable(key, verb);
        }
    }

    /// Until when a destination is set aside.
    pub(crate) fn set_aside_until(&self, key: &LaneKey) -> Option<Timestamp> {
        locked(&self.set_aside).get(key).map(|(_, until)| *until)
    }

    /// Calls a verb about one destination until it works, or sets the destination aside (`Some(None)`). `None` when the
    /// run is ending.
    pub(crate) async fn insist_on<'a, T: Send + 'a>(
        &'a self,
        key: &LaneKey,
        verb: &'static str,
        call: impl Fn() -> StoreResult<'a, T>,
    ) -> Option<Option<T>> {
        let judged = || -> StoreResult<'a, Result<T, StoreError>> {
            let answer = call();
            Box::pin(async move {
                match answer.await {
                    Err(error) if is_about_rows(&error) => Ok(Err(error)),
                    answer => answer.map(Ok),
                }
            })
        };
        match self.insist(verb, judged).await? {
            Ok(answer) => {
                self.take_up(key, verb);
                Some(Some(answer))
            }
            Err(error) => {
                self.set_aside(key, verb, &error);
                Some(None)
            }
        }
    }
}
