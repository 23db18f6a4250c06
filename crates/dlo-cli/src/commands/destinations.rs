//! `dlo destinations apply|list|show|test|hold|release|probe`.

use std::collections::BTreeMap;

use dlo::Outbox;
use dlo_core::{DestinationName, TenantId, limits::MAX_PAGE};
use dlo_ports::store::{ActResult, DestinationStats, DestinationView};

use super::act_answer;
use crate::context::{Context, office};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{note, warn};
use crate::wire::act::ActRow;
use crate::wire::destination::{AppliedRow, DestinationRow, DestinationSheet};

mod test;

/// Verbs of `dlo destinations`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Save the destinations of the configuration file; a running engine takes them up
    Apply,
    /// Destinations with their state and depth
    List,
    /// One destination in full
    Show {
        /// Name
        destination: DestinationName,
    },
    /// Send one signed ping and show the answer; nothing is saved
    Test {
        /// Name
        destination: DestinationName,
    },
    /// Stop trying destinations until somebody releases them
    Hold(HoldArgs),
    /// End every hold of destinations
    Release(HoldArgs),
    /// Try one entry of a held destination now
    Probe {
        /// Names
        #[arg(required = true)]
        destinations: Vec<DestinationName>,
        /// Why; kept in the audit event
        #[arg(long)]
        reason: Option<String>,
    },
}

/// Flags of hold and release.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    /// Names
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    destinations: Vec<DestinationName>,
    /// Every destination: of the tenant that `--tenant` names, else of all tenants
    #[arg(long)]
    all: bool,
    /// Why; kept in the audit event
    #[arg(long)]
    reason: String,
}

/// Runs one.
pub(crate) async fn run(command: Command, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    match command {
        Command::Apply => apply(context, &outbox).await,
        Command::List => list(context, &outbox).await,
        Command::Show { destination } => {
            let view = find(&outbox, context.tenant(), &destination).await?;
            context.out.sheet(&DestinationSheet::from(&view))?;
            Ok(Exit::Ok)
        }
        Command::Test { destination } => {
            let view = find(&outbox, context.tenant(), &destination).await?;
            test::ping(&view.destination, &outbox, &mut context.out).await
        }
        Command::Hold(args) => hold(args, context, &outbox).await,
        Command::Release(args) => release(args, context, &outbox).await,
        Command::Probe { destinations, reason } => {
            let results = office(&outbox).probe(context.tenant(), destinations.clone(), reason.as_deref()).await?;
            act_answer("probe", &rows(&destinations, &results), &mut context.out)
        }
    }
}

async fn apply(mut context: Context, outbox: &Outbox) -> Result<Exit> {
    let mut specs = context.config.destinations.clone();
    if let Some(tenant) = context.listed_tenant() {
        specs.retain(|spec| spec.tenant == tenant);
    }
    if specs.is_empty() {
        return Err(Failure::usage("the configuration names no destination to apply")
            .hint("add a `[[destinations]]` table; `dlo init` writes an example"));
    }
    let report = office(outbox).apply_destinations(specs).await?;
    for warning in &report.warnings {
        warn(warning);
    }
    let rows: Vec<AppliedRow> = report.applied.iter().map(|(_, applied)| AppliedRow::from(applied)).collect();
    context.out.rows(&rows)?;
    Ok(Exit::Ok)
}

/// Every destination of a tenant, or of all.
pub(crate) async fn all(outbox: &Outbox, tenant: Option<TenantId>) -> Result<Vec<DestinationView>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = outbox.reader().destinations(tenant.clone(), after, MAX_PAGE).await?;
        let full = page.len() == MAX_PAGE;
        after = page.last().map(|view| (view.destination.spec.tenant.clone(), view.destination.spec.name.clone()));
        found.extend(page);
        if !full {
            return Ok(found);
        }
    }
}

/// Refuses a name that no destination has, which a list would answer with nothing. By the figures, which also name a
/// destination that can't be read.
pub(crate) async fn must_exist(outbox: &Outbox, tenant: Option<TenantId>, name: Option<&DestinationName>) -> Result {
    let Some(name) = name else { return Ok(()) };
    let stats = outbox.reader().stats().await?;
    let is_it =
        |of: &DestinationStats| of.destination == *name && tenant.as_ref().is_none_or(|only| of.tenant == *only);
    if stats.destinations.iter().any(is_it) {
        return Ok(());
    }
    Err(Failure::not_found("destination", name).hint("`dlo destinations list` shows all"))
}

async fn find(outbox: &Outbox, tenant: &TenantId, name: &DestinationName) -> Result<DestinationView> {
    let mut of_tenant = all(outbox, Some(tenant.clone())).await?.into_iter();
    of_tenant.find(|view| view.destination.spec.name == *name).ok_or_else(|| {
        Failure::not_found("destination", name)
            .hint(format!("looked in tenant `{tenant}`; `dlo destinations list` shows all"))
    })
}

async fn list(mut context: Context, outbox: &Outbox) -> Result<Exit> {
    let views = all(outbox, context.listed_tenant()).await?;
    if views.is_empty() {
        note("no destinations: `dlo destinations apply` saves those of the configuration file");
    }
    let rows: Vec<DestinationRow> = views.iter().map(DestinationRow::from).collect();
    context.out.rows(&rows)?;
    Ok(Exit::Ok)
}

fn rows(names: &[DestinationName], results: &[ActResult]) -> Vec<ActRow> {
    names.iter().zip(results).map(|(name, result)| ActRow::of_act(name.to_string(), result)).collect()
}

async fn hold(args: HoldArgs, mut context: Context, outbox: &Outbox) -> Result<Exit> {
    let office = office(outbox);
    let rows = if args.all {
        let results = office.hold_all(context.listed_tenant().as_ref(), &args.reason).await?;
        results.iter().map(|(tenant, name, result)| ActRow::of_act(format!("{tenant}/{name}"), result)).collect()
    } else {
        let results = office.hold(context.tenant(), args.destinations.clone(), &args.reason).await?;
        rows(&args.destinations, &results)
    };
    act_answer("hold", &rows, &mut context.out)
}

async fn release(args: HoldArgs, mut context: Context, outbox: &Outbox) -> Result<Exit> {
    let office = office(outbox);
    if !args.all {
        let results = office.release(context.tenant(), args.destinations.clone(), &args.reason).await?;
        return act_answer("release", &rows(&args.destinations, &results), &mut context.out);
    }
    let mut by_tenant: BTreeMap<TenantId, Vec<DestinationName>> = BTreeMap::new();
    for view in all(outbox, context.listed_tenant()).await?.into_iter().filter(|view| view.health.is_held()) {
        by_tenant.entry(view.destination.spec.tenant).or_default().push(view.destination.spec.name);
    }
    let mut released = Vec::new();
    for (tenant, names) in by_tenant {
        let results = office.release(&tenant, names.clone(), &args.reason).await?;
        let rows = names.iter().zip(&results);
        released.extend(rows.map(|(name, result)| ActRow::of_act(format!("{tenant}/{name}"), result)));
    }
    if released.is_empty() {
        note("no destination is held");
    }
    act_answer("release", &released, &mut context.out)
}
