//! The demo: a real engine on an embedded store, against a real HTTP receiver that misbehaves on purpose.
//!
//! [`script`] says what the receiver does and what must come of it, [`stage`] builds everything in a fresh folder,
//! [`watch`] tells what happens while it happens, [`report`] what became of every entry, and [`verify`] whether all
//! that is promised held.

mod cast;
mod receiver;
mod report;
mod script;
mod stage;
mod verify;
mod watch;

use core::time::Duration;
use std::path::Path;

use dlo_core::{Class, DeadLetterId, EntryState};
use dlo_engine::Until;
use dlo_ports::store::RedriveResult;
use tokio::sync::oneshot;

use crate::context::office;
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::{Format, Out, note};
use cast::Cast;
use report::Report;
use script::Fault;
use stage::Stage;
use verify::Evidence;
use watch::Watch;

/// Longest that a run of the demo may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A payment whose connection is cut: it may have been taken.
const AMBIGUOUS_EVENT: &str = "payment-2003";
/// An event that is refused until the receiver is mended.
const REFUSED_EVENT: &str = "visit-4003";

/// What the two redrives came to.
pub(crate) struct Redrives {
    /// Of the payment that may have been taken.
    pub(crate) ambiguous: RedriveResult,
    /// Of the visit, after the receiver was mended.
    pub(crate) refused: RedriveResult,
}

/// Runs the demo in a fresh folder below `parent`.
pub(crate) async fn run(parent: &Path, out: &mut Out) -> Result<Exit> {
    let stage = Stage::build(parent).await?;
    let started = stage.env.now();
    stage.tell();
    let tally = stage.enqueue().await?;
    note(format!(
        "\n{} lines read: {} saved as {} entries, {} known already. Saved first; now the engine starts.\n",
        tally.lines, tally.created, tally.entries, tally.existing
    ));

    let engine = stage.outbox.engine(stage.config.engine.clone())?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(engine.run_until(Until::Stopped, async move {
        let _ = stopped.await;
    }));

    let story = tell_story(&stage).await;
    // The engine ends in good order whether the story came to its end or not.
    let _ = stop.send(());
    let ended = running.await.map_err(|_| Failure::new(Exit::Defect, code::DEFECT, "the engine panicked"))?;
    let redrives = story?;
    ended?;

    let cast = Cast::read(&stage.outbox).await?;
    let took = stage.env.now().since(started);
    let seen = stage.receiver.seen();
    let checks =
        verify::all(&Evidence { stage: &stage, tally, cast: &cast, seen: &seen, redrives: &redrives, took }).await?;
    let report = Report::new(&cast, &seen, checks, &stage);
    show(&report, &stage, out)?;
    match report.failed() {
        0 => Ok(Exit::Ok),
        failed => {
            let message = format!("{failed} checks of the demo failed");
            Err(Failure::new(Exit::CheckFailed, code::CHECK_FAILED, message))
        }
    }
}

/// Until everything has ended; then one redrive that is refused and one that is allowed.
async fn tell_story(stage: &Stage) -> Result<Redrives> {
    let mut watch = Watch::start(stage).await?;
    watch.until_all_ended().await?;

    note(format!(
        "\nRedrive of {AMBIGUOUS_EVENT}: its connection was cut after the body was read, so it may have been taken."
    ));
    let ambiguous = redrive(stage, AMBIGUOUS_EVENT, "the customer asks where the payment is").await?;
    note(format!(
        "Redrive of {REFUSED_EVENT}: the receiver has been mended and takes numbers that are written as text."
    ));
    stage.receiver.mend(Fault::VisitSchema);
    let refused = redrive(stage, REFUSED_EVENT, "receiver mended: takes numbers that are written as text").await?;
    watch.until_all_ended().await?;
    Ok(Redrives { ambiguous, refused })
}

async fn redrive(stage: &Stage, event: &str, reason: &str) -> Result<RedriveResult> {
    let id = dead_letter_of(stage, event).await?;
    let (_, results) = office(&stage.outbox).redrive(&stage.config.tenant, vec![id], reason).await?;
    let result = results.into_iter().next().expect("the office answers each item");
    note(match &result {
        RedriveResult::Redriven { key } => format!("  allowed: generation {} is ready", key.generation),
        RedriveResult::Refused(refusal) => format!("  refused [{}]: {refusal}", refusal.code()),
        RedriveResult::Missing => "  there is no such dead letter".to_owned(),
    });
    Ok(result)
}

async fn dead_letter_of(stage: &Stage, event: &str) -> Result<DeadLetterId> {
    let cast = Cast::read(&stage.outbox).await?;
    let letter = cast
        .members()
        .iter()
        .filter(|member| member.event == event && member.view.summary.state == EntryState::DeadLettered)
        .find_map(|member| member.view.ended.last().and_then(|ended| ended.dead_letter));
    letter.ok_or_else(|| {
        Failure::new(Exit::CheckFailed, code::CHECK_FAILED, format!("{event} has no dead letter, as it should have"))
    })
}

fn show(report: &Report, stage: &Stage, out: &mut Out) -> Result {
    match out.format() {
        Format::Json | Format::Jsonl => out.sheet(report)?,
        Format::Table => {
            note("");
            out.rows(report.entries())?;
            out.line("")?;
            out.rows(report.checks())?;
        }
    }
    let program = std::env::args().next().unwrap_or_else(|| "dlo".to_owned());
    let config = shell_word(&stage.config_file.display().to_string());
    note(format!("\nEverything is left in {} to be looked at:", stage.folder.display()));
    for command in ["entries list", "dead-letters groups", "dead-letters list", "audit list", "stats", "doctor"] {
        note(format!("  {program} --config {config} {command}"));
    }
    Ok(())
}

/// A path as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Classes for people.
pub(crate) fn because(class: Class) -> &'static str {
    match class {
        Class::Transient => "expected to pass",
        Class::Deterministic => "would fail again",
        Class::Configuration => "ours or theirs to configure",
        Class::Ambiguous => "may have happened",
        Class::Unknown => "no evidence",
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("/tmp/dlo-demo/1/dlo.toml"), "/tmp/dlo-demo/1/dlo.toml");
        assert_eq!(shell_word("/my files/it's"), r"'/my files/it'\''s'");
    }
}
