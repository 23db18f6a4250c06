//! Workers that are or were registered.

use dlo_core::{Incarnation, WorkerId, limits::MAX_PAGE};
use dlo_ports::{StoreError, store::WorkerView};
use rusqlite::{Connection, Row};

use crate::{
    error::{Doing, bounded},
    rows::{Unreadable, bytes16, number, optional_time, parsed, time},
};

/// Workers, newest first.
pub(crate) fn workers(conn: &Connection, limit: usize) -> Result<Vec<WorkerView>, StoreError> {
    bounded("limit of workers", limit, 1, MAX_PAGE)?;
    let mut statement = conn.prepare_cached(include_str!("../sql/read/workers.sql")).doing("list workers")?;
    let mut rows = statement.query([limit as i64]).doing("list workers")?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next().doing("list workers")? {
        workers.push(worker(row)?);
    }
    Ok(workers)
}

fn worker(row: &Row<'_>) -> Result<WorkerView, Unreadable> {
    Ok(WorkerView {
        worker: parsed::<WorkerId>(row, 0, "worker")?,
        incarnation: Incarnation::from_bytes(bytes16(row, 1, "incarnation")?),
        pid: number(row, 2, "pid")?,
        started: time(row, 3, "started")?,
        lease_until: time(row, 4, "lease_until")?,
        ended: optional_time(row, 5, "ended")?,
        claims: number(row, 6, "open")?,
    })
}
