//! Fenced changes by workers and maintenance: send marks, transitions, releases.

use dlo_core::{
    ClaimRef, DeadLetterDraft, EntryState, Fence, Lane, Receipt, Status, Timestamp, TransitionResult,
    decide::{Next, Transition},
    entry::Progress,
    limits::MAX_PAGE,
    text::Code,
};
use dlo_ports::{
    StoreError,
    store::{SettleAnswer, SettleRequest, Settlement},
};
use rusqlite::params;

use crate::{
    attempt,
    error::{Doing, bounded, invalid},
    fence::{self, ClaimEnds, Held, Judge, Judged, Verb, micros, no_claim},
    history::{End, Endings},
    memory::ClaimMemory,
    quarantine::{self, Ending},
    totals::{self, Totals},
    turn::Turn,
};

/// Sets send marks.
pub(crate) fn mark_sent(turn: &mut Turn<'_>, claims: &[ClaimRef]) -> Result<Vec<TransitionResult>, StoreError> {
    bounded("number of claims to mark", claims.len(), 0, MAX_PAGE)?;
    let mut judge = Judge::prepare(turn.tx, None, None)?;
    claims.iter().map(|claim| mark_one(turn, &mut judge, claim)).collect()
}

fn mark_one(turn: &Turn<'_>, judge: &mut Judge<'_>, claim: &ClaimRef) -> Result<TransitionResult, StoreError> {
    let held = match judge.judge(claim)? {
        Judged::Answer(answer) => return Ok(answer),
        Judged::Holds(held) => held,
    };
    if held.claim.is_none() {
        return Ok(no_claim(claim.fence));
    }
    if !held.send_mark {
        // Under a token the mark is a change of the row, so that maintenance which read it without the mark loses its
        // fence (I-10); under a version the worker's own fence must stay.
        let by = i64::from(matches!(claim.fence, Fence::Claim(_)));
        turn.tx
            .prepare_cached("UPDATE dlo_entry SET send_mark = 1, version = version + ?2, updated = ?3 WHERE seq = ?1")
            .and_then(|mut statement| statement.execute(params![held.seq, by, turn.now.as_micros()]))
            .doing("set send marks")?;
    }
    Ok(TransitionResult::Applied)
}

/// Gives claims back uncharged.
pub(crate) fn release(turn: &mut Turn<'_>, claims: &[ClaimRef]) -> Result<Vec<TransitionResult>, StoreError> {
    bounded("number of claims to release", claims.len(), 0, MAX_PAGE)?;
    let mut judge = Judge::prepare(turn.tx, Some(Verb::Release), None)?;
    let mut ends = ClaimEnds::default();
    let release = |claim| release_one(turn, &mut judge, claim, &mut ends);
    let results = claims.iter().map(release).collect::<Result<_, _>>()?;
    ends.save(turn.tx)?;
    Ok(results)
}

fn release_one(
    turn: &Turn<'_>,
    judge: &mut Judge<'_>,
    claim: &ClaimRef,
    ends: &mut ClaimEnds,
) -> Result<TransitionResult, StoreError> {
    let held = match judge.judge(claim)? {
        Judged::Answer(answer) => return Ok(answer),
        Judged::Holds(held) => held,
    };
    let Some(token) = held.claim else { return Ok(no_claim(claim.fence)) };
    if held.send_mark {
        return Ok(TransitionResult::StaleClaim);
    }
    let (last_token, last_version) = fence::columns(claim.fence);
    turn.tx
        .prepare_cached(include_str!("sql/entry_release.sql"))
        .and_then(|mut statement| statement.execute(params![held.seq, turn.now.as_micros(), last_token, last_version]))
        .doing("release claims")?;
    ends.add(token);
    Ok(TransitionResult::Applied)
}

