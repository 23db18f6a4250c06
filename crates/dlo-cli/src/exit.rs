//! Exit codes, documented in `dlo --help` and in `docs/cli.md`.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything that was asked for was done.
    Ok = 0,
    /// A check found something: a broken invariant, or an endpoint that did not accept the ping.
    CheckFailed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// Some of it was done: lines, ids or items failed and the others did not.
    Partial = 3,
    /// Nothing was done: refused by a rule, or there is no such thing.
    Refused = 4,
    /// The store can't be used.
    Store = 5,
    /// Reading or writing files, streams or sockets failed.
    Io = 6,
    /// A defect in `dlo` itself; also what the runtime gives after a panic.
    Defect = 101,
    /// Ended at once by a second signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The list for `dlo --help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    everything that was asked for was done
  1    a check found something: a broken invariant, an endpoint that did not accept
  2    the command line or the configuration is wrong
  3    some of it was done: lines, ids or items failed, the others did not
  4    nothing was done: refused by a rule, or there is no such thing
  5    the store can't be used
  6    reading or writing files, streams or sockets failed
  101  a defect in dlo itself: please report it
  130  ended at once by a second signal

Data goes to stdout, everything else to stderr. `dlo explain CODE` explains any code that is shown.";
