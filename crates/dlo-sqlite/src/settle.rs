//! Fenced changes by workers and maintenance: send marks, transitions, releases.

use dlo_core::{
    ClaimRef, EntryState, Fence, Receipt, Status, TransitionResult,
    decide::{Next, Transition},
    entry::Progress,
    limits::MAX_PAGE,
    text::Code,
};
use dlo_ports::{
    StoreError,
    store::{SettleAnswer, SettleRequest, Settlement},
};
use rusqlite::{CachedStatement, Row, params};

use crate::{
    attempt,
    error::{Doing, bounded, invalid},
    fence::{self, ClaimEnds, Held, Judged, Verb, judge, micros, no_claim},
    history::{End, Endings, Gone},
    quarantine::{self, Ending},
    totals::{self, Totals},
    turn::Turn,
};

/// Sets send marks.
pub(crate) fn mark_sent(turn: &mut Turn<'_>, claims: &[ClaimRef]) -> Result<Vec<TransitionResult>, StoreError> {
    bounded("number of claims to mark", claims.len(), 0, MAX_PAGE)?;
    claims.iter().map(|claim| mark_one(turn, claim)).collect()
}

fn mark_one(turn: &Turn<'_>, claim: &ClaimRef) -> Result<TransitionResult, StoreError> {
    let held = match judge(turn.tx, claim, None, None)? {
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
    let mut ends = ClaimEnds::default();
    let results = claims.iter().map(|claim| release_one(turn, claim, &mut ends)).collect::<Result<_, _>>()?;
    ends.save(turn.tx)?;
    Ok(results)
}

fn release_one(turn: &Turn<'_>, claim: &ClaimRef, ends: &mut ClaimEnds) -> Result<TransitionResult, StoreError> {
    let held = match judge(turn.tx, claim, Some(Verb::Release), None)? {
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
    let mut settling = Settling {
        turn,
        request,
        version,
        totals: Totals::default(),
        ends: ClaimEnds::default(),
        endings: Endings::prepare(turn.tx)?,
        by_token: turn.tx.prepare_cached(include_str!("sql/entry_deliver_by_token.sql")).doing("settle")?,
        by_version: turn.tx.prepare_cached(include_str!("sql/entry_deliver_by_version.sql")).doing("settle")?,
    };
    let mut results = Vec::with_capacity(request.settlements.len());
    for settlement in &request.settlements {
        results.push(settling.settle_one(settlement)?);
    }
    let Settling { totals, ends, .. } = settling;
    ends.save(turn.tx)?;
    totals.save(turn.tx, tenant.as_str(), destination.as_str())?;
    let (health, health_applied) = settle_health(turn, request)?;
    Ok(SettleAnswer { results, health, health_applied })
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
    totals: Totals,
    ends: ClaimEnds,
    endings: Endings<'a>,
    by_token: CachedStatement<'a>,
    by_version: CachedStatement<'a>,
}

impl Settling<'_, '_> {
    fn settle_one(&mut self, settlement: &Settlement) -> Result<TransitionResult, StoreError> {
        let (claim, transition) = (&settlement.claim, &settlement.transition);
        if claim.key.tenant != self.request.tenant {
            return Ok(TransitionResult::Missing);
        }
        if let Next::Delivered { receipt } = &transition.next {
            if self.deliver(claim, transition, receipt.as_ref())? {
                self.record(claim, transition)?;
                return Ok(TransitionResult::Applied);
            }
        }
        let held = match judge(self.turn.tx, claim, Some(Verb::Settle), Some(&self.request.destination))? {
            Judged::Answer(answer) => return Ok(answer),
            Judged::Holds(held) => held,
        };
        self.count(&held, &transition.progress);
        match &transition.next {
            // The delete above had the same condition as the fence that holds.
            Next::Delivered { .. } => return Ok(TransitionResult::ConcurrencyLost),
            Next::Wait { lane, due, status } => {
                self.keep(
                    &held,
                    claim.fence,
                    &transition.progress,
                    &Kept {
                        lane: Some(*lane as i64),
                        due: Some(due.as_micros()),
                        status: *status,
                        manual_review: false,
                    },
                )?;
            }
            Next::ManualReview => {
                self.totals.add(totals::MANUAL_REVIEW, 1);
                self.keep(
                    &held,
                    claim.fence,
                    &transition.progress,
                    &Kept { lane: None, due: None, status: Status::Failed, manual_review: true },
                )?;
            }
            Next::DeadLetter(draft) => {
                let ending = Ending {
                    seq: held.seq,
                    draft,
                    destination_version: self.version,
                    now: self.turn.now.as_micros(),
                    fence: Some(claim.fence),
                };
                quarantine::open(self.turn.tx, &ending, Some(&transition.progress))?;
                self.totals.dead_letter(draft.class, &draft.reason);
            }
        }
        self.record(claim, transition)?;
        Ok(TransitionResult::Applied)
    }

    /// Delivered: one delete that is its own fence check, and one history row. False if the fence is broken.
    fn deliver(
        &mut self,
        claim: &ClaimRef,
        transition: &Transition,
        receipt: Option<&Receipt>,
    ) -> Result<bool, StoreError> {
        let key = &claim.key;
        let ids = (key.tenant.as_str(), key.entry.as_bytes(), key.generation, self.request.destination.as_str());
        let mut rows = match claim.fence {
            Fence::Claim(token) => self.by_token.query(params![ids.0, ids.1, ids.2, ids.3, token.as_bytes()]),
            Fence::Version(version) => self.by_version.query(params![ids.0, ids.1, ids.2, ids.3, version as i64]),
        }
        .doing("settle")?;
        let Some(row) = rows.next().doing("settle")? else { return Ok(false) };
        let held = held_of(row).doing("settle")?;
        let gone = Gone {
            key,
            seq: held.seq,
            envelope_ref: row.get(4).doing("settle")?,
            destination: ids.3,
            operation_key: row.get_ref(5).and_then(|key| Ok(key.as_str()?)).doing("settle")?,
            created: row.get(6).doing("settle")?,
        };
        let progress = &transition.progress;
        let end = End {
            state: EntryState::Delivered,
            at: self.turn.now.as_micros(),
            receipt,
            attempts: progress.attempts,
            counters: progress.counters,
            fence: Some(claim.fence),
        };
        self.endings.end(&gone, &end)?;
        drop(rows);
        self.count(&held, progress);
        self.totals.add(totals::LIVE, -1);
        self.totals.add(totals::DELIVERED, 1);
        Ok(true)
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
                    kept.lane,
                    kept.due,
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

    fn record(&self, claim: &ClaimRef, transition: &Transition) -> Result<(), StoreError> {
        match &transition.attempt {
            Some(attempt) => attempt::record(self.turn.tx, &claim.key, attempt),
            None => Ok(()),
        }
    }
}

/// Where a row that is kept goes; `None` leaves it where it was.
struct Kept {
    lane: Option<i64>,
    due: Option<i64>,
    status: Status,
    manual_review: bool,
}

/// Columns 0 to 3 of the deliver statements.
fn held_of(row: &Row<'_>) -> Result<Held, rusqlite::Error> {
    Ok(Held { seq: row.get(0)?, claim: row.get(1)?, send_mark: false, manual_review: row.get(2)?, failed: row.get(3)? })
}
