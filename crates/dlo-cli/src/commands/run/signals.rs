//! SIGINT and SIGTERM, counted: the first asks, the second insists.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Result};
use crate::output::note;

/// How many of them came.
#[derive(Clone)]
pub(crate) struct Signals(watch::Receiver<u32>);

/// Starts to count.
pub(crate) fn listen() -> Result<Signals> {
    let of = |kind| signal(kind).map_err(|error| Failure::io("listening to signals", &error));
    let (mut interrupt, mut terminate) = (of(SignalKind::interrupt())?, of(SignalKind::terminate())?);
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let more = tokio::select! {
                biased;
                more = interrupt.recv() => more,
                more = terminate.recv() => more,
            };
            if more.is_none() {
                return;
            }
            count.send_modify(|count| *count += 1);
            if *count.borrow() == 1 {
                note("stopping: waiting for what is being sent; a second signal ends at once");
            }
        }
    });
    Ok(Signals(counted))
}

impl Signals {
    /// Waits until so many came; for ever if no more can come.
    pub(crate) async fn reached(&self, many: u32) {
        let mut counted = self.0.clone();
        if counted.wait_for(|count| *count >= many).await.is_err() {
            core::future::pending::<()>().await;
        }
    }
}
