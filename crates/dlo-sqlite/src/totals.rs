//! Totals of destinations: gathered while a verb runs, saved once per name.

use std::collections::BTreeMap;

use dlo_core::{Class, Reason};
use dlo_ports::StoreError;
use rusqlite::{Connection, params};

use crate::error::Doing;

/// Rows of `dlo_entry`, manual review included: what `backlog_limit` is measured against.
pub(crate) const LIVE: &str = "live";
/// Rows of `dlo_entry` in manual review.
pub(crate) const MANUAL_REVIEW: &str = "manual_review";
/// Generations started since the database was made, redrives included.
pub(crate) const ENQUEUED: &str = "enqueued";
/// Delivered since the database was made.
pub(crate) const DELIVERED: &str = "delivered";
/// Cancelled since the database was made.
pub(crate) const CANCELLED: &str = "cancelled";
/// Charged attempts since the database was made.
pub(crate) const FAILED_ATTEMPTS: &str = "failed_attempts";
/// Dead letters since the database was made, by class and reason.
pub(crate) const DEAD_LETTERS: &str = "dead_letters";
/// Dead letters that are open.
pub(crate) const DEAD_LETTERS_OPEN: &str = "dead_letters_open";

/// Generations that a person's retry-now out of manual review replaced by the next: started, and never ended.
pub(crate) const REVIEW_RETRIED: &str = "review_retried";

/// Changes of the totals of one destination.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    plain: BTreeMap<&'static str, i64>,
    dead_letters: BTreeMap<(Class, Reason), i64>,
}

impl Totals {
    /// Adds to a total.
    pub(crate) fn add(&mut self, name: &'static str, by: i64) {
        *self.plain.entry(name).or_default() += by;
    }

    /// A live entry became an open dead letter.
    pub(crate) fn dead_letter(&mut self, class: Class, reason: &Reason) {
        self.add(LIVE, -1);
        self.add(DEAD_LETTERS_OPEN, 1);
        *self.dead_letters.entry((class, reason.clone())).or_default() += 1;
    }

    /// Saves the changes.
    pub(crate) fn save(self, tx: &Connection, tenant: &str, destination: &str) -> Result<(), StoreError> {
        let mut statement = tx.prepare_cached(include_str!("sql/total_add.sql")).doing("count totals")?;
        let mut add = |name: &str, class: &str, reason: &str, by: i64| {
            statement.execute(params![tenant, destination, name, class, reason, by]).doing("count totals")
        };
        for (name, by) in self.plain {
            if by != 0 {
                add(name, "", "", by)?;
            }
        }
        for ((class, reason), by) in self.dead_letters {
            add(DEAD_LETTERS, class.as_str(), reason.as_str(), by)?;
        }
        Ok(())
    }
}

/// Live entries of a destination.
pub(crate) fn live(tx: &Connection, tenant: &str, destination: &str) -> Result<u64, StoreError> {
    let value: Option<i64> = rusqlite::OptionalExtension::optional(
        tx.prepare_cached(include_str!("sql/total_live.sql"))
            .doing("read totals")?
            .query_row(params![tenant, destination], |row| row.get(0)),
    )
    .doing("read totals")?;
    Ok(value.map_or(0, |live| u64::try_from(live).unwrap_or(0)))
}
