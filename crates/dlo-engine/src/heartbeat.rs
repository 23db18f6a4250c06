//! Liveness: one row per process, renewed at a third of the lease. Renewal touches no claim row.

use crate::{shared::Shared, trouble::Backoff, trouble::Remedy};

/// Renews until the run ends.
pub(crate) async fn run(shared: &Shared) {
    let every = shared.options.lease / 3;
    loop {
        shared.env.sleep(every).await;
        if !renew(shared).await {
            return core::future::pending().await;
        }
    }
}

/// Renews once, however often that takes: a lease that is over can still be renewed while nobody has ended it.
async fn renew(shared: &Shared) -> bool {
    let mut backoff = Backoff::default();
    loop {
        match shared.store.heartbeat(shared.incarnation, shared.options.lease).await {
            Ok(now) => {
                shared.clock_told(now);
                shared.trouble.worked("heartbeat");
                return true;
            }
            Err(error) => match shared.store_failed("heartbeat", error) {
                Remedy::Retry => shared.env.sleep(backoff.next()).await,
                Remedy::End => return false,
            },
        }
    }
}
