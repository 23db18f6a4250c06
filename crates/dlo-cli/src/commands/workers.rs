//! `dlo workers`.

use dlo_core::limits::MAX_PAGE;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::note;
use crate::wire::worker::WorkerRow;

/// Flags of `dlo workers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rows at most, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Lists workers.
pub(crate) async fn run(args: Args, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let workers = outbox.reader().workers(args.limit.clamp(1, MAX_PAGE)).await?;
    if workers.is_empty() {
        note("no worker was ever registered: `dlo run` starts one");
    }
    let rows: Vec<WorkerRow> = workers.iter().map(WorkerRow::from).collect();
    context.out.rows(&rows)?;
    Ok(Exit::Ok)
}
