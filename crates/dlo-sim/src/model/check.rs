//! The invariants that the state alone can show.

use std::collections::BTreeSet;

use dlo_core::{DeadLetterState, limits::MAX_PAGE};
use dlo_ports::{StoreError, store::Violation};

use super::{Transaction, bounded, state::Lineage};

impl Transaction<'_> {
    pub(super) fn check(&self, limit: usize) -> Result<Vec<Violation>, StoreError> {
        bounded("limit of violations", limit, 1, MAX_PAGE)?;
        let mut violations = Vec::new();
        for ((tenant, entry), lineage) in &self.state.lineages {
            for (invariant, what) in self.broken(lineage) {
                violations.push(Violation { invariant, what: format!("{tenant}/{entry}: {what}") });
            }
        }
        violations.truncate(limit);
        Ok(violations)
    }

    /// What a lineage breaks.
    fn broken(&self, lineage: &Lineage) -> Vec<(&'static str, String)> {
        let mut broken = Vec::new();
        let mut generations = BTreeSet::new();
        let rows = lineage.ended.iter().map(|ended| &ended.entry).chain(lineage.live.iter().map(|live| &live.entry));
        let mut newest = None;
        for row in rows {
            if !generations.insert(row.key.generation) {
                broken.push(("I-03", format!("generation {} has two rows", row.key.generation)));
            }
            if newest.is_some_and(|newest| newest > row.key.generation) {
                broken.push(("I-01", format!("generation {} comes after a later one", row.key.generation)));
            }
            newest = Some(row.key.generation);
            if row.progress.counters.failed < row.baseline.failed {
                broken.push(("I-07", format!("generation {} counts less than its baseline", row.key.generation)));
            }
        }
        if newest.is_none() {
            broken.push(("I-01", "no generation has a row".into()));
        }
        for ended in &lineage.ended {
            if ended.entry.claim.is_some() {
                broken.push(("I-03", format!("generation {} has ended and is claimed", ended.entry.key.generation)));
            }
            let Some(id) = ended.dead_letter else { continue };
            match self.state.dead_letters.get(&(ended.entry.key.tenant.clone(), id)) {
                None => broken.push(("I-09", format!("dead letter {id} is missing"))),
                Some(dead_letter) if dead_letter.state == DeadLetterState::Open && lineage.live.is_some() => {
                    broken.push(("I-15", format!("dead letter {id} is open beside a live generation")));
                }
                Some(_) => {}
            }
        }
        broken
    }
}
