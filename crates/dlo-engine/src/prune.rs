//! Pruning: delivered history and enqueue keys that are past their time, in small turns.

use dlo_ports::store::PruneRequest;

use crate::{limits, shared::Shared};

/// Prunes at intervals; ends with the run. A turn is followed by a pause in proportion to what it took, so that a
/// busy store is never kept from its work, and yet pruning keeps up with a steady flow.
pub(crate) async fn run(shared: &Shared) {
    let request = PruneRequest {
        history: shared.options.history,
        enqueue_keys: shared.options.enqueue_key_window,
        limit: limits::PRUNE_ROWS,
    };
    loop {
        shared.env.sleep(limits::PRUNE_EVERY).await;
        loop {
            let began = shared.env.now();
            let Some(pruned) = shared.insist("prune", || shared.store.prune(request)).await else {
                return core::future::pending().await;
            };
            if !pruned.more {
                break;
            }
            let took = shared.env.now().since(began).max(limits::STORE_RETRY_FIRST / limits::PRUNE_PAUSE_FACTOR);
            shared.env.sleep(took * limits::PRUNE_PAUSE_FACTOR).await;
        }
    }
}
