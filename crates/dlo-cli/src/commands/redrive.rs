//! `dlo redrive`: releases dead letters by id.

use dlo_core::DeadLetterId;

use super::{act_answer, dead_letter_id};
use crate::context::{Context, office};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::note;
use crate::wire::act::ActRow;

/// Flags of `dlo redrive`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Dead letter ids, at most 100
    #[arg(required = true, value_parser = dead_letter_id)]
    dead_letters: Vec<DeadLetterId>,
    /// Why; kept in the audit event
    #[arg(long)]
    reason: String,
}

/// Each item is redriven, refused or missing by itself, and has a row in the ledger.
pub(crate) async fn run(args: Args, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let items = args.dead_letters;
    let (redrive, results) = office(&outbox).redrive(context.tenant(), items.clone(), &args.reason).await?;
    note(format!("{redrive}: `dlo audit redrives` shows its ledger"));
    let rows: Vec<ActRow> =
        items.iter().zip(&results).map(|(item, result)| ActRow::of_redrive(item.to_string(), result)).collect();
    act_answer("redrive", &rows, &mut context.out)
}
