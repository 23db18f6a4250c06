//! The system calls of the binary, watched and made to fail by strace.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::place::Place;

/// Where strace writes, in the folder of the place.
const TRACE: &str = "trace.txt";

/// One call that has returned.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    /// Number of its first argument, if that is a file descriptor.
    pub fd: Option<u32>,
    /// What strace says that the descriptor is.
    pub target: String,
    /// All arguments, as far as strace shows them.
    pub arguments: String,
    /// Lines of the trace where it began and returned.
    pub began: usize,
    pub returned: usize,
    /// What it returned, and why if it failed.
    pub result: String,
}

impl Call {
    pub fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    /// A sync of the write-ahead log that worked.
    pub fn syncs_log(&self) -> bool {
        self.is(SYNCS) && self.is_on_log() && self.result == "0"
    }

    /// Bytes for the write-ahead log.
    pub fn writes_log(&self) -> bool {
        self.is(&["pwrite64"]) && self.is_on_log()
    }

    pub fn is_on_log(&self) -> bool {
        self.target.ends_with("-wal")
    }

    /// It worked and moved bytes through that descriptor.
    pub fn moves(&self, name: &str, fd: u32) -> bool {
        self.name == name && self.fd == Some(fd) && self.result.parse().is_ok_and(|bytes: i64| bytes > 0)
    }

    /// It was made to fail.
    pub fn was_injected(&self) -> bool {
        self.result.contains("(INJECTED)")
    }
}

/// Which of the two SQLite uses depends on how it was built.
pub const SYNCS: &[&str] = &["fdatasync", "fsync"];

/// Calls that the tests look at.
const WATCHED: &str = "trace=read,write,pwrite64,fdatasync,fsync,connect";

/// `dlo` under strace. `injections` are values of `-e inject`.
#[track_caller]
pub fn traced(place: &Place, injections: &[String], args: &[&str]) -> Command {
    let there = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    assert!(there, "strace is not installed: `cargo xtask setup` installs it");
    let dlo = place.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "16", "-o"]).arg(place.path(TRACE)).args(["-e", WATCHED]);
    for injection in injections {
        command.args(["-e", &format!("inject={injection}")]);
    }
    command.arg(dlo.get_program()).args(dlo.get_args()).stdin(Stdio::null());
    command.current_dir(dlo.get_current_dir().expect("a place is a folder"));
    for (name, value) in dlo.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// The calls of the latest traced command, by the order in which they returned.
#[track_caller]
pub fn calls(place: &Place) -> Vec<Call> {
    let mut begun = BTreeMap::new();
    let mut calls = Vec::new();
    for (at, line) in place.read(TRACE).lines().enumerate() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(beginning) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(pid.to_owned(), (at, beginning.to_owned()));
        } else if let Some((_, end)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
            let Some((began, beginning)) = begun.remove(pid) else { continue };
            calls.extend(call(&format!("{beginning}{end}"), began, at));
        } else {
            calls.extend(call(rest, at, at));
        }
    }
    assert!(!calls.is_empty(), "strace has written nothing: may it trace here?");
    calls
}

/// `name(3</path>, …) = result`; signals and exits are no calls.
fn call(text: &str, began: usize, returned: usize) -> Option<Call> {
    let (head, result) = text.rsplit_once(" = ")?;
    let (name, arguments) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let digits = arguments.bytes().take_while(u8::is_ascii_digit).count();
    let target = arguments[digits..].strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(target, _)| target);
    Some(Call {
        name: name.to_owned(),
        fd: target.and_then(|_| arguments[..digits].parse().ok()),
        target: target.unwrap_or_default().to_owned(),
        arguments: arguments.to_owned(),
        began,
        returned,
        result: result.to_owned(),
    })
}