/// Saves transitions of one destination, and its health.
pub(crate) fn settle(turn: &mut Turn<'_>, request: &SettleRequest) -> Result<SettleAnswer, StoreError> {
    bounded("number of settlements", request.settlements.len(), 0, MAX_PAGE)?;
    let (tenant, destination) = (&request.tenant, &request.destination);
    turn.caches.catalog.refresh(turn.tx)?;
    let Some(version) = turn.caches.catalog.find(turn.tx, tenant, destination)?.map(|found| found.version) else {
        return Err(invalid(format!("destination `{tenant}/{destination}` does not exist: apply it first")));
    };
    let results = settle_entries(turn, request, version)?;
    let (health, health_applied) = settle_health(turn, request)?;
    Ok(SettleAnswer { results, health, health_applied })
}

fn settle_entries(
    turn: &mut Turn<'_>,
    request: &SettleRequest,
    version: u64,
) -> Result<Vec<TransitionResult>, StoreError> {
    let memory = core::mem::take(&mut turn.caches.claims);
    let settling = Settling {
        turn,
        request,
        version,
        memory,
        totals: Totals::default(),
        ends: ClaimEnds::default(),
        judge: Judge::prepare(turn.tx, Some(Verb::Settle), Some(&request.destination))?,
        endings: Endings::prepare(turn.tx)?,
    };
    let (results, memory) = settling.run()?;
    turn.caches.claims = memory;
    Ok(results)
}

fn settle_health(turn: &mut Turn<'_>, request: &SettleRequest) -> Result<(dlo_core::Health, bool), StoreError> {
    let (tenant, destination) = (&request.tenant, &request.destination);
    let stored = turn.caches.health(turn.tx, tenant, destination)?;
    match &request.health {
        None => Ok((stored, true)),
        Some(change) if change.expected != stored.version => Ok((stored, false)),
        Some(change) => {
            let health = change.health.clone();
            let saved = turn.caches.save_health(turn.tx, tenant, destination, stored.version, health)?;
            Ok((saved, true))
        }
    }
}

/// A settle in progress.
struct Settling<'t, 'a> {
    turn: &'t Turn<'a>,
    request: &'t SettleRequest,
    /// Current version of the destination.
    version: u64,
    memory: ClaimMemory,
    totals: Totals,
    ends: ClaimEnds,
    judge: Judge<'t>,
    endings: Endings<'t>,
}

impl Settling<'_, '_> {
    fn run(mut self) -> Result<(Vec<TransitionResult>, ClaimMemory), StoreError> {
        let request = self.request;
        let mut results = Vec::with_capacity(request.settlements.len());
        for settlement in &request.settlements {
            results.push(self.settle_one(settlement)?);
        }
        self.endings.finish()?;
        self.ends.save(self.turn.tx)?;
        self.totals.save(self.turn.tx, request.tenant.as_str(), request.destination.as_str())?;
        Ok((results, self.memory))
    }

    fn settle_one(&mut self, settlement: &Settlement) -> Result<TransitionResult, StoreError> {
        let (claim, transition) = (&settlement.claim, &settlement.transition);
        if claim.key.tenant != self.request.tenant {
            return Ok(TransitionResult::Missing);
        }
        if self.deliver_remembered(claim, transition)? {
            self.record(claim, transition)?;
            return Ok(TransitionResult::Applied);
        }
        // A row that was settled before in this call must be gone when it is looked for again.
        self.endings.finish()?;
        let held = match self.judge.judge(claim)? {
            Judged::Answer(answer) => return Ok(answer),
            Judged::Holds(held) => held,
        };
        match &transition.next {
            Next::Delivered { receipt } => {
                if !self.deliver(&held, claim.fence, &transition.progress, receipt.as_ref())? {
                    return Ok(no_claim(claim.fence));
                }
            }
            Next::Wait { lane, due, status } => {
                let kept = Kept { place: Some((*lane, *due)), status: *status, manual_review: false };
                self.keep(&held, claim.fence, &transition.progress, &kept)?;
            }
            Next::ManualReview => {
                self.totals.add(totals::MANUAL_REVIEW, 1);
                let kept = Kept { place: None, status: Status::Failed, manual_review: true };
                self.keep(&held, claim.fence, &transition.progress, &kept)?;
            }
            Next::DeadLetter(draft) => self.quarantine(&held, claim.fence, &transition.progress, draft)?,
        }
        self.count(&held, &transition.progress);
        self.record(claim, transition)?;
        Ok(TransitionResult::Applied)
    }

