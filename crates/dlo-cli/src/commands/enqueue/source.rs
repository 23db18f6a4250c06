//! Where lines come from: a file or stdin, read by a thread of its own, so that a slow pipe delays nothing.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::Path;
use std::thread;

use dlo::cloudevents::MAX_LINE_BYTES;
use tokio::sync::mpsc;

use crate::failure::{Failure, Result};
use crate::lines::{Line, Lines};
use crate::output::note;

/// Name of stdin on the command line.
const STDIN: &str = "-";
/// Lines that may be read ahead: few, because one line may have megabytes.
const READ_AHEAD: usize = 16;
/// Bytes that are asked for at once.
const BUFFER_BYTES: usize = 256 * 1_024;

/// Lines with their numbers, from 1.
pub(crate) struct Source {
    name: String,
    lines: mpsc::Receiver<io::Result<(u64, Line)>>,
}

/// Opens a file, or stdin for `-`.
pub(super) fn open(path: &Path) -> Result<Source> {
    if path.as_os_str() == STDIN {
        if io::stdin().is_terminal() {
            note("reading events from the terminal, one a line; Ctrl-D ends");
        }
        return Ok(Source::reading("stdin".to_owned(), io::stdin()));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Failure::io(&name, &error))?;
    Ok(Source::reading(name, file))
}

impl Source {
    /// Lines of anything that can be read.
    pub(crate) fn reading(name: String, input: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel(READ_AHEAD);
        thread::spawn(move || {
            let mut lines = Lines::new(BufReader::with_capacity(BUFFER_BYTES, input), MAX_LINE_BYTES);
            while let Some(line) = lines.next().transpose() {
                let failed = line.is_err();
                if sender.blocking_send(line).is_err() || failed {
                    return;
                }
            }
        });
        Self { name, lines }
    }

    /// The next line, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<(u64, Line)>> {
        match self.lines.recv().await {
            None => Ok(None),
            Some(Ok(line)) => Ok(Some(line)),
            Some(Err(error)) => Err(Failure::io(&self.name, &error)),
        }
    }
}
