//! `dlo enqueue`: saves CloudEvents, one JSON object a line.

use core::time::Duration;
use std::path::PathBuf;

use dlo::cloudevents::Intake;
use dlo::duration;
use dlo_core::{DestinationName, ProducerId, Timestamp};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};

mod answers;
mod intake;
mod source;

pub(crate) use answers::Tally;
pub(crate) use intake::{Answered, LineAnswer, save_all};
pub(crate) use source::Source;

/// Flags of `dlo enqueue`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with one CloudEvent (JSON) a line; `-` is stdin
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Destination; may be repeated. Without one, the event-type rules of the destinations decide
    #[arg(long, value_name = "NAME")]
    destination: Vec<DestinationName>,
    /// Take the tenant from the event's `tenant` attribute, if it has one
    #[arg(long)]
    tenant_from_event: bool,
    /// Not tried before: an RFC 3339 time, or a time from now such as `10m`
    #[arg(long, value_name = "WHEN")]
    not_before: Option<String>,
    /// Dead-lettered if not delivered by: an RFC 3339 time, or a time from now such as `2h`
    #[arg(long, value_name = "WHEN")]
    deliver_by: Option<String>,
    /// Who enqueues; enqueue keys are unique within a tenant and producer
    #[arg(long, value_name = "NAME", default_value = "default")]
    producer: ProducerId,
    /// Write one row a line of input instead of a summary
    #[arg(long)]
    each: bool,
}

/// Saves every line that can be saved; each that can't is reported with its number.
pub(crate) async fn run(args: Args, mut context: Context) -> Result<Exit> {
    let outbox = context.open().await?;
    let now = outbox.env().now();
    let intake = Intake {
        tenant: context.tenant().clone(),
        tenant_from_event: args.tenant_from_event,
        producer: args.producer.clone(),
        destinations: args.destination.clone(),
        not_before: args.not_before.as_deref().map(|text| when("not-before", text, now)).transpose()?,
        deliver_by: args.deliver_by.as_deref().map(|text| when("deliver-by", text, now)).transpose()?,
    };
    let lines = source::open(&args.input)?;
    let mut answers = answers::Answers::new(args.each, &mut context.out);
    let saved = save_all(lines, &intake, &outbox, &mut answers).await;
    let shown = answers.end();
    // Lines that were not saved weigh more than answers that were not read.
    let exit = exit(&saved.map_err(|failure| {
        failure.hint("what is answered above is saved, no line after it; saving the same file again adds nothing twice")
    })?)?;
    shown.map(|()| exit)
}

fn exit(tally: &Tally) -> Result<Exit> {
    let failed = tally.failed();
    if failed == 0 {
        return Ok(Exit::Ok);
    }
    let total = tally.lines;
    let (exit, code) = if failed == total { (Exit::Refused, code::REFUSED) } else { (Exit::Partial, code::PARTIAL) };
    let message = format!("{failed} of {total} lines were not saved");
    Err(Failure::new(exit, code, message)
        .hint("the lines above say why; saving the same file again adds nothing twice"))
}

/// A time, or a span from now.
fn when(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp> {
    let span: Option<Duration> = duration::parse(text).ok();
    span.map(|span| now.after(span)).or_else(|| text.parse().ok()).ok_or_else(|| {
        Failure::usage(format!(
            "`--{flag}` is `{text}`: must be an RFC 3339 time with an offset, or a time from now such as `10m`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_from_now() {
        let now = Timestamp::from_micros(1_000_000);
        assert_eq!(when("not-before", "2s", now).expect("a span"), Timestamp::from_micros(3_000_000));
        assert_eq!(when("not-before", "1970-01-01T00:00:05Z", now).expect("a time"), Timestamp::from_micros(5_000_000));
        assert_eq!(when("deliver-by", "soon", now).expect_err("neither").exit(), Exit::Usage);
    }
}
