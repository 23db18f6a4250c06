//! Liveness: one row per process, renewed at a third of the lease. Renewal touches no claim row.

use core::convert::Infallible;

use crate::{shared::Shared, trouble::Backoff, trouble::Remedy};

/// Renews at intervals, and at once when a lane finds that the lease may be over (a machine that slept, a clock that was
/// set). Is dropped with the run.
pub(crate) async fn run(shared: &Shared) -> Infallible {
    let every = shared.options.lease / 3;
    loop {
        tokio::select! {
            biased;
            () = shared.beat.notified() => {}
            () = shared.env.sleep(every) => {}
        }
        renew(shared).await;
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
