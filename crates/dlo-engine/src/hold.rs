//! Holds as the engine opens and tells them.

use dlo_core::{Health, observe};
use dlo_ports::{
    env::EmitterError,
    store::{HealthChange, SettleRequest},
};

use crate::{
    directory::Loaded,
    events,
    shared::{LaneKey, Shared},
};

/// Tells what changed between two states of a destination's health.
pub(crate) fn tell_change(shared: &Shared, key: &LaneKey, before: &Health, after: &Health) {
    match (&before.hold, &after.hold) {
        (None, Some(_)) => {
            shared.metrics.hold_opened(key);
            events::hold_opened(key, after);
        }
        (Some(_), None) => {
            shared.metrics.hold_closed(key);
            events::hold_closed(key, after);
        }
        _ => {}
    }
}

/// This process has no emitter for the destination: it is held, its entries are kept.
pub(crate) async fn emitter_unknown(
    shared: &Shared,
    key: &LaneKey,
    loaded: &Loaded,
    error: &EmitterError,
    health: Health,
) {
    events::emitter_unknown(key, error);
    let policy = &loaded.destination.spec.policy;
    change(shared, key, health, |health| observe::emitter_unknown(health, policy, shared.now())).await;
}

/// This process has the emitter that another one lacked: that hold ends. Answers the health afterwards.
pub(crate) async fn emitter_found(shared: &Shared, key: &LaneKey, health: Health) -> Option<Health> {
    change(shared, key, health, observe::emitter_found).await
}

/// Changes health until the change is saved, or nothing is to be changed any more.
async fn change(
    shared: &Shared,
    key: &LaneKey,
    mut health: Health,
    rule: impl Fn(&Health) -> Option<Health>,
) -> Option<Health> {
    while let Some(changed) = rule(&health) {
        let change = HealthChange { expected: health.version, health: changed };
        let settle = || {
            shared.store.settle(SettleRequest {
                tenant: key.0.clone(),
                destination: key.1.clone(),
                settlements: Vec::new(),
                health: Some(change.clone()),
            })
        };
        let answer = shared.insist("settle", settle).await?;
        tell_change(shared, key, &health, &answer.health);
        health = answer.health;
        if answer.health_applied {
            break;
        }
    }
    Some(health)
}
