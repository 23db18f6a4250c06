//! Claim: selection, pace, probe.

use dlo_core::{
    Entry, EntryKey, Health, Lane, Payload, Timestamp,
    entry::Claim,
    health::Admission,
    limits::{CLAIM_BYTES, MAX_PAGE, PROBE_WINDOW},
    observe::begin_probe,
    pace,
};
use dlo_ports::{
    StoreError, StoreErrorKind,
    store::{ClaimKind, ClaimPage, ClaimRequest, Claimed},
};

use super::{Transaction, bounded};

/// What a claim takes, before it is taken.
struct Selection {
    keys: Vec<EntryKey>,
    more: bool,
    paced_until: Option<Timestamp>,
    /// Health to save, if pace or a probe changes it.
    health: Option<Health>,
}

impl Transaction<'_> {
    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Result<ClaimPage, StoreError> {
        bounded("limit of a claim", request.limit, 1, MAX_PAGE)?;
        self.known(&request.tenant, &request.destination)?;
        if !self.state.workers.get(&request.incarnation).is_some_and(|worker| worker.is_alive(self.now)) {
            return Err(StoreError::new(
                StoreErrorKind::Fenced,
                format!("worker {} is not registered and alive: start it again", request.incarnation),
            ));
        }
        let mut selection = self.select(request, request.limit);
        if self.is_too_large(&selection.keys) {
            selection = self.select(request, self.fitting(request));
        }
        let (claimed, quarantined) = self.take(request, &selection.keys);
        let row = self.destination_row(&request.tenant, &request.destination);
        if let Some(health) = selection.health {
            row.save_health(health);
        }
        Ok(ClaimPage {
            destination_version: row.destination.version,
            health: row.health.clone(),
            now: self.now,
            claimed,
            quarantined,
            more: selection.more,
            paced_until: selection.paced_until,
        })
    }

    fn select(&self, request: &ClaimRequest, limit: usize) -> Selection {
        let nothing = Selection { keys: Vec::new(), more: false, paced_until: None, health: None };
        let row = &self.state.destinations[&(request.tenant.clone(), request.destination.clone())];
        match (row.health.admission(self.now), request.kind) {
            (Admission::Open(_), ClaimKind::Normal) => {
                let (retry, pending) = (self.due_in(request, Lane::Retry), self.due_in(request, Lane::Pending));
                let due = retry.len() + pending.len();
                self.paced(request, due, limit, |limit| page_of(&retry, &pending, limit))
            }
            (Admission::Open(_), ClaimKind::Suspect) => {
                let suspects = self.due_in(request, Lane::Suspect);
                self.paced(request, suspects.len(), 1, |limit| suspects[..limit.min(suspects.len())].to_vec())
            }
            (Admission::Probe, ClaimKind::Probe) => self.probe(request).unwrap_or(nothing),
            _ => nothing,
        }
    }

    /// Asks the bucket, if there is one, and selects as many as it grants.
    fn paced<'a>(
        &self,
        request: &ClaimRequest,
        due: usize,
        limit: usize,
        select: impl FnOnce(usize) -> Vec<&'a Entry>,
    ) -> Selection {
        let row = &self.state.destinations[&(request.tenant.clone(), request.destination.clone())];
        let want = due.min(limit);
        let (granted, paced_until, health) = match row.destination.spec.pace {
            Some(pace) if want > 0 => {
                let grant = pace::take(pace, row.health.pace_at, self.now, want);
                let pace_at = Some(grant.pace_at);
                let health = (row.health.pace_at != pace_at).then(|| Health { pace_at, ..row.health.clone() });
                (grant.granted, grant.next, health)
            }
            _ => (want, None, None),
        };
        let keys = select(granted).into_iter().map(|entry| entry.key.clone()).collect();
        Selection { keys, more: granted == want && due > limit, paced_until, health }
    }

    /// Whether the bodies of more than one entry are more than a claim may have.
    fn is_too_large(&self, keys: &[EntryKey]) -> bool {
        let size = |key: &EntryKey| {
            let lineage = &self.state.lineages[&(key.tenant.clone(), key.entry)];
            match &lineage.envelope.payload {
                Payload::Bytes { bytes, .. } => bytes.len(),
                Payload::None | Payload::Descriptor { .. } => 0,
            }
        };
        keys.len() > 1 && keys.iter().map(size).sum::<usize>() > CLAIM_BYTES
    }

    /// The largest limit under which a normal page is not too large.
    fn fitting(&self, request: &ClaimRequest) -> usize {
        let (retry, pending) = (self.due_in(request, Lane::Retry), self.due_in(request, Lane::Pending));
        let most = request.limit.min(retry.len() + pending.len());
        let keys =
            |limit| page_of(&retry, &pending, limit).into_iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
        (1..=most).rev().find(|limit| !self.is_too_large(&keys(*limit))).unwrap_or(1)
    }

    fn probe(&self, request: &ClaimRequest) -> Option<Selection> {
        let row = &self.state.destinations[&(request.tenant.clone(), request.destination.clone())];
        let mut due: Vec<&Entry> = [Lane::Pending, Lane::Retry, Lane::Suspect]
            .into_iter()
            .flat_map(|lane| self.due_in(request, lane))
            .collect();
        due.sort_by_key(|entry| (entry.due, entry.seq));
        due.truncate(PROBE_WINDOW);
        // `min_by_key` takes the first of equals, so ties go by (due, seq).
        let chosen = due.into_iter().min_by_key(|entry| entry.failed_in_generation())?;
        let health = begin_probe(&row.health, &row.destination.spec.policy, self.now)?;
        Some(Selection { keys: vec![chosen.key.clone()], more: false, paced_until: None, health: Some(health) })
    }

    /// Due, unclaimed entries of a lane in the order of S-09.
    fn due_in(&self, request: &ClaimRequest, lane: Lane) -> Vec<&Entry> {
        let mut due: Vec<_> = self
            .state
            .live()
            .filter(|entry| entry.key.tenant == request.tenant && entry.destination == request.destination)
            .filter(|entry| entry.lane == lane && entry.claim.is_none() && !entry.manual_review)
            .filter(|entry| entry.due <= self.now)
            .collect();
        due.sort_by_key(|entry| (entry.due, entry.seq));
        due
    }

    /// Claims the selected entries; those that can't be read are quarantined one by one.
    fn take(&mut self, request: &ClaimRequest, keys: &[EntryKey]) -> (Vec<Claimed>, Vec<EntryKey>) {
        let now = self.now;
        let mut claimed = Vec::with_capacity(keys.len());
        let mut quarantined = Vec::new();
        for key in keys {
            let lineage = self
                .state
                .lineages
                .get_mut(&(key.tenant.clone(), key.entry))
                .expect("selected in the same transaction");
            if !lineage.readable {
                self.quarantine_unreadable(key);
                quarantined.push(key.clone());
                continue;
            }
            let entry = &mut lineage.live.as_mut().expect("selected among the live").entry;
            entry.progress.counters.claims += 1;
            entry.first_claimed.get_or_insert(now);
            entry.version += 1;
            entry.updated = now;
            entry.claim = Some(Claim {
                token: request.token,
                incarnation: request.incarnation,
                claimed: now,
                deadline: now.after(request.hold_for),
                send_mark: false,
                sole_suspect: request.kind == ClaimKind::Suspect,
            });
            claimed.push(Claimed { entry: entry.clone(), envelope: lineage.envelope.clone() });
        }
        (claimed, quarantined)
    }
}

/// Half for retries, the rest for pending ones, what is left for retries again; one alone goes to the earlier head.
fn page_of<'a>(retry: &[&'a Entry], pending: &[&'a Entry], limit: usize) -> Vec<&'a Entry> {
    let retry_first = match (retry.first(), pending.first()) {
        (Some(retry), Some(pending)) => (retry.due, retry.seq) < (pending.due, pending.seq),
        (retry, _) => retry.is_some(),
    };
    let for_retry = if limit == 1 { usize::from(retry_first) } else { limit / 2 };
    let of_pending = pending.len().min(limit - for_retry.min(retry.len()));
    let of_retry = retry.len().min(limit - of_pending);
    [&retry[..of_retry], &pending[..of_pending]].concat()
}
