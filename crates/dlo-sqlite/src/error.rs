//! Errors of SQLite as errors of a store.

use dlo_ports::{StoreError, StoreErrorKind};
use rusqlite::{
    ErrorCode,
    ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE},
};

/// Says what was being done when SQLite failed.
pub(crate) trait Doing<T> {
    /// `what` completes the sentence "can't …", for example `claim entries`.
    fn doing(self, what: &'static str) -> Result<T, StoreError>;
}

impl<T> Doing<T> for Result<T, rusqlite::Error> {
    fn doing(self, what: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| from_sqlite(error, what))
    }
}

/// An error of SQLite as an error of a store. The file's name is added where the connection is known.
pub(crate) fn from_sqlite(error: rusqlite::Error, what: &'static str) -> StoreError {
    let kind = kind_of(&error);
    let way_out = if is_refused_write(&error) { WRITE_REFUSED } else { way_out(kind) };
    StoreError::new(kind, format!("can't {what}: {error}; {way_out}")).with_source(error)
}

/// A row is not what the schema promises.
pub(crate) fn corrupt(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("{what}; {}", way_out(StoreErrorKind::Corrupt)))
}

/// The call itself is wrong.
pub(crate) fn invalid(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}

/// Checks a number of items, or a limit, against its bounds.
pub(crate) fn bounded(what: &str, seen: usize, least: usize, most: usize) -> Result<(), StoreError> {
    if (least..=most).contains(&seen) {
        Ok(())
    } else {
        Err(invalid(format!("{what} is {seen}: it must be {least} to {most}")))
    }
}

/// SQLite tells a full disk from other failures of a write, but not what those are: a quota and the file-size limit of
/// a process look like a broken disk.
const WRITE_REFUSED: &str = "the file system refused a write: check the disk, the quota and the file-size limit of this \
                             process, then run `dlo doctor` before going on";

fn is_refused_write(error: &rusqlite::Error) -> bool {
    extended_code(error) == Some(SQLITE_IOERR_WRITE)
}

fn extended_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

fn kind_of(error: &rusqlite::Error) -> StoreErrorKind {
    let Some(code) = error.sqlite_error_code() else {
        // What is not SQLite's own error is a value that a row should not hold, or a row that should be there.
        return StoreErrorKind::Corrupt;
    };
    // The first connection to a file makes the index of its log beside it; that this can't grow is how a full disk shows.
    if extended_code(error) == Some(SQLITE_IOERR_SHMSIZE) {
        return StoreErrorKind::DiskFull;
    }
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreErrorKind::Busy
        }
        ErrorCode::DiskFull => StoreErrorKind::DiskFull,
        ErrorCode::SystemIoFailure => StoreErrorKind::Io,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
            StoreErrorKind::Corrupt
        }
        // A table or column that is not there.
        ErrorCode::SchemaChanged | ErrorCode::Unknown => StoreErrorKind::Schema,
        ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly
        | ErrorCode::OutOfMemory
        | ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted => StoreErrorKind::Unavailable,
        _ => StoreErrorKind::Invalid,
    }
}

fn way_out(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Busy => "another process is writing: repeat the call, or end its long transaction",
        StoreErrorKind::DiskFull => "nothing was saved: free space on the file system and repeat the call",
        StoreErrorKind::Io => "the file system failed: check the disk, then run `dlo doctor` before going on",
        StoreErrorKind::Corrupt => "run `dlo doctor`, and restore a backup if it confirms damage",
        StoreErrorKind::Schema => {
            "the tables are not those of this version: open the file with the version that made it"
        }
        StoreErrorKind::Unavailable => "check that the file and its folder exist and that this user may write to both",
        _ => "the call is wrong for this file",
    }
}
