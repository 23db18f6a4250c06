//! Running programs: quiet when they succeed, loud when they fail.

use std::process::{Command, Stdio};

use crate::Outcome;

/// Tells the person on standard error.
#[allow(clippy::print_stderr)]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Runs with inherited output.
pub(crate) fn loud(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown} could not be started: {error}")),
    }
}

/// Runs with output kept back; it is shown only on failure.
pub(crate) fn quiet(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}");
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{shown} could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let tail: String = String::from_utf8_lossy(&output.stderr).lines().rev().take(12).collect::<Vec<_>>().join("\n");
    Err(format!("{shown} ended with {}; its last lines, newest first:\n{tail}", output.status))
}

/// Whether a program is on the path.
pub(crate) fn have(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}
