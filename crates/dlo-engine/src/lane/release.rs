//! Giving claims back uncharged.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use dlo_core::{ClaimRef, TransitionResult, limits::MAX_PAGE};
use dlo_ports::{BoxFuture, StoreError};

use super::Lane;
use crate::{
    events,
    shared::{Phase, owned},
    trouble::Remedy,
};

/// Claims on their way back.
pub(super) struct Releasing {
    claims: Vec<ClaimRef>,
    future: BoxFuture<'static, Result<Vec<TransitionResult>, StoreError>>,
}

/// Claims with the answer to their release.
pub(super) type Answer = (Vec<ClaimRef>, Result<Vec<TransitionResult>, StoreError>);

impl Future for Releasing {
    type Output = Answer;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(self.future.as_mut().poll(cx));
        Poll::Ready((core::mem::take(&mut self.claims), answer))
    }
}

impl Lane {
    pub(super) fn start_release(&mut self) {
        if self.unreleased.is_empty() || self.releasing.is_some() || self.resting.is_some() {
            return;
        }
        let count = self.unreleased.len().min(MAX_PAGE);
        let claims: Vec<ClaimRef> = self.unreleased.drain(..count).collect();
        let sent = claims.clone();
        let future = owned(&self.shared.store, move |store| store.release(sent));
        self.releasing = Some(Releasing { claims, future });
    }

    pub(super) fn released(&mut self, (claims, answer): Answer) {
        self.releasing = None;
        match answer {
            Ok(results) => {
                self.store_worked("release");
                let mut applied = 0;
                for (claim, result) in claims.iter().zip(results) {
                    self.errand_ended(claim.key.entry);
                    if result == TransitionResult::Applied {
                        applied += 1;
                    } else {
                        events::stale(self.key(), claim.key.entry, "release", result);
                    }
                }
                self.shared.metrics.released(self.key(), applied);
            }
            Err(error) => {
                let remedy = self.shared.store_failed("release", error);
                if remedy == Remedy::End || self.phase() >= Phase::Cut {
                    // The end of the worker makes them lost, which is not charged either.
                    return;
                }
                self.unreleased.extend(claims);
                self.rest();
            }
        }
    }
}
