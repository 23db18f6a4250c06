//! The engine lock: one engine per file. An advisory lock of the operating system, so that it goes with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dlo_ports::{StoreError, StoreErrorKind};

/// What is appended to the name of the database file.
pub(crate) const SUFFIX: &str = "-dlo-engine.lock";

/// The held lock. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct EngineLock {
    _file: File,
}

impl EngineLock {
    /// Takes the lock of a database file, or says which process holds it.
    ///
    /// The lock and the write-ahead log go by the name of the file: under a second name (a hard link) a second engine
    /// would send everything again, so that a file with more than one is refused.
    pub(crate) fn take(database: &Path) -> Result<Self, StoreError> {
        only_name(database)?;
        let path = path_of(database);
        let unusable = |error: std::io::Error| {
            let (kind, way_out) = match error.kind() {
                ErrorKind::StorageFull => (StoreErrorKind::DiskFull, "free space on its file system"),
                _ => (StoreErrorKind::Unavailable, "check who may write to its folder"),
            };
            StoreError::new(kind, format!("can't use the engine lock `{}`: {error}; {way_out}", path.display()))
                .with_source(error)
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&mut file, &path)),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        // The pid is for people; the lock is the operating system's.
        file.set_len(0).map_err(unusable)?;
        file.seek(SeekFrom::Start(0)).map_err(unusable)?;
        writeln!(file, "{}", std::process::id()).map_err(unusable)?;
        Ok(Self { _file: file })
    }
}

#[cfg(unix)]
fn only_name(database: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt as _;

    match std::fs::metadata(database).map(|metadata| metadata.nlink()) {
        Ok(names) if names > 1 => Err(StoreError::new(
            StoreErrorKind::Fenced,
            format!("the file has {names} names (hard links), an engine needs it to have one: remove the others"),
        )),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn only_name(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(SUFFIX);
    PathBuf::from(name)
}

fn held(file: &mut File, path: &Path) -> StoreError {
    let mut text = String::new();
    let pid = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    StoreError::new(
        StoreErrorKind::Fenced,
        format!(
            "{pid} runs an engine on this file (lock `{}`): one engine per file; stop that one first",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_with_a_second_name_is_refused_under_both() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
        std::fs::write(&one, "").unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        for name in [&one, &two] {
            assert_eq!(EngineLock::take(name).unwrap_err().kind(), StoreErrorKind::Fenced);
        }
        std::fs::remove_file(&two).unwrap();
        EngineLock::take(&one).unwrap();
    }
}
