//! `dlo completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Out;

/// Flags of `dlo completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to write completions for
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script to stdout.
pub(crate) fn run(args: Args, mut out: Out) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dlo", &mut script);
    out.document(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
