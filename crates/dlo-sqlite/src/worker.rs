//! Workers: registration, lease, end.

use core::time::Duration;

use dlo_core::{Incarnation, Timestamp, policy::DrainMode};
use dlo_ports::{StoreError, StoreErrorKind, store::WorkerStart};
use rusqlite::{OptionalExtension, params};

use crate::{error::Doing, turn::Turn};

const DOING: &str = "register a worker";

/// Stored name of a mode.
pub(crate) const fn mode_name(mode: DrainMode) -> &'static str {
    match mode {
        DrainMode::Claim => "claim",
        DrainMode::Plain => "plain",
    }
}

/// Registers a worker. The caller holds the engine lock of the file, so no earlier incarnation can be alive: all of
/// them are ended, and their claims are lost at once.
pub(crate) fn start(turn: &mut Turn<'_>, start: &WorkerStart) -> Result<Timestamp, StoreError> {
    let registered: Option<Option<i64>> = turn
        .tx
        .prepare_cached("SELECT ended FROM dlo_worker WHERE incarnation = ?1")
        .and_then(|mut statement| statement.query_row([start.incarnation.as_bytes()], |row| row.get(0)).optional())
        .doing(DOING)?;
    match registered {
        Some(None) => return heartbeat(turn, start.incarnation, start.lease),
        Some(Some(_)) => {
            return Err(fenced(format!("worker {} has ended: start with a new incarnation", start.incarnation)));
        }
        None => {}
    }
    turn.tx
        .prepare_cached("UPDATE dlo_worker SET ended = ?1 WHERE ended IS NULL")
        .and_then(|mut statement| statement.execute([turn.now.as_micros()]))
        .doing(DOING)?;
    turn.tx
        .prepare_cached(include_str!("sql/worker_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                start.incarnation.as_bytes(),
                start.worker.as_str(),
                start.pid,
                mode_name(start.mode),
                turn.now.as_micros(),
                turn.now.after(start.lease).as_micros(),
            ])
        })
        .doing(DOING)?;
    Ok(turn.now)
}

/// Renews a lease, even when it is over.
pub(crate) fn heartbeat(
    turn: &mut Turn<'_>,
    incarnation: Incarnation,
    lease: Duration,
) -> Result<Timestamp, StoreError> {
    let renewed = turn
        .tx
        .prepare_cached("UPDATE dlo_worker SET lease_until = ?2 WHERE incarnation = ?1 AND ended IS NULL")
        .and_then(|mut statement| statement.execute(params![incarnation.as_bytes(), turn.now.after(lease).as_micros()]))
        .doing("renew a lease")?;
    if renewed == 1 {
        Ok(turn.now)
    } else {
        Err(fenced(format!("worker {incarnation} has ended or never started: start a new incarnation")))
    }
}

/// Ends a worker; its open claims become lost at once.
pub(crate) fn stop(turn: &mut Turn<'_>, incarnation: Incarnation) -> Result<(), StoreError> {
    turn.tx
        .prepare_cached("UPDATE dlo_worker SET ended = ?2 WHERE incarnation = ?1 AND ended IS NULL")
        .and_then(|mut statement| statement.execute(params![incarnation.as_bytes(), turn.now.as_micros()]))
        .doing("end a worker")?;
    Ok(())
}

fn fenced(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Fenced, message)
}
