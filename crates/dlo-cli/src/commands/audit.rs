//! `dlo audit list|redrives`.

use dlo_ports::store::{AuditView, LedgerRow};

use super::paging::Paging;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::audit::{AuditRow, RedriveRow};

/// Verbs of `dlo audit`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Audit events of operators' acts, newest first
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// The ledger of redrives of one tenant, one row an item, newest first
    Redrives {
        #[command(flatten)]
        paging: Paging,
    },
}

/// Runs one.
pub(crate) async fn run(command: Command, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let reader = outbox.reader();
    match command {
        Command::List { paging } => {
            let tenant = context.listed_tenant();
            paging
                .write::<AuditView, AuditRow, _>("audit events", &mut context.out, |page| {
                    reader.audit_events(tenant.clone(), page)
                })
                .await
        }
        Command::Redrives { paging } => {
            let tenant = context.tenant().clone();
            paging
                .write::<LedgerRow, RedriveRow, _>("redrives", &mut context.out, |page| {
                    reader.redrive_ledger(tenant.clone(), page)
                })
                .await
        }
    }
}
