//! `dlo run`: the engine, until it is stopped or there is nothing left to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use dlo::Outbox;
use dlo::config::Overrides;
use dlo_core::{DestinationName, EngineOptions};
use dlo_engine::{Ended, Until};
use dlo_ports::store::DestinationView;

use super::{destinations, drift};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{note, warn};

mod metrics;
mod signals;

/// Flags of `dlo run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End when nothing is left to do; what waits for a hold or for a person does not count
    #[arg(long)]
    until_empty: bool,
    /// Only these destinations; may be repeated. `--tenant` narrows to a tenant
    #[arg(long, value_name = "NAME")]
    destination: Vec<DestinationName>,
    /// One worker with a lease without end instead of claims with leases
    #[arg(long)]
    plain: bool,
    /// Write OpenMetrics text to this file, again and again
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    /// Serve OpenMetrics text on this address, for example 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
}

impl Args {
    /// What the flags put over the configuration.
    pub(crate) fn overrides(&self) -> Overrides {
        let mut overrides = Overrides::default();
        if self.plain {
            overrides = overrides.set("engine.mode", "--plain", "plain");
        }
        if let Some(file) = &self.metrics_file {
            overrides = overrides.set("metrics.file", "--metrics-file", file.to_string_lossy());
        }
        if let Some(listen) = &self.metrics_listen {
            overrides = overrides.set("metrics.listen", "--metrics-listen", listen.to_string());
        }
        overrides
    }
}

/// Runs the engine. A first SIGINT or SIGTERM ends it in good order, a second one at once.
pub(crate) async fn run(args: Args, context: Context) -> Result<Exit> {
    let signals = signals::listen()?;
    let outbox = context.open().await?;
    for sentence in unless_unreadable(drift::between(&context.config, &outbox).await)? {
        warn(&sentence);
    }
    let options = narrowed(&args, &context);
    if let Some(stored) = unless_unreadable(destinations::all(&outbox, None).await.map(Some))? {
        warn_of_unknown(&options, &stored);
        warn_of_leases(&options, &stored);
    }
    let engine = outbox.engine(options)?;
    let metrics = metrics::start(&context.config.metrics, &outbox, engine.handle()).await?;

    let until = if args.until_empty { Until::Empty } else { Until::Stopped };
    let first = signals.clone();
    let work = engine.run_until(until, async move { first.reached(1).await });
    let ended = tokio::select! {
        biased;
        () = signals.reached(2) => return Ok(Exit::Interrupted),
        ended = work => ended,
    };
    metrics.finish().await;
    tell_end(ended?, &outbox).await?;
    Ok(Exit::Ok)
}

/// A destination that can't be read must not keep the others from being drained: the engine leaves it alone.
fn unless_unreadable<T: Default>(checked: Result<T>) -> Result<T> {
    match checked {
        Err(failure) if ["store.corrupt", "store.schema"].contains(&failure.code()) => {
            warn(&format!("the destinations could not all be checked: {}", failure.message()));
            Ok(T::default())
        }
        checked => checked,
    }
}

fn narrowed(args: &Args, context: &Context) -> EngineOptions {
    let mut options = context.config.engine.clone();
    if let Some(tenant) = context.listed_tenant() {
        options.tenants = vec![tenant];
    }
    if !args.destination.is_empty() {
        options.destinations.clone_from(&args.destination);
    }
    options
}

/// An engine may be started before its destinations are applied; it may also wait for a misspelt one for ever.
fn warn_of_unknown(options: &EngineOptions, stored: &[DestinationView]) {
    if stored.is_empty() {
        return warn("no destination is in the store: nothing is delivered before `dlo destinations apply`");
    }
    let tenants = &options.tenants;
    let is_there = |name: &DestinationName| {
        let mut specs = stored.iter().map(|view| &view.destination.spec);
        specs.any(|spec| spec.name == *name && (tenants.is_empty() || tenants.contains(&spec.tenant)))
    };
    for name in options.destinations.iter().filter(|name| !is_there(name)) {
        warn(&format!("destination `{name}` is not in the store: nothing is delivered there before it is applied"));
    }
}

/// A page that takes longer than the lease is claimed in smaller parts: that is worth knowing, and no reason to keep
/// other destinations waiting.
fn warn_of_leases(options: &EngineOptions, stored: &[DestinationView]) {
    for view in stored {
        let spec = &view.destination.spec;
        if let Err(error) = options.validate_against(&spec.policy) {
            warn(&format!("destination `{}` is claimed in smaller pages: {error}", spec.name));
        }
    }
}

async fn tell_end(ended: Ended, outbox: &Outbox) -> Result {
    let why = match ended {
        Ended::Done => "nothing left to do",
        Ended::Stopped => "stopped",
    };
    let stats = outbox.reader().stats().await?;
    let total =
        |figure: fn(&dlo_ports::store::DestinationStats) -> u64| stats.destinations.iter().map(figure).sum::<u64>();
    note(format!(
        "{why}; in the store: {} delivered, {} ready, {} waiting, {} open dead letters",
        total(|of| of.delivered_total),
        total(|of| of.depth.ready),
        total(|of| of.depth.waiting),
        total(|of| of.depth.dead_letters_open),
    ));
    let review = total(|of| of.depth.manual_review);
    if review > 0 {
        note(format!("in manual review: {review} (`dlo entries list --state manual_review` shows them)"));
    }
    let held: Vec<&str> = stats.destinations.iter().filter(|of| of.held).map(|of| of.destination.as_str()).collect();
    if !held.is_empty() {
        note(format!("held: {} (`dlo destinations show NAME` says why)", held.join(", ")));
    }
    Ok(())
}
