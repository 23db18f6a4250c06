//! Fenced changes by workers and maintenance: mark, settle, release.

use dlo_core::{
    ClaimRef, DestinationName, Entry, EntryKey, EntryState, Fence, Status, TenantId, TransitionResult,
    decide::{Next, Transition},
    limits::MAX_PAGE,
};
use dlo_ports::{
    StoreError,
    store::{SettleAnswer, SettleRequest},
};

use super::{
    Transaction, bounded,
    state::{LiveRow, Verb},
};

/// What a fence says about a row.
enum Fenced {
    /// It holds.
    Holds,
    /// The answer without a change.
    Answer(TransitionResult),
}

impl Transaction<'_> {
    pub(super) fn mark_sent(&mut self, claims: &[ClaimRef]) -> Result<Vec<TransitionResult>, StoreError> {
        bounded("number of claims to mark", claims.len(), 0, MAX_PAGE)?;
        Ok(claims.iter().map(|claim| self.mark_one(claim)).collect())
    }

    fn mark_one(&mut self, claim: &ClaimRef) -> TransitionResult {
        if let Fenced::Answer(answer) = self.fence(claim, None) {
            return answer;
        }
        let now = self.now;
        let row = self.held_row(&claim.key);
        let Some(held) = row.entry.claim.as_mut() else { return no_claim(claim.fence) };
        if !held.send_mark {
            held.send_mark = true;
            row.entry.updated = now;
            if matches!(claim.fence, Fence::Claim(_)) {
                row.entry.version += 1;
            }
        }
        TransitionResult::Applied
    }

    pub(super) fn release(&mut self, claims: &[ClaimRef]) -> Result<Vec<TransitionResult>, StoreError> {
        bounded("number of claims to release", claims.len(), 0, MAX_PAGE)?;
        Ok(claims.iter().map(|claim| self.release_one(claim)).collect())
    }

    fn release_one(&mut self, claim: &ClaimRef) -> TransitionResult {
        if let Fenced::Answer(answer) = self.fence(claim, Some(Verb::Release)) {
            return answer;
        }
        let now = self.now;
        let row = self.held_row(&claim.key);
        match row.entry.claim {
            None => return no_claim(claim.fence),
            Some(held) if held.send_mark => return TransitionResult::StaleClaim,
            Some(_) => {}
        }
        row.entry.claim = None;
        row.entry.progress.counters.interrupted += 1;
        row.entry.version += 1;
        row.entry.updated = now;
        row.last = Some((Verb::Release, claim.fence));
        TransitionResult::Applied
    }

    pub(super) fn settle(&mut self, request: SettleRequest) -> Result<SettleAnswer, StoreError> {
        bounded("number of settlements", request.settlements.len(), 0, MAX_PAGE)?;
        self.known(&request.tenant, &request.destination)?;
        let (tenant, destination) = (request.tenant, request.destination);
        let results = request
            .settlements
            .into_iter()
            .map(|settlement| self.settle_one(&tenant, &destination, &settlement.claim, settlement.transition))
            .collect();
        let row = self.destination_row(&tenant, &destination);
        let health_applied = match request.health {
            Some(change) if change.expected == row.health.version => {
                row.save_health(change.health);
                true
            }
            Some(_) => false,
            None => true,
        };
        Ok(SettleAnswer { results, health: row.health.clone(), health_applied })
    }

    fn settle_one(
        &mut self,
        tenant: &TenantId,
        destination: &DestinationName,
        claim: &ClaimRef,
        transition: Transition,
    ) -> TransitionResult {
        if claim.key.tenant != *tenant || self.destination_of(&claim.key).as_ref() != Some(destination) {
            return TransitionResult::Missing;
        }
        if let Fenced::Answer(answer) = self.fence(claim, Some(Verb::Settle)) {
            return answer;
        }
        self.save_transition(claim, transition);
        TransitionResult::Applied
    }

    fn save_transition(&mut self, claim: &ClaimRef, transition: Transition) {
        let now = self.now;
        let key = &claim.key;
        let row = self.held_row(key);
        let failed_before = row.entry.progress.counters.failed;
        row.entry.progress = transition.progress;
        row.entry.claim = None;
        row.entry.version += 1;
        row.entry.updated = now;
        row.last = Some((Verb::Settle, claim.fence));
        let charged = row.entry.progress.counters.failed - failed_before;
        match &transition.next {
            Next::Wait { lane, due, status } => {
                (row.entry.lane, row.entry.due, row.entry.status) = (*lane, *due, *status);
                row.entry.manual_review = false;
            }
            Next::ManualReview => {
                row.entry.manual_review = true;
                row.entry.status = Status::Failed;
            }
            Next::Delivered { .. } | Next::DeadLetter(_) => {}
        }
        let destination = row.entry.destination.clone();
        self.destination_row(&key.tenant, &destination).failed_attempts += u64::from(charged);
        if let Some(attempt) = transition.attempt {
            self.lineage_mut(key).record(attempt);
        }
        match transition.next {
            Next::Delivered { receipt } => {
                self.destination_row(&key.tenant, &destination).delivered += 1;
                self.end(key, EntryState::Delivered, receipt, None, Some(claim.fence));
            }
            Next::DeadLetter(draft) => self.quarantine(key, draft, Some(claim.fence)),
            Next::Wait { .. } | Next::ManualReview => {}
        }
    }

    /// Judges a fence. `verb` is the one that may find that it was done before.
    fn fence(&mut self, claim: &ClaimRef, verb: Option<Verb>) -> Fenced {
        let key = &claim.key;
        let Some(lineage) = self.state.lineage(&key.tenant, key.entry) else {
            return Fenced::Answer(TransitionResult::Missing);
        };
        if let Some(ended) = lineage.ended.iter().find(|ended| ended.entry.key == *key) {
            let repeated = verb == Some(Verb::Settle) && ended.fence == Some(claim.fence);
            return Fenced::Answer(if repeated { TransitionResult::Applied } else { TransitionResult::Terminal });
        }
        let (latest, _) = lineage.latest(self.now);
        if latest.key.generation > key.generation {
            return Fenced::Answer(TransitionResult::Terminal);
        }
        let Some(live) = lineage.live.as_ref().filter(|live| live.entry.key == *key) else {
            return Fenced::Answer(TransitionResult::Missing);
        };
        if verb.is_some_and(|verb| live.last == Some((verb, claim.fence))) {
            return Fenced::Answer(TransitionResult::Applied);
        }
        if fence_holds(&live.entry, claim.fence) { Fenced::Holds } else { Fenced::Answer(no_claim(claim.fence)) }
    }

    fn destination_of(&self, key: &EntryKey) -> Option<DestinationName> {
        let lineage = self.state.lineage(&key.tenant, key.entry)?;
        Some(lineage.latest(self.now).0.destination.clone())
    }

    fn held_row(&mut self, key: &EntryKey) -> &mut LiveRow {
        self.state.live_row(key).expect("its fence holds, so it lives")
    }
}

fn fence_holds(entry: &Entry, fence: Fence) -> bool {
    match fence {
        Fence::Claim(token) => entry.claim.is_some_and(|claim| claim.token == token),
        Fence::Version(version) | Fence::Maintenance(version) => entry.version == version,
    }
}

/// Answer for a live row whose fence is broken.
fn no_claim(fence: Fence) -> TransitionResult {
    match fence {
        Fence::Claim(_) => TransitionResult::StaleClaim,
        Fence::Version(_) | Fence::Maintenance(_) => TransitionResult::ConcurrencyLost,
    }
}
