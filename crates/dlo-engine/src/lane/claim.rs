//! Claiming: which kind, how many, for how long, and what the page says.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use dlo_core::{Class, Fence, Token, health::Admission, limits::MAX_PAGE, policy::DrainMode, reason};
use dlo_ports::{
    BoxFuture, StoreError, StoreErrorKind,
    store::{ClaimKind, ClaimPage, ClaimRequest},
};
use tokio::sync::OwnedSemaphorePermit;

use super::{Errand, Lane, Work};
use crate::{
    directory::Found,
    events, limits,
    shared::{LaneKey, Phase, Shared, locked},
    trouble::Remedy,
    unreadable::is_about_rows,
};

/// A claim on its way.
pub(super) struct Claiming {
    errand: Errand,
    limit: usize,
    permit: Option<OwnedSemaphorePermit>,
    token: Token,
    hold_for: Duration,
    future: BoxFuture<'static, Result<Box<Claim>, StoreError>>,
}

/// A page, with the destination read again when its version has moved on.
pub(super) struct Claim {
    page: ClaimPage,
    reloaded: Option<Result<Found, StoreError>>,
}

pub(super) struct Answer {
    errand: Errand,
    limit: usize,
    permit: Option<OwnedSemaphorePermit>,
    token: Token,
    hold_for: Duration,
    claim: Result<Box<Claim>, StoreError>,
}

impl Future for Claiming {
    type Output = Answer;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let claim = core::task::ready!(self.future.as_mut().poll(cx));
        let Self { errand, limit, token, hold_for, .. } = *self;
        Poll::Ready(Answer { errand, limit, permit: self.permit.take(), token, hold_for, claim })
    }
}

async fn claim(
    shared: Arc<Shared>,
    key: LaneKey,
    request: ClaimRequest,
    version: u64,
) -> Result<Box<Claim>, StoreError> {
    let page = match shared.store.claim(request.clone()).await {
        // A machine that slept wakes with its lease over. If nobody ended this incarnation, it can be renewed.
        Err(error) if error.kind() == StoreErrorKind::Fenced => {
            shared.renew().await?;
            shared.store.claim(request).await?
        }
        answer => answer?,
    };
    let reloaded = if page.destination_version == version { None } else { Some(shared.load(&key).await) };
    Ok(Box::new(Claim { page, reloaded }))
}

impl Lane {
    /// Starts a claim if there may be due entries and room for a page of them.
    pub(super) fn start_claim(&mut self) {
        let blocked = self.claiming.is_some()
            || self.resting.is_some()
            || self.pausing.is_some()
            || self.phase() != Phase::Running
            || self.leaving
            || !(self.wants_claim || self.wants_suspect);
        if blocked {
            return;
        }
        let Some((errand, limit, permit)) = self.next_errand() else { return };
        // What is wanted stays wanted until the claim is on its way.
        if !self.shared.trouble.may_claim() {
            self.rest();
            return;
        }
        self.claiming = Some(self.claim(errand, limit, permit));
    }

    fn next_errand(&mut self) -> Option<(Errand, usize, Option<OwnedSemaphorePermit>)> {
        match self.admission() {
            Admission::Held(_) => {
                self.permit = None;
                None
            }
            Admission::Probe if self.probe.is_some() => None,
            Admission::Probe => Some((Errand::Probe, 1, None)),
            Admission::Open(_) => self.suspect_errand().or_else(|| self.page_errand()),
        }
    }

    /// One suspect, once no other is in flight in this process; until then the lane waits for its turn.
    fn suspect_errand(&mut self) -> Option<(Errand, usize, Option<OwnedSemaphorePermit>)> {
        if !self.wants_suspect || self.suspect.is_some() || self.seeking.is_some() {
            return None;
        }
        let turns = Arc::clone(&self.shared.suspect);
        let Some(permit) = self.permit.take().or_else(|| Arc::clone(&turns).try_acquire_owned().ok()) else {
            self.seeking = Some(Box::pin(async move { turns.acquire_owned().await.ok() }));
            return None;
        };
        Some((Errand::Suspect, 1, Some(permit)))
    }

