//! `dlo demo`.

use std::path::PathBuf;

use crate::demo;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Out;

/// Flags of `dlo demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder in which a fresh sub-folder is made for this run
    #[arg(long, value_name = "FOLDER", default_value = "./dlo-demo")]
    folder: PathBuf,
}

/// Ends with 0 only if everything that is promised held.
pub(crate) async fn run(args: Args, mut out: Out) -> Result<Exit> {
    demo::run(&args.folder, &mut out).await
}
