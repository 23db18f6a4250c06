//! The command line: every verb with its flags. What a flag means is said in its help, and nowhere else.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};
use dlo_core::TenantId;

use crate::commands::{
    audit, completions, config, dead_letters, demo, destinations, doctor, enqueue, entries, explain, init, redrive,
    run, stats, workers,
};
use crate::exit;
use crate::output::Format;

/// Dead Letter Office: save first, deliver at least once, and hold what can't be delivered until somebody decides.
#[derive(Debug, Parser)]
#[command(name = "dlo", version, propagate_version = true, after_long_help = exit::HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Configuration file [default: $DLO_CONFIG, else ./dlo.toml if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Database file, put over `store.path` of the configuration
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Tenant [default: `tenant` of the configuration for acts; all tenants for lists]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tenant: Option<TenantId>,
    /// How data is written to stdout
    #[arg(long, short, global = true, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output: Format,
    /// How logs and errors are written to stderr
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Say more on stderr: -v causes and information, -vv debugging
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// All verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch real events be saved, delivered, retried, held, dead-lettered and released, in one minute
    Demo(demo::Args),
    /// Write a commented dlo.toml and make the database
    Init(init::Args),
    /// Save CloudEvents from a file or stdin
    Enqueue(enqueue::Args),
    /// Deliver what is due
    Run(run::Args),
    /// Look at entries, cancel them, make them due
    #[command(subcommand)]
    Entries(entries::Command),
    /// Apply, look at, test, hold and release destinations
    #[command(subcommand)]
    Destinations(destinations::Command),
    /// Workers that are or were registered
    Workers(workers::Args),
    /// Look at what is in quarantine
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Release dead letters by id
    Redrive(redrive::Args),
    /// Depth, age and totals by destination
    Stats(stats::Args),
    /// Check the invariants of a database and say what its commits promise
    Doctor(doctor::Args),
    /// Audit events and the ledger of redrives
    #[command(subcommand)]
    Audit(audit::Command),
    /// Explain a code
    Explain(explain::Args),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Completions for a shell
    Completions(completions::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_tree_is_consistent() {
        Cli::command().debug_assert();
    }
}
