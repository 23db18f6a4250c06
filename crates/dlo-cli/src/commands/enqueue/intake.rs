//! Lines become items, items are saved in chunks: a chunk is one transaction, answered line by line.

use core::time::Duration;

use dlo::Outbox;
use dlo::cloudevents::{self, EventError, Intake, MAX_LINE_BYTES};
use dlo_core::NewEntry;
use dlo_ports::Env;
use dlo_ports::store::EnqueueAnswer;

use super::answers::Tally;
use super::source::Source;
use crate::failure::Result;
use crate::lines::Line;

/// Lines of one transaction: enough that the commit costs little, few enough that a refusal of the store loses little.
const CHUNK_LINES: usize = 500;
/// Bytes of one transaction, so that large payloads do not pile up in memory.
const CHUNK_BYTES: usize = 8 * 1_024 * 1_024;
/// A chunk that is not full is saved when no line came for this long, so that a slow pipe is saved as it flows.
const IDLE: Duration = Duration::from_millis(100);

/// What became of one line.
pub(crate) struct LineAnswer {
    /// Its number, from 1.
    pub(crate) line: u64,
    /// What became of it.
    pub(crate) said: Said,
}

/// See [`LineAnswer`].
pub(crate) enum Said {
    /// The store's answer.
    Store(EnqueueAnswer),
    /// It is no event that can be saved.
    Malformed {
        /// Why, as a code.
        code: &'static str,
        /// Why.
        message: String,
    },
}

/// Is told what became of each line, in the order of the input.
pub(crate) trait Answered {
    /// One line; answers come after its transaction was committed.
    fn answered(&mut self, answer: &LineAnswer, tally: &Tally) -> Result;
}

enum Parsed {
    Item(Box<NewEntry>),
    Malformed(Said),
}

#[derive(Default)]
struct Chunk {
    lines: Vec<(u64, Parsed)>,
    bytes: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.lines.len() >= CHUNK_LINES || self.bytes >= CHUNK_BYTES
    }
}

/// Saves everything that a source gives. An error means that the store failed: what was answered before stays saved.
pub(crate) async fn save_all(
    mut source: Source,
    intake: &Intake,
    outbox: &Outbox,
    answered: &mut dyn Answered,
) -> Result<Tally> {
    let env = outbox.env();
    let mut tally = Tally::default();
    let mut chunk = Chunk::default();
    loop {
        let line = tokio::select! {
            biased;
            line = source.next() => Some(line),
            () = env.sleep(IDLE), if !chunk.lines.is_empty() => None,
        };
        let more = match line {
            None => true,
            Some(Ok(Some((number, line)))) => {
                chunk.bytes += line.len();
                chunk.lines.push((number, parse(&line, intake, &*env)));
                if !chunk.is_full() {
                    continue;
                }
                true
            }
            Some(Ok(None)) => false,
            Some(Err(failure)) => {
                save(&mut chunk, outbox, &mut tally, answered).await?;
                return Err(failure);
            }
        };
        save(&mut chunk, outbox, &mut tally, answered).await?;
        if !more {
            return Ok(tally);
        }
    }
}

fn parse(line: &Line, intake: &Intake, env: &dyn Env) -> Parsed {
    match line {
        Line::TooLong(bytes) => {
            let seen = usize::try_from(*bytes).unwrap_or(usize::MAX);
            malformed(&EventError::TooLong { seen, limit: MAX_LINE_BYTES })
        }
        Line::Text(bytes) => match cloudevents::parse_line(bytes, intake, env) {
            Ok(item) => Parsed::Item(Box::new(item)),
            Err(error) => malformed(&error),
        },
    }
}

fn malformed(error: &EventError) -> Parsed {
    Parsed::Malformed(Said::Malformed { code: error.code(), message: error.to_string() })
}

async fn save(chunk: &mut Chunk, outbox: &Outbox, tally: &mut Tally, answered: &mut dyn Answered) -> Result {
    let Chunk { lines, .. } = core::mem::take(chunk);
    let mut items = Vec::new();
    let mut order = Vec::with_capacity(lines.len());
    for (line, parsed) in lines {
        match parsed {
            Parsed::Item(item) => {
                items.push(*item);
                order.push((line, None));
            }
            Parsed::Malformed(said) => order.push((line, Some(said))),
        }
    }
    let answers = if items.is_empty() { Vec::new() } else { outbox.enqueue(items).await? };
    let mut answers = answers.into_iter();
    for (line, said) in order {
        let said =
            said.or_else(|| answers.next().map(Said::Store)).expect("a store answers each item of a batch, in order");
        let answer = LineAnswer { line, said };
        tally.count(&answer.said);
        answered.answered(&answer, tally)?;
    }
    Ok(())
}
