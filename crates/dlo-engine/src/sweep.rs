//! Sweeps: claims of lost workers, claims whose answer was lost, and entries past their age.

use std::collections::BTreeMap;

use dlo_core::{
    ClaimRef, Destination, Entry, Fence, TransitionResult,
    decide::{Context, Event, decide},
};
use dlo_ports::store::{SettleRequest, Settlement};

use crate::{
    account::{End, Note},
    events, limits,
    shared::{LaneKey, Shared, locked},
};

/// Sweeps at intervals; ends with the run.
pub(crate) async fn run(shared: &Shared) {
    let mut after = None;
    loop {
        shared.env.sleep(limits::SWEEP_EVERY).await;
        let swept = async {
            // Who may be taken for lost itself does not judge others.
            if shared.lease_may_be_over() {
                shared.insist("heartbeat", || shared.renew()).await?;
            }
            recover(shared).await?;
            give_back_orphans(shared).await?;
            after = overdue(shared, after.take()).await?;
            Some(())
        };
        if swept.await.is_none() {
            return core::future::pending().await;
        }
    }
}

/// Decides all claims whose worker is gone. `None` when the run is ending.
///
/// Claims of this very process are left to its lanes, however late they are: a lane has the outcome in hand and saves
/// it when it can, or gives the entry back, which is not to be overtaken by a doubt (trap D6).
pub(crate) async fn recover(shared: &Shared) -> Option<()> {
    loop {
        let look = || shared.store.lost_claims(Some(shared.incarnation), limits::SWEEP_PAGE);
        let lost = shared.insist("lost_claims", look).await?;
        let full = lost.len() == limits::SWEEP_PAGE;
        let mut recovered = 0;
        for (key, entries) in by_destination(lost) {
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

/// Gives back what was claimed for this process by a claim whose answer was lost, once that claim is over: no lane
/// knows these entries, so nothing of them was sent. In plain mode such a claim ends with its incarnation.
async fn give_back_orphans(shared: &Shared) -> Option<()> {
    if locked(&shared.orphans).is_empty() {
        return Some(());
    }
    let looked = shared.now();
    let mut lost = shared.insist("lost_claims", || shared.store.lost_claims(None, limits::SWEEP_PAGE)).await?;
    let full = lost.len() == limits::SWEEP_PAGE;
    {
        let mut orphans = locked(&shared.orphans);
        lost.retain(|entry| entry.claim.is_some_and(|claim| orphans.contains_key(&claim.token)));
        if !full {
            // What was over when this look began has been found by it.
            orphans.retain(|_, over| *over >= looked);
        }
    }
    for (key, entries) in by_destination(lost) {
        if settle(shared, &key, &entries, &Event::NotSent).await? > 0 {
            shared.wake.notify_one();
        }
    }
    Some(())
}

fn by_destination(entries: Vec<Entry>) -> BTreeMap<LaneKey, Vec<Entry>> {
    let mut by_destination: BTreeMap<LaneKey, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        by_destination.entry((entry.key.tenant.clone(), entry.destination.clone())).or_default().push(entry);
    }
    by_destination
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
    let Some(destination) = read(shared, key).await? else { return Some(()) };
    let max_age = destination.spec.policy.max_age;
    let mut ended = 0;
    loop {
        let look = || shared.store.overdue(key.0.clone(), key.1.clone(), max_age, limits::SWEEP_PAGE);
        let Some(entries) = shared.insist_on(key, "overdue", look).await? else { break };
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

/// `Some(None)`: there is nothing to decide by, and it has been told.
async fn read(shared: &Shared, key: &LaneKey) -> Option<Option<Destination>> {
    let look = || shared.store.destination(key.0.clone(), key.1.clone());
    let Some(found) = shared.insist_on(key, "destination", look).await? else { return Some(None) };
    if found.is_none() {
        events::destination_missing(key);
    }
    Some(found.map(|(destination, _)| destination))
}

/// Decides and saves, under the row versions that were read, so that a worker which was quicker wins (I-05). Answers
/// how many were changed.
async fn settle(shared: &Shared, key: &LaneKey, entries: &[Entry], event: &Event) -> Option<usize> {
    let Some(destination) = read(shared, key).await? else { return Some(0) };
    let request = request(shared, key, entries, event, &destination);
    let policy = &destination.spec.policy;
    let save = || shared.store.settle(request.clone());
    let Some(answer) = shared.insist_on(key, "settle", save).await? else { return Some(0) };
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

/// What a sweep finds says nothing about a destination, so its health is neither asked nor told.
fn request(
    shared: &Shared,
    key: &LaneKey,
    entries: &[Entry],
    event: &Event,
    destination: &Destination,
) -> SettleRequest {
    let now = shared.now();
    let settle = |entry: &Entry| {
        let mut random = [0; 18];
        shared.env.random(&mut random);
        let started = entry.claim.as_ref().map_or(now, |claim| claim.claimed);
        let context = Context { destination, last_success: None, now, started, random };
        let claim = ClaimRef { key: entry.key.clone(), fence: Fence::Maintenance(entry.version) };
        Settlement { claim, transition: decide(entry, event, &context) }
    };
    let settlements = entries.iter().map(settle).collect();
    SettleRequest { tenant: key.0.clone(), destination: key.1.clone(), settlements, health: None }
}
