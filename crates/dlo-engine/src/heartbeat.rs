//! Liveness: one row per process, renewed at a third of the lease. Renewal touches no claim row.

use core::convert::Infallible;

use crate::{shared::Shared, trouble::Backoff, trouble::Remedy};

/// Renews at intervals; is dropped with the run. A lane or sweep that finds the lease over sooner (a machine that slept, a
/// clock that was set) renews it itself.
pub(crate) async fn run(shared: &Shared) -> Infallible {
    let every = shared.options.lease / 3;
    loop {
        shared.env.sleep(every).await;
        // The start may take longer than this where the store fails; before it there is no lease, only a wrong `Fenced`.
        if shared.has_lease() {
            renew(shared).await;
        }
    }
}

/// Renews once, however often that takes: a lease that is over can still be renewed while nobody has ended it.
async fn renew(shared: &Shared) {
    let mut backoff = Backoff::default();
    loop {
        match shared.renew().await {
            Ok(()) => return shared.trouble.worked("heartbeat"),
            Err(error) => match shared.store_failed("heartbeat", error) {
                Remedy::Retry => shared.env.sleep(backoff.next()).await,
                Remedy::End => core::future::pending().await,
            },
        }
    }
}
