//! `dlo init`: a commented configuration file and an empty database.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dlo::config::Overrides;
use dlo::{Config, OpenMode, Outbox};

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::{Out, note};

/// Flags of `dlo init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to write to
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes what is not there; never overwrites.
pub(crate) async fn run(args: Args, global: &Global, out: Out) -> Result<Exit> {
    let file = global.config.clone().unwrap_or_else(|| args.folder.join("dlo.toml"));
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error))?;
    }
    write_new(&file, Config::default_toml())?;
    note(format!("wrote {}", file.display()));

    let named =
        Global { config: Some(file.clone()), store: global.store.clone(), tenant: global.tenant.clone(), ..*global };
    let context = Context::load(&named, Overrides::default(), out)?;
    let outbox = Outbox::open(&context.config, Context::registry(), OpenMode::Create).await?;
    let store = outbox.reader().describe().await?;
    note(format!("made {} ({} {}, schema {})", store.location, store.kind, store.engine_version, store.schema_version));
    note("next: name a destination in the file, then `dlo destinations apply`, `dlo enqueue FILE`, `dlo run`");
    Ok(Exit::Ok)
}

/// Writes a file that must not exist yet.
pub(crate) fn write_new(file: &Path, text: &str) -> Result {
    let mut target =
        OpenOptions::new().write(true).create_new(true).open(file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::new(Exit::Refused, code::EXISTS, format!("{} exists and is not overwritten", file.display()))
                    .hint("name another with `--config FILE`, or move it away")
            }
            _ => Failure::io(file.display(), &error),
        })?;
    target
        .write_all(text.as_bytes())
        .and_then(|()| target.sync_all())
        .map_err(|error| Failure::io(file.display(), &error))
}