    pub(super) fn permit_given(&mut self, permit: Option<OwnedSemaphorePermit>) {
        self.seeking = None;
        self.wants_suspect = permit.is_some();
        self.permit = permit;
    }

    /// The next page, early enough that emissions don't wait for it: when half a page is left, or as much as is in
    /// flight at once. Never more is in hand than a page and the concurrency.
    fn page_errand(&mut self) -> Option<(Errand, usize, Option<OwnedSemaphorePermit>)> {
        if !self.wants_claim {
            return None;
        }
        let width = self.width();
        let in_hand = self.in_hand();
        let page = self.page(width);
        if in_hand > width.max(page / 2) {
            return None;
        }
        // While the destination recovers, nothing is claimed that can't start at once.
        let recovering = matches!(self.admission(), Admission::Open(Some(_)));
        let room = if recovering { width } else { page + width };
        let limit = page.min(room.saturating_sub(in_hand));
        if limit == 0 {
            return None;
        }
        Some((Errand::Normal, limit, None))
    }

    /// A page that is emitted before the lease is over, however slowly the destination answers (trap D23).
    fn page(&mut self, width: usize) -> usize {
        let policy = &self.loaded.destination.spec.policy;
        let page = policy.page;
        let rounds = match self.shared.options.mode {
            DrainMode::Plain => usize::MAX,
            DrainMode::Claim => {
                let rounds = self.shared.options.lease.as_micros() / policy.emission_deadline.as_micros().max(1);
                usize::try_from(rounds).unwrap_or(usize::MAX).max(1)
            }
        };
        let limit = (page as usize).min(width.saturating_mul(rounds)).clamp(1, MAX_PAGE);
        let recovering = matches!(self.admission(), Admission::Open(Some(_)));
        if limit < page as usize && !recovering && !self.warned_page {
            self.warned_page = true;
            events::page_shrunk(&self.slot.key, page, limit);
        }
        limit
    }

    /// Hard deadline of a claim: twice what its entries, and those in hand before them, may take; at least the lease.
    fn hold_for(&self, limit: usize) -> Duration {
        match self.shared.options.mode {
            DrainMode::Plain => Duration::MAX,
            DrainMode::Claim => {
                let rounds = u32::try_from((self.in_hand() + limit).div_ceil(self.width())).unwrap_or(u32::MAX);
                let page_time = self.loaded.destination.spec.policy.emission_deadline.saturating_mul(rounds);
                self.shared.options.lease.max(page_time.saturating_mul(2))
            }
        }
    }

    fn claim(&mut self, errand: Errand, limit: usize, permit: Option<OwnedSemaphorePermit>) -> Claiming {
        match errand {
            Errand::Normal => self.wants_claim = false,
            Errand::Suspect => self.wants_suspect = false,
            Errand::Probe => (self.wants_claim, self.wants_suspect) = (false, false),
        }
        self.claims += 1;
        if self.claims.is_multiple_of(limits::SUSPECT_TURN) {
            self.wants_suspect = true;
        }
        let (tenant, destination) = self.slot.key.clone();
        let (token, hold_for) = (self.shared.token(), self.hold_for(limit));
        let request = ClaimRequest {
            tenant,
            destination,
            incarnation: self.shared.incarnation,
            token,
            hold_for,
            limit,
            kind: match errand {
                Errand::Normal => ClaimKind::Normal,
                Errand::Probe => ClaimKind::Probe,
                Errand::Suspect => ClaimKind::Suspect,
            },
        };
        let version = self.loaded.destination.version;
        let future = claim(Arc::clone(&self.shared), self.slot.key.clone(), request, version);
        Claiming { errand, limit, permit, token, hold_for, future: Box::pin(future) }
    }

