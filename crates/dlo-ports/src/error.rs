//! The one error of a store.

use core::fmt;

/// What kind of trouble a store has; callers decide by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another writer holds it; the same call may succeed later.
    Busy,
    /// It can't be reached or has been closed; the same call may succeed later.
    Unavailable,
    /// No space: nothing was saved; free space and repeat.
    DiskFull,
    /// The file system, the device or the store itself failed; do not trust the file until it is opened again and checked.
    Io,
    /// The data is not what the schema promises.
    Corrupt,
    /// The schema is newer than this binary, or was changed.
    Schema,
    /// Another engine holds the store, or this incarnation has been ended.
    Fenced,
    /// The call itself is wrong.
    Invalid,
}

impl StoreErrorKind {
    /// Stable dotted code; each has a page in `docs/errors/`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Busy => "store.busy",
            Self::Unavailable => "store.unavailable",
            Self::DiskFull => "store.disk_full",
            Self::Io => "store.io",
            Self::Corrupt => "store.corrupt",
            Self::Schema => "store.schema",
            Self::Fenced => "store.fenced",
            Self::Invalid => "store.invalid",
        }
    }

    /// All codes.
    pub const CODES: [&'static str; 8] = [
        "store.busy",
        "store.unavailable",
        "store.disk_full",
        "store.io",
        "store.corrupt",
        "store.schema",
        "store.fenced",
        "store.invalid",
    ];
}

/// Why a verb did nothing. A verb that fails has changed nothing, or (only after [`StoreErrorKind::Io`] and
/// [`StoreErrorKind::Unavailable`]) may have been saved without the answer arriving: repeating it is safe.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error of that kind; the message names the thing, the rule and the way out, never content.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with its cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same, said of a place: the message starts with it, for example with the file's name.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Its kind.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Its stable code.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Whether the same call may succeed later without anybody doing anything.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Busy | StoreErrorKind::Unavailable)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}
