//! Sweeps: claims of lost workers, and entries past their age.

use std::collections::BTreeMap;

use dlo_core::{
    ClaimRef, Destination, Entry, Fence, Health, TransitionResult,
    decide::{Context, Event, decide},
    observe::observe,
};
use dlo_ports::store::{HealthChange, SettleRequest, Settlement};

use crate::{
    account::{End, Note},
    events, limits,
    shared::{LaneKey, Shared},
};

/// Sweeps at intervals; ends with the run.
pub(crate) async fn run(shared: &Shared) {
    let mut after = None;
    loop {
        shared.env.sleep(limits::SWEEP_EVERY).await;
        let swept = async {
            recover(shared).await?;
            after = overdue(shared, after.take()).await?;
            Some(())
        };
        if swept.await.is_none() {
            return core::future::pending().await;
        }
    }
}

/// Decides all claims whose worker is gone. `None` when the run is ending.
pub(crate) async fn recover(shared: &Shared) -> Option<()> {
    loop {
        let lost = shared.insist("lost_claims", || shared.store.lost_claims(limits::SWEEP_PAGE)).await?;
        let full = lost.len() == limits::SWEEP_PAGE;
        let lost = lost.into_iter().filter(|entry| !is_in_hand(shared, entry));
        let mut by_destination: BTreeMap<LaneKey, Vec<Entry>> = BTreeMap::new();
        for entry in lost {
            by_destination.entry((entry.key.tenant.clone(), entry.destination.clone())).or_default().push(entry);
        }
        let mut recovered = 0;
        for (key, entries) in by_destination {
            let count = settle(shared, &key, &entries, &Event::ClaimLost).await?;
            if count > 0 {
                events::claims_recovered(&key, count);
                shared.wake.notify_one();
            }
            recovered += count;
        }
        // What could not be changed is another's by now, or is met again by the next sweep.
        if !full || recovered == 0 {
            return Some(());
        }
    }
}

/// While the store would not save outcomes, claims of this very process may pass their deadline: a lane has the outcome
/// in hand and saves it when it can, which is not to be overtaken by a doubt (trap D6).
fn is_in_hand(shared: &Shared, entry: &Entry) -> bool {
    let own = entry.claim.as_ref().is_some_and(|claim| claim.incarnation == shared.incarnation);
    own && shared.trouble.is_stuck()
}

/// Ends overdue entries of the next destinations; answers where the next sweep goes on.
async fn overdue(shared: &Shared, after: Option<LaneKey>) -> Option<Option<LaneKey>> {
    let read = || shared.store.due_destinations(shared.scope.clone(), after.clone(), limits::SWEEP_DESTINATIONS);
    let page = shared.insist("due_destinations", read).await?;
    let mut last = None;
    for due in page.destinations {
        let key = (due.tenant, due.destination);
        end_overdue(shared, &key).await?;
        last = Some(key);
    }
    Some(last.filter(|_| page.more))
}

async fn end_overdue(shared: &Shared, key: &LaneKey) -> Option<()> {
    let Some((destination, _)) = read(shared, key).await? else { return Some(()) };
    let max_age = destination.spec.policy.max_age;
    let mut ended = 0;
    loop {
        let look = || shared.store.overdue(key.0.clone(), key.1.clone(), max_age, limits::SWEEP_PAGE);
        let entries = shared.insist("overdue", look).await?;
        let count = if entries.is_empty() { 0 } else { settle(shared, key, &entries, &Event::Overdue).await? };
        ended += count;
        if entries.len() < limits::SWEEP_PAGE || count == 0 {
            break;
        }
    }
    if ended > 0 {
        events::overdue(key, ended);
    }
    Some(())
}

async fn read(shared: &Shared, key: &LaneKey) -> Option<Option<(Destination, Health)>> {
    shared.insist("destination", || shared.store.destination(key.0.clone(), key.1.clone())).await
}

/// Decides and saves, under the row versions that were read, so that a worker which was quicker wins (I-05). Answers
/// how many were changed.
async fn settle(shared: &Shared, key: &LaneKey, entries: &[Entry], event: &Event) -> Option<usize> {
    let Some((destination, health)) = read(shared, key).await? else {
        events::destination_missing(key);
        return Some(0);
    };
    let request = request(shared, key, entries, event, &destination, &health);
    let policy = &destination.spec.policy;
    let answer = shared.insist("settle", || shared.store.settle(request.clone())).await?;
    let mut changed = 0;
    for ((entry, settlement), result) in entries.iter().zip(&request.settlements).zip(&answer.results) {
        if *result != TransitionResult::Applied {
            continue;
        }
        changed += 1;
        if let Some(note) = Note::of(entry, &settlement.transition, policy) {
            // An overdue entry has one line for its destination, and a count.
            if *event == Event::Overdue && matches!(note.end, End::DeadLettered { .. }) {
                note.count(shared, key);
            } else {
                note.tell(shared, key, entry.key.entry, None);
            }
        }
    }
    shared.metrics.settled(key, changed, 0, entries.len() - changed);
    Some(changed)
}

fn request(
    shared: &Shared,
    key: &LaneKey,
    entries: &[Entry],
    event: &Event,
    destination: &Destination,
    health: &Health,
) -> SettleRequest {
    let now = shared.now();
    let mut learning = Vec::new();
    let settlements: Vec<Settlement> = entries
        .iter()
        .map(|entry| {
            let mut random = [0; 18];
            shared.env.random(&mut random);
            let started = entry.claim.as_ref().map_or(now, |claim| claim.claimed);
            let context = Context { destination, last_success: health.last_success, now, started, random };
            let transition = decide(entry, event, &context);
            learning.push(transition.observation.clone());
            Settlement { claim: ClaimRef { key: entry.key.clone(), fence: Fence::Version(entry.version) }, transition }
        })
        .collect();
    let policy = &destination.spec.policy;
    let health = observe(health, policy, &learning, entries.len() as u64, now)
        .map(|changed| HealthChange { expected: health.version, health: changed });
    SettleRequest { tenant: key.0.clone(), destination: key.1.clone(), settlements, health }
}
