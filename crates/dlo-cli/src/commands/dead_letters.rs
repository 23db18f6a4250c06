//! `dlo dead-letters list|show|groups`.

use dlo_core::{
    Class, DeadLetter, DeadLetterId, DeadLetterState, DestinationName, Reason, fingerprint, limits::MAX_PAGE,
};
use dlo_ports::store::DeadLetterFilter;

use super::paging::Paging;
use super::{dead_letter_id, destinations, parse_name};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::note;
use crate::wire::dead_letter::{DeadLetterRow, DeadLetterSheet, GroupRow};

/// Verbs of `dlo dead-letters`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Dead letters, newest first
    List {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        paging: Paging,
    },
    /// One dead letter in full: hash, size and type of its payload, never its bytes
    Show {
        /// Dead letter id
        #[arg(value_parser = dead_letter_id)]
        dead_letter: DeadLetterId,
    },
    /// Dead letters with one fingerprint each, most numerous first
    Groups {
        #[command(flatten)]
        which: Which,
        /// Groups at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

/// Which dead letters.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Only of this destination
    #[arg(long, value_name = "NAME")]
    destination: Option<DestinationName>,
    /// Only of this class: transient, deterministic, configuration, ambiguous or unknown
    #[arg(long)]
    class: Option<Class>,
    /// Only with this reason of the cause, for example http.bad_request
    #[arg(long, value_name = "CODE", value_parser = Reason::new)]
    reason: Option<Reason>,
    /// Only in this state: open, redriven, reconciled or disposed
    #[arg(long, value_parser = parse_state)]
    state: Option<DeadLetterState>,
    /// Only of this group, as `dlo dead-letters groups` prints it: fp1_...
    ///
    /// With --destination it is found by its index; without, all dead letters are looked through.
    #[arg(long, value_parser = parse_fingerprint)]
    fingerprint: Option<[u8; 16]>,
}

impl Which {
    fn filter(self, context: &Context) -> DeadLetterFilter {
        let Self { destination, class, reason, state, fingerprint } = self;
        DeadLetterFilter { tenant: context.listed_tenant(), destination, class, reason, state, fingerprint }
    }
}

fn parse_state(text: &str) -> std::result::Result<DeadLetterState, String> {
    parse_name(text, &DeadLetterState::ALL, DeadLetterState::as_str)
}

/// The hash of a fingerprint as it is printed.
fn parse_fingerprint(text: &str) -> std::result::Result<[u8; 16], String> {
    let problem = || format!("a fingerprint is fp{} and 32 hexadecimal digits: fp{0}_...", fingerprint::VERSION);
    let digits = text.strip_prefix(&format!("fp{}_", fingerprint::VERSION)).ok_or_else(problem)?;
    if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(problem());
    }
    let hash = u128::from_str_radix(digits, 16).map_err(|_| problem())?;
    Ok(hash.to_be_bytes())
}

/// Runs one.
pub(crate) async fn run(command: Command, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let reader = outbox.reader();
    match command {
        Command::List { which, paging } => {
            destinations::must_exist(&outbox, context.listed_tenant(), which.destination.as_ref()).await?;
            let filter = which.filter(&context);
            paging
                .write::<DeadLetter, DeadLetterRow, _>("dead letters", &mut context.out, |page| {
                    reader.dead_letters(filter.clone(), page)
                })
                .await
        }
        Command::Show { dead_letter } => {
            let view = reader.dead_letter(context.tenant().clone(), dead_letter).await?.ok_or_else(|| {
                Failure::not_found("dead letter", dead_letter)
                    .hint(format!("looked in tenant `{}`; `--tenant` names another", context.tenant()))
            })?;
            context.out.sheet(&DeadLetterSheet::from(&view))?;
            Ok(Exit::Ok)
        }
        Command::Groups { which, limit } => {
            destinations::must_exist(&outbox, context.listed_tenant(), which.destination.as_ref()).await?;
            let groups = reader.groups(which.filter(&context), limit.clamp(1, MAX_PAGE)).await?;
            if groups.is_empty() {
                note("no dead letters");
            }
            let rows: Vec<GroupRow> = groups.iter().map(GroupRow::from).collect();
            context.out.rows(&rows)?;
            Ok(Exit::Ok)
        }
    }
}
