//! SIGINT and SIGTERM, counted: the first asks, the second insists.

use core::time::Duration;
use std::time::Instant;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Result};
use crate::output::note;

/// Signals that come this soon after the first are the same request: `timeout` sends its signal to the process and to the
/// process group, and so does a terminal with a wrapper that passes signals on.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// How many of them came.
#[derive(Clone)]
pub(crate) struct Signals(watch::Receiver<u32>);

/// Starts to count.
pub(crate) fn listen() -> Result<Signals> {
    let of = |kind| signal(kind).map_err(|error| Failure::io("listening to signals", &error));
    let (mut interrupt, mut terminate) = (of(SignalKind::interrupt())?, of(SignalKind::terminate())?);
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        let mut first: Option<Instant> = None;
        loop {
            let more = tokio::select! {
                biased;
                more = interrupt.recv() => more,
                more = terminate.recv() => more,
            };
            if more.is_none() {
                return;
            }
            if first.get_or_insert_with(Instant::now).elapsed() < SAME_REQUEST && *count.borrow() > 0 {
                continue;
            }
            count.send_modify(|count| *count += 1);
            if *count.borrow() == 1 {
                note("stopping: waiting for what is being sent; a second signal, a second later, ends at once");
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