    pub(super) fn claim_answered(&mut self, answer: Answer) {
        self.claiming = None;
        self.shared.trouble.claim_answered();
        match answer.claim {
            Ok(claim) => {
                self.store_worked("claim");
                self.shared.take_up(&self.slot.key, "claim");
                self.page_claimed(answer.errand, answer.limit, answer.permit, *claim);
            }
            Err(error) if is_about_rows(&error) => {
                self.shared.set_aside(&self.slot.key, "claim", &error);
                self.leave_to_hold();
            }
            Err(error) => {
                if error.kind() == StoreErrorKind::Unavailable {
                    // It may have been saved without the answer arriving; the sweep gives it back when it is over.
                    locked(&self.shared.orphans).insert(answer.token, self.now().after(answer.hold_for));
                }
                if self.shared.store_failed("claim", error) == Remedy::Retry {
                    self.wants_claim = true;
                    self.rest();
                }
            }
        }
    }

    fn page_claimed(&mut self, errand: Errand, limit: usize, permit: Option<OwnedSemaphorePermit>, claim: Claim) {
        let Claim { page, reloaded } = claim;
        self.shared.clock_told(page.now);
        let got = page.claimed.len();
        let mode = self.shared.options.mode;
        let work = page.claimed.into_iter().map(|claimed| {
            let fence = match (mode, &claimed.entry.claim) {
                (DrainMode::Claim, Some(claim)) => Fence::Claim(claim.token),
                _ => Fence::Version(claimed.entry.version),
            };
            Work { claimed, fence, errand, may_be_marked: false }
        });
        self.queue.extend(work);
        self.shared.metrics.claimed(&self.slot.key, got);
        for key in &page.quarantined {
            self.shared.metrics.dead_letter(&self.slot.key, Class::Deterministic, &reason::ENTRY_UNREADABLE);
            events::unreadable(&self.slot.key, key);
        }
        self.health_told(page.health);
        if let Some(until) = page.paced_until {
            self.pausing = Some(self.shared.env.sleep(until.since(page.now)));
            self.paced_until = Some(until);
        }
        match errand {
            Errand::Normal => {
                self.more = page.more || got == limit;
                self.wants_claim |= self.more;
                self.wants_suspect |= got == 0 && page.paced_until.is_none() && self.suspect.is_none();
            }
            Errand::Probe => self.probe = self.queue.back().filter(|_| got > 0).map(|work| work.entry().key.entry),
            Errand::Suspect => {
                let entry = self.queue.back().filter(|_| got > 0).map(|work| work.entry().key.entry);
                self.suspect = entry.zip(permit);
            }
        }
        if let Some(reloaded) = reloaded {
            self.destination_reloaded(reloaded);
        }
        if self.phase() >= Phase::Draining {
            self.put_down_unstarted();
        }
    }

    /// The destination changed while it was drained: entries are emitted and decided under the new version.
    fn destination_reloaded(&mut self, reloaded: Result<Found, StoreError>) {
        match reloaded {
            Ok(Some((loaded, health))) => {
                self.warned_page = false;
                self.health_told(health);
                if let Err(error) = &loaded.emitter {
                    events::emitter_unknown(&self.slot.key, error);
                    self.leave_to_hold();
                }
                self.loaded = loaded;
            }
            Ok(None) => {
                events::destination_missing(&self.slot.key);
                self.leave_to_hold();
            }
            Err(error) if is_about_rows(&error) => {
                self.shared.set_aside(&self.slot.key, "destination", &error);
                self.leave_to_hold();
            }
            Err(error) => {
                if self.shared.store_failed("destination", error) == Remedy::Retry {
                    self.rest();
                }
                self.leave_to_hold();
            }
        }
    }

    /// Gives everything back and claims no more; the look for work comes back to the destination.
    fn leave_to_hold(&mut self) {
        self.put_down_unstarted();
        self.leaving = true;
    }
}
