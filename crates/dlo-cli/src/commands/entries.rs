//! `dlo entries list|show|cancel|retry-now|dead-letter`.

use dlo::Outbox;
use dlo::office::acts::MAX_ITEMS;
use dlo_core::{DestinationName, EntryId, EntryState, limits::MAX_PAGE};
use dlo_ports::store::{EntryFilter, EntrySummary, PageRequest};

use super::paging::Paging;
use super::{act_answer, destinations, entry_id, parse_name};
use crate::context::{Context, office};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::note;
use crate::wire::act::ActRow;
use crate::wire::entry::{EntryRow, EntrySheet};

/// Verbs of `dlo entries`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Entries, newest first
    List(List),
    /// One entry in full: hash, size and type of its payload, never its bytes
    Show {
        /// Entry id
        #[arg(value_parser = entry_id)]
        entry: EntryId,
    },
    /// End live entries without delivery
    Cancel {
        /// Entry ids
        #[arg(required = true, value_parser = entry_id)]
        entries: Vec<EntryId>,
        /// Why; kept in the audit event
        #[arg(long)]
        reason: String,
    },
    /// Make live entries due now, spread by a pace
    RetryNow(RetryNow),
    /// Put entries in manual review into quarantine
    DeadLetter {
        /// Entry ids
        #[arg(required = true, value_parser = entry_id)]
        entries: Vec<EntryId>,
        /// Why; kept in the audit event
        #[arg(long)]
        reason: String,
    },
}

/// Flags of `dlo entries list`.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only of this destination
    #[arg(long, value_name = "NAME")]
    destination: Option<DestinationName>,
    /// Only in this state: ready, waiting, claimed, blocked, manual_review, delivered, dead_lettered or cancelled
    #[arg(long, value_parser = parse_state)]
    state: Option<EntryState>,
    /// Only of events with this CloudEvents `id`, as their producer gave it
    ///
    /// Old history has no index of it: it is searched page by page, newest first, until --limit rows are found; with
    /// --all always to its end.
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// Only of events with exactly this CloudEvents `type`; searched for page by page, as with --event-id
    #[arg(long, value_name = "TYPE")]
    event_type: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

/// Flags of `dlo entries retry-now`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryNow {
    /// Entry ids, or else --destination
    #[arg(
        required_unless_present = "destination",
        conflicts_with_all = ["destination", "state"],
        value_parser = entry_id
    )]
    entries: Vec<EntryId>,
    /// All entries of this destination that are in `--state` instead
    #[arg(long, value_name = "NAME")]
    destination: Option<DestinationName>,
    /// With --destination: waiting or manual_review
    #[arg(long, value_parser = parse_retryable, default_value = "waiting", requires = "destination")]
    state: EntryState,
    /// How many become due in a minute; the first at once
    #[arg(long, value_name = "N", default_value_t = 60)]
    per_minute: u32,
    /// Why; kept in the audit event
    #[arg(long)]
    reason: Option<String>,
}

fn parse_state(text: &str) -> std::result::Result<EntryState, String> {
    parse_name(text, &EntryState::ALL, EntryState::as_str)
}

fn parse_retryable(text: &str) -> std::result::Result<EntryState, String> {
    parse_name(text, &[EntryState::Waiting, EntryState::ManualReview], EntryState::as_str)
}

/// Runs one.
pub(crate) async fn run(command: Command, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    match command {
        Command::List(args) => list(args, context, &outbox).await,
        Command::Show { entry } => {
            let view = outbox.reader().entry(context.tenant().clone(), entry).await?;
            let view = view.ok_or_else(|| missing(entry, &context))?;
            context.out.sheet(&EntrySheet::from(&view))?;
            Ok(Exit::Ok)
        }
        Command::Cancel { entries, reason } => {
            let results = office(&outbox).cancel(context.tenant(), &entries, &reason).await?;
            let rows = rows(&entries, &results);
            act_answer("cancel", &rows, &mut context.out)
        }
        Command::RetryNow(args) => retry_now(args, context, &outbox).await,
        Command::DeadLetter { entries, reason } => {
            let results = office(&outbox).dead_letter(context.tenant(), &entries, &reason).await?;
            let rows = rows(&entries, &results);
            act_answer("dead letter", &rows, &mut context.out)
        }
    }
}

fn missing(entry: EntryId, context: &Context) -> Failure {
    Failure::not_found("entry", entry)
        .hint(format!("looked in tenant `{}`; `--tenant` names another", context.tenant()))
}

fn rows(entries: &[EntryId], results: &[dlo_ports::store::ActResult]) -> Vec<ActRow> {
    entries.iter().zip(results).map(|(entry, result)| ActRow::of_act(entry.to_string(), result)).collect()
}

async fn list(args: List, mut context: Context, outbox: &Outbox) -> Result<Exit> {
    destinations::must_exist(outbox, context.listed_tenant(), args.destination.as_ref()).await?;
    let filter = EntryFilter {
        tenant: context.listed_tenant(),
        destination: args.destination,
        state: args.state,
        event_type: args.event_type,
        source_event_id: args.event_id,
    };
    let reader = outbox.reader();
    args.paging
        .write::<EntrySummary, EntryRow, _>("entries", &mut context.out, |page| reader.entries(filter.clone(), page))
        .await
}

async fn retry_now(args: RetryNow, mut context: Context, outbox: &Outbox) -> Result<Exit> {
    let entries = match &args.destination {
        None => args.entries,
        Some(destination) => selected(destination, args.state, &context, outbox).await?,
    };
    if entries.is_empty() {
        note("no entry is in that state");
        return Ok(Exit::Ok);
    }
    let reason = args.reason.as_deref();
    let results = office(outbox).retry_now(context.tenant(), &entries, args.per_minute, reason).await?;
    let rows = rows(&entries, &results);
    act_answer("retry now", &rows, &mut context.out)
}

/// At most as many as one act may have, oldest first, so that those that waited longest go first.
async fn selected(
    destination: &DestinationName,
    state: EntryState,
    context: &Context,
    outbox: &Outbox,
) -> Result<Vec<EntryId>> {
    destinations::must_exist(outbox, Some(context.tenant().clone()), Some(destination)).await?;
    let filter = EntryFilter {
        tenant: Some(context.tenant().clone()),
        destination: Some(destination.clone()),
        state: Some(state),
        ..EntryFilter::default()
    };
    let mut entries = Vec::new();
    let mut after = None;
    while entries.len() < MAX_ITEMS {
        let limit = MAX_PAGE.min(MAX_ITEMS - entries.len());
        let page = outbox.reader().entries(filter.clone(), PageRequest { after, limit }).await?;
        entries.extend(page.rows.iter().map(|row| row.key.entry));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    entries.reverse();
    Ok(entries)
}
