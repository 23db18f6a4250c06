//! `dlo doctor`: checks the invariants of a database, and says what its commits promise.

use dlo_ports::store::{StoreDescription, Violation};
use serde::Serialize;

use super::drift;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::Sheet;

/// Flags of `dlo doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Violations at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Serialize)]
struct ViolationWire {
    invariant: &'static str,
    what: String,
}

/// What the doctor found.
#[derive(Serialize)]
pub(crate) struct DoctorSheet {
    store: &'static str,
    location: String,
    engine_version: String,
    schema_version: u64,
    promises: Vec<String>,
    warnings: Vec<String>,
    healthy: bool,
    violations: Vec<ViolationWire>,
}

impl DoctorSheet {
    fn new(store: StoreDescription, violations: Vec<Violation>, drift: Vec<String>) -> Self {
        let StoreDescription { kind, location, engine_version, schema_version, promises, mut warnings } = store;
        warnings.extend(drift);
        let violations: Vec<ViolationWire> =
            violations.into_iter().map(|Violation { invariant, what }| ViolationWire { invariant, what }).collect();
        Self {
            store: kind,
            location,
            engine_version,
            schema_version,
            promises,
            warnings,
            healthy: violations.is_empty(),
            violations,
        }
    }
}

impl Sheet for DoctorSheet {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("store", format!("{} {}, schema {}", self.store, self.engine_version, self.schema_version)),
            ("location", self.location.clone()),
        ];
        let mut list = |name: &'static str, lines: &mut dyn Iterator<Item = String>| {
            facts.extend(lines.enumerate().map(|(index, line)| (if index == 0 { name } else { "" }, line)));
        };
        list("commits promise", &mut self.promises.iter().cloned());
        list("warnings", &mut self.warnings.iter().cloned());
        list(
            "violations",
            &mut self.violations.iter().map(|violation| format!("{} {}", violation.invariant, violation.what)),
        );
        if self.healthy {
            facts.push((
                "violations",
                "none: no record has vanished, every invariant that a database can show holds".to_owned(),
            ));
        }
        facts
    }
}

/// Checks; ends with 1 if anything is broken.
pub(crate) async fn run(args: Args, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let reader = outbox.reader();
    let description = reader.describe().await?;
    let violations = reader.check(args.limit.max(1)).await?;
    let drift = drift::between(&context.config, &outbox).await?;
    let sheet = DoctorSheet::new(description, violations, drift);
    context.out.sheet(&sheet)?;
    match sheet.violations.len() {
        0 => Ok(Exit::Ok),
        found => {
            let message = format!("{found} broken invariants");
            Err(Failure::new(Exit::CheckFailed, code::CHECK_FAILED, message))
        }
    }
}
