//! What a command says when it can't do what was asked: a code, a message, a hint and an exit code.

use std::borrow::Cow;
use std::{fmt, io};

use dlo::OpenError;
use dlo::config::ConfigError;
use dlo::office::OfficeError;
use dlo_core::OptionError;
use dlo_engine::EngineError;
use dlo_ports::StoreError;

use crate::commands::explain;
use crate::exit::Exit;

/// Codes that the command line itself gives; each has a page in `docs/errors/`.
pub(crate) mod code {
    /// A file, stream or socket could not be read or written.
    pub(crate) const IO: &str = "cli.io";
    /// A file that would be overwritten exists.
    pub(crate) const EXISTS: &str = "cli.exists";
    /// There is no entry, dead letter, destination or page of that name.
    pub(crate) const NOT_FOUND: &str = "cli.not_found";
    /// Some lines or items failed.
    pub(crate) const PARTIAL: &str = "cli.partly_done";
    /// An argument is well-formed but not allowed here.
    pub(crate) const USAGE: &str = "cli.usage";
    /// A check found something.
    pub(crate) const CHECK_FAILED: &str = "cli.check_failed";
    /// `dlo` itself is wrong.
    pub(crate) const DEFECT: &str = "cli.defect";
    /// All items were refused.
    pub(crate) const REFUSED: &str = "cli.refused";

    /// An enqueue key was saved before with other content.
    pub(crate) const CONFLICT: &str = "enqueue.conflict";

    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [&str; 9] = [DEFECT, IO, EXISTS, NOT_FOUND, PARTIAL, USAGE, CHECK_FAILED, REFUSED, CONFLICT];
}

/// Why a command ended without doing all that was asked.
#[derive(Debug)]
pub(crate) struct Failure(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: Cow<'static, str>,
    message: String,
    hint: Option<String>,
    details: Vec<String>,
    causes: Vec<String>,
    exit: Exit,
    quiet: bool,
}

/// Result of everything that a command does.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with a stable code; the message names the thing, the rule and the value, never content.
    pub(crate) fn new(exit: Exit, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        let (details, causes) = (Vec::new(), Vec::new());
        Self(Box::new(Parts { code, message, hint: None, details, causes, exit, quiet: false }))
    }

    /// The same with a way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same with the chain of causes of an error, shown with `-v`.
    pub(crate) fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = error.source();
        while let Some(cause) = next {
            self.0.causes.push(cause.to_string());
            next = cause.source();
        }
        self
    }

    /// The same with lines that say each thing that is wrong.
    pub(crate) fn details(mut self, details: Vec<String>) -> Self {
        self.0.details = details;
        self
    }

    /// The command line asks for something that is not allowed.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, code::USAGE, message)
    }

    /// There is no such thing.
    pub(crate) fn not_found(kind: &str, name: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, code::NOT_FOUND, format!("{kind} `{name}` does not exist"))
    }

    /// A file or stream could not be used.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::broken_pipe();
        }
        Self::new(Exit::Io, code::IO, format!("{what}: {error}"))
    }

    /// Whoever reads stdout has gone: there is nobody left to tell.
    fn broken_pipe() -> Self {
        let mut failure = Self::new(Exit::Ok, code::IO, "stdout is closed");
        failure.0.quiet = true;
        failure
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit
    }

    /// Whether nothing is to be said about it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.0.quiet
    }

    /// Its code.
    pub(crate) fn code(&self) -> &str {
        &self.0.code
    }

    /// Its message.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Its hint: the one given, else where to read more.
    pub(crate) fn hint_line(&self) -> Option<String> {
        self.0
            .hint
            .clone()
            .or_else(|| explain::page(&self.0.code).map(|_| format!("`dlo explain {}` says more", self.0.code)))
    }

    /// Each thing that is wrong, if there are several.
    pub(crate) fn detail_lines(&self) -> &[String] {
        &self.0.details
    }

    /// What caused it, outermost first.
    pub(crate) fn causes(&self) -> &[String] {
        &self.0.causes
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Exit::Store, error.code(), error.to_string()).caused_by(&error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = match &error {
            ConfigError::Invalid { problems } => {
                let what = match problems.len() {
                    1 => "the configuration is not valid".to_owned(),
                    count => format!("the configuration has {count} problems"),
                };
                let lines = problems.iter().map(ToString::to_string).collect();
                Self::new(Exit::Usage, error.code(), what).details(lines)
            }
            _ => Self::new(Exit::Usage, error.code(), error.to_string()),
        };
        failure.caused_by(&error)
    }
}

impl From<OfficeError> for Failure {
    fn from(error: OfficeError) -> Self {
        match error {
            OfficeError::Store { done: 0, source, .. } => source.into(),
            OfficeError::Store { done, total, source } => {
                let message = format!("{source} (after {done} of {total} items, which stay done)");
                Self::new(Exit::Store, source.code(), message).caused_by(&source)
            }
            OfficeError::Forbidden { .. } => Self::new(Exit::Refused, error.code(), error.to_string()),
            _ => Self::new(Exit::Usage, error.code(), error.to_string()),
        }
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let exit = match &error {
            EngineError::Options(_) => Exit::Usage,
            EngineError::Store { .. } => Exit::Store,
            _ => Exit::Defect,
        };
        Self::new(exit, error.code(), error.to_string()).caused_by(&error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(error) => error.into(),
            OpenError::Store(error) => error.into(),
            OpenError::Destinations(error) => error.into(),
            _ => Self::new(Exit::Store, error.code(), error.to_string()).caused_by(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_command_line_has_a_page() {
        for code in code::ALL {
            assert!(explain::page(code).is_some(), "docs/errors/{code}.md is missing");
        }
    }

    #[test]
    fn a_closed_pipe_says_nothing() {
        let failure = Failure::io("stdout", &io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(failure.is_quiet());
        assert_eq!(failure.exit(), Exit::Ok);
    }
}
