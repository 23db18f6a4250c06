//! `dlo`, the command line of Dead Letter Office.
//!
//! One file for each verb in [`commands`]; only [`output`] writes to stdout and stderr; [`failure`] says why something
//! was not done and [`exit`] with which code the process ends.

mod args;
mod commands;
mod context;
mod demo;
mod exit;
mod failure;
mod lines;
mod logs;
mod output;
mod wire;

use core::time::Duration;
use std::process::ExitCode;

use clap::Parser;
use dlo::config::Overrides;
use tokio::signal::unix::{SignalKind, signal};

use args::{Cli, Command};
use context::Context;
use exit::Exit;
use failure::{Failure, Result};
use output::Out;

/// How long tasks that are still running may take to end before the process does.
const SHUTDOWN: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| output::defect(panic.location())));
    if wants_json() {
        output::speak_json();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    let verbose = cli.global.verbose > 0;
    let exit = match run(cli) {
        Ok(exit) => exit,
        Err(failure) => output::report(&failure, verbose),
    };
    exit.into()
}

/// Whether whoever reads stderr wants JSON, known before anything that may go wrong.
fn wants_json() -> bool {
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let next = args.iter().skip_while(|arg| *arg != "--log-format").nth(1);
    let joined = args.iter().find_map(|arg| arg.strip_prefix("--log-format="));
    let flag = next.map(String::as_str).or(joined).map(str::to_owned);
    flag.or_else(|| std::env::var(dlo::env_vars::LOG_FORMAT.name).ok()).is_some_and(|format| format == "json")
}

/// Help and version are no errors; anything else is told as every error is.
fn usage(error: &clap::Error) -> Exit {
    if !error.use_stderr() || !output::speaks_json() {
        let _ = error.print();
        return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
    }
    let text = error.to_string();
    let message = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
    output::report(&Failure::usage(message).hint("`--help` says what is expected"), false)
}

fn run(cli: Cli) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("starting the runtime", &error))?;
    let exit = runtime.block_on(async {
        outlive_file_size_limit()?;
        dispatch(cli).await
    });
    runtime.shutdown_timeout(SHUTDOWN);
    exit
}

/// A write beyond the file-size limit of the process (`ulimit -f`) is to be an error with a name, not the end by
/// SIGXFSZ. A signal that is listened to once stays without its default effect.
fn outlive_file_size_limit() -> Result {
    let kind = SignalKind::from_raw(libc::SIGXFSZ);
    signal(kind).map(drop).map_err(|error| Failure::io("listening to signals", &error))
}

async fn dispatch(cli: Cli) -> Result<Exit> {
    let Cli { global, command } = cli;
    let out = Out::new(global.output);
    let load = |long_running: bool, overrides: Overrides, out: Out| -> Result<Context> {
        let context = Context::load(&global, overrides, out)?;
        logs::start(&context.config, long_running)?;
        Ok(context)
    };
    let short = |out: Out| load(false, Overrides::default(), out);
    match command {
        Command::Demo(args) => commands::demo::run(args, out).await,
        Command::Init(args) => commands::init::run(args, &global, out).await,
        Command::Enqueue(args) => commands::enqueue::run(args, short(out)?).await,
        Command::Run(args) => {
            let context = load(true, args.overrides(), out)?;
            commands::run::run(args, context).await
        }
        Command::Entries(command) => commands::entries::run(command, short(out)?).await,
        Command::Destinations(command) => commands::destinations::run(command, short(out)?).await,
        Command::Workers(args) => commands::workers::run(args, short(out)?).await,
        Command::DeadLetters(command) => commands::dead_letters::run(command, short(out)?).await,
        Command::Redrive(args) => commands::redrive::run(args, short(out)?).await,
        Command::Stats(args) => commands::stats::run(args, short(out)?).await,
        Command::Doctor(args) => commands::doctor::run(args, short(out)?).await,
        Command::Audit(command) => commands::audit::run(command, short(out)?).await,
        Command::Explain(args) => commands::explain::run(args, out),
        Command::Config(command) => commands::config::run(command, short(out)?),
        Command::Completions(args) => commands::completions::run(args, out),
    }
}
