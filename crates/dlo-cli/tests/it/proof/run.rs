//! Running with an end: a test that hangs fails, and says which command hung.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::place::Ran;

/// More than any command here takes on a slow machine, and less than the five minutes of a lease: what would wait for
/// the end of one is found.
const LONGEST: Duration = Duration::from_mins(3);

/// Tells whoever runs the tests.
pub fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr");
}

/// Runs a command to its end.
#[track_caller]
pub fn bounded(mut command: Command) -> Ran {
    let shown = format!("{command:?}");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    ended(child, &shown)
}

/// Waits for the end of a child.
#[track_caller]
pub fn ended(child: Child, shown: &str) -> Ran {
    let (over, watched) = mpsc::channel::<()>();
    let pid = child.id();
    let watch = thread::spawn(move || {
        let hung = watched.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout);
        if hung {
            signal(pid, "KILL");
        }
        hung
    });
    let ran = Ran::from(child.wait_with_output().expect("the command ends"));
    drop(over);
    assert!(!watch.join().expect("the watch"), "hung for {LONGEST:?}: {shown}\n{}", ran.err);
    ran
}

/// Sends a signal to a process of this test.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
    sent.expect("kill is there");
}
