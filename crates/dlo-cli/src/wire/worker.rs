//! Workers.

use dlo_ports::store::WorkerView;
use serde::Serialize;

use super::{or_dash, time, time_cell};
use crate::output::Row;

/// A row of `dlo workers`.
#[derive(Debug, Serialize)]
pub(crate) struct WorkerRow {
    worker: String,
    incarnation: String,
    pid: u32,
    started: String,
    lease_until: Option<String>,
    ended: Option<String>,
    claims: u64,
    #[serde(skip)]
    cells: [String; 3],
}

impl From<&WorkerView> for WorkerRow {
    fn from(view: &WorkerView) -> Self {
        Self {
            worker: view.worker.to_string(),
            incarnation: view.incarnation.to_string(),
            pid: view.pid,
            started: view.started.to_string(),
            lease_until: time(view.lease_until),
            ended: view.ended.map(|at| at.to_string()),
            claims: view.claims,
            cells: [
                time_cell(view.started),
                or_dash(time(view.lease_until).map(|_| time_cell(view.lease_until))),
                or_dash(view.ended.map(time_cell)),
            ],
        }
    }
}

impl Row for WorkerRow {
    const COLUMNS: &'static [&'static str] =
        &["WORKER", "INCARNATION", "PID", "STARTED", "LEASE UNTIL", "ENDED", "CLAIMS"];

    fn cells(&self) -> Vec<String> {
        let [started, lease, ended] = self.cells.clone();
        vec![
            self.worker.clone(),
            self.incarnation.clone(),
            self.pid.to_string(),
            started,
            lease,
            ended,
            self.claims.to_string(),
        ]
    }
}