    /// A delivery under a token that this connection claimed needs no look at the row first: the copy to history names
    /// the token. False if it is not so, and then nothing was changed.
    fn deliver_remembered(&mut self, claim: &ClaimRef, transition: &Transition) -> Result<bool, StoreError> {
        let (Next::Delivered { receipt }, Fence::Claim(token)) = (&transition.next, claim.fence) else {
            return Ok(false);
        };
        let Some(held) = self.memory.take(token, &claim.key, &self.request.destination) else { return Ok(false) };
        let delivered = self.deliver(&held, claim.fence, &transition.progress, receipt.as_ref())?;
        if delivered {
            self.count(&held, &transition.progress);
        }
        Ok(delivered)
    }

    fn record(&self, claim: &ClaimRef, transition: &Transition) -> Result<(), StoreError> {
        match &transition.attempt {
            Some(attempt) => attempt::record(self.turn.tx, &claim.key, attempt),
            None => Ok(()),
        }
    }

    fn deliver(
        &mut self,
        held: &Held,
        fence: Fence,
        progress: &Progress,
        receipt: Option<&Receipt>,
    ) -> Result<bool, StoreError> {
        let at = self.turn.now.as_micros();
        let end = End { state: EntryState::Delivered, at, receipt, progress, fence: Some(fence) };
        let delivered = self.endings.end(held, &end)?;
        if delivered {
            self.totals.add(totals::LIVE, -1);
            self.totals.add(totals::DELIVERED, 1);
        }
        Ok(delivered)
    }

    fn quarantine(
        &mut self,
        held: &Held,
        fence: Fence,
        progress: &Progress,
        draft: &DeadLetterDraft,
    ) -> Result<(), StoreError> {
        let ending = Ending {
            seq: held.seq,
            draft,
            destination_version: self.version,
            now: self.turn.now.as_micros(),
            fence: Some(fence),
        };
        quarantine::open(self.turn.tx, &ending, Some(progress))?;
        self.totals.dead_letter(draft.class, &draft.reason);
        Ok(())
    }

    /// The end of a claim or wait, as totals and claims see it.
    fn count(&mut self, held: &Held, progress: &Progress) {
        self.totals.add(totals::FAILED_ATTEMPTS, i64::from(progress.counters.failed).saturating_sub(held.failed));
        if held.manual_review {
            self.totals.add(totals::MANUAL_REVIEW, -1);
        }
        if let Some(token) = held.claim {
            self.ends.add(token);
        }
    }

    fn keep(&self, held: &Held, fence: Fence, progress: &Progress, kept: &Kept) -> Result<(), StoreError> {
        let counters = progress.counters;
        let failure = progress.last_failure.as_ref();
        let (last_token, last_version) = fence::columns(fence);
        self.turn
            .tx
            .prepare_cached(include_str!("sql/entry_keep.sql"))
            .and_then(|mut statement| {
                statement.execute(params![
                    held.seq,
                    self.turn.now.as_micros(),
                    kept.place.map(|(lane, _)| lane as i64),
                    kept.place.map(|(_, due)| due.as_micros()),
                    kept.status.as_str(),
                    kept.manual_review,
                    counters.claims,
                    counters.failed,
                    counters.crashed,
                    counters.deferred,
                    counters.interrupted,
                    progress.attempts,
                    micros(progress.first_failed),
                    micros(progress.last_failed),
                    failure.map(|failure| failure.class.as_str()),
                    failure.map(|failure| failure.reason.as_str()),
                    failure.and_then(|failure| failure.provider_code.as_ref()).map(Code::as_str),
                    failure.map(|failure| failure.text.as_str()),
                    progress.unanswered,
                    last_token,
                    last_version,
                ])
            })
            .doing("settle")?;
        Ok(())
    }
}

/// Where a row that is kept stands.
struct Kept {
    /// `None` leaves it where it was.
    place: Option<(Lane, Timestamp)>,
    status: Status,
    manual_review: bool,
}
