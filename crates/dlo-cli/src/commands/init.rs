//! `dlo init`: a commented configuration file and an empty database.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
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

/// Writes and makes what is not there. What is there is kept as it is, so that a file that came with a deployment gets
/// its database, and doing it again does no harm.
pub(crate) async fn run(args: Args, global: &Global, out: Out) -> Result<Exit> {
    let file = global.config.clone().unwrap_or_else(|| args.folder.join("dlo.toml"));
    if file.exists() {
        note(format!("{} is there already and stays as it is", file.display()));
    } else {
        make_folder_of(&file)?;
        write_new(&file, Config::default_toml())?;
        note(format!("wrote {}", file.display()));
    }
    let named =
        Global { config: Some(file.clone()), store: global.store.clone(), tenant: global.tenant.clone(), ..*global };
    let context = Context::load(&named, Overrides::default(), out)?;
    make_database(&context).await?;
    note(match context.config.destinations.len() {
        0 => "next: name a destination in the file, then `dlo destinations apply`, `dlo enqueue FILE`, `dlo run`",
        _ => "next: `dlo destinations apply`, `dlo enqueue FILE`, `dlo run`",
    });
    Ok(Exit::Ok)
}

async fn make_database(context: &Context) -> Result {
    let path = &context.config.store.path;
    let made = make_private(path)?;
    let outbox = Outbox::open(&context.config, Context::registry(), OpenMode::Create).await?;
    let store = outbox.reader().describe().await?;
    let what = if made { "made" } else { "opened" };
    note(format!(
        "{what} {} ({} {}, schema {})",
        store.location, store.kind, store.engine_version, store.schema_version
    ));
    Ok(())
}

/// Makes an empty file that only its owner can read, since payloads stand in it as they are: SQLite gives its own files
/// the same mode. Answers whether it was not there.
fn make_private(path: &Path) -> Result<bool> {
    make_folder_of(path)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::io(path.display(), &error)),
    }
}

fn make_folder_of(file: &Path) -> Result {
    match file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error)),
        None => Ok(()),
    }
}

/// Writes a file that must not exist yet.
pub(crate) fn write_new(file: &Path, text: &str) -> Result {
    let mut target =
        OpenOptions::new().write(true).create_new(true).open(file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::new(Exit::Refused, code::EXISTS, format!("{} exists and is not overwritten", file.display()))
                    .hint("choose another folder, or move it away")
            }
            _ => Failure::io(file.display(), &error),
        })?;
    target
        .write_all(text.as_bytes())
        .and_then(|()| target.sync_all())
        .map_err(|error| Failure::io(file.display(), &error))
}
