//! `dlo stats`: figures by destination.

use dlo_engine::{Metrics, render_openmetrics};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::note;
use crate::wire::stats::StatsRow;

/// Flags of `dlo stats`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// OpenMetrics text instead; a running engine gives its own by `dlo run --metrics-file` or `--metrics-listen`
    #[arg(long)]
    openmetrics: bool,
}

/// Shows them.
pub(crate) async fn run(args: Args, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let stats = outbox.reader().stats().await?;
    if args.openmetrics {
        context.out.document(&render_openmetrics(&stats, &Metrics::default()))?;
        return Ok(Exit::Ok);
    }
    let mut rows = StatsRow::all(&stats);
    if let Some(tenant) = context.listed_tenant() {
        rows.retain(|row| row.is_of(&tenant));
    }
    if rows.is_empty() {
        note("no destinations yet");
    }
    context.out.rows(&rows)?;
    Ok(Exit::Ok)
}
