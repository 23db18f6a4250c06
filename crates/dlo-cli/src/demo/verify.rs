//! Whether everything that is promised held: by the database's own checks, and by the receiver's own record.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use dlo::office::acts;
use dlo_core::{EntryState, limits::MAX_PAGE};
use dlo_ports::store::{PageRequest, RedriveResult};

use super::cast::{Cast, Member};
use super::receiver::Seen;
use super::report::{Check, failed};
use super::script::{Expected, expected};
use super::stage::Stage;
use super::{AMBIGUOUS_EVENT, LIMIT, REFUSED_EVENT, Redrives};
use crate::commands::enqueue::Tally;
use crate::failure::Result;

/// Destinations that declare duplicates harmful.
const HARMFUL: [&str; 2] = ["payments", "mails"];
/// Violations that are shown at most.
const VIOLATIONS: usize = 20;

/// What there is to judge by.
pub(crate) struct Evidence<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) tally: Tally,
    pub(crate) cast: &'a Cast,
    pub(crate) seen: &'a [Seen],
    pub(crate) redrives: &'a Redrives,
    pub(crate) took: Duration,
}

/// Every check.
pub(crate) async fn all(evidence: &Evidence<'_>) -> Result<Vec<Check>> {
    Ok(vec![
        database(evidence).await?,
        accounted_for(evidence),
        as_scripted(evidence),
        acknowledged(evidence),
        same_key(evidence),
        harmful_once(evidence),
        uncharged_holds(evidence),
        signed(evidence),
        redrives(evidence),
        audited(evidence).await?,
        in_time(evidence),
    ])
}

fn check(invariant: &'static str, promise: &'static str, wrong: &[String], right: String) -> Check {
    let held = wrong.is_empty();
    Check { invariant, promise, held, seen: if held { right } else { wrong.join("; ") } }
}

async fn database(evidence: &Evidence<'_>) -> Result<Check> {
    let violations = evidence.stage.outbox.reader().check(VIOLATIONS).await?;
    let wrong: Vec<String> = violations.iter().map(|broken| format!("{} {}", broken.invariant, broken.what)).collect();
    Ok(check("all", "every invariant that a database can show holds", &wrong, "as `dlo doctor` checks".to_owned()))
}

fn accounted_for(evidence: &Evidence<'_>) -> Check {
    let Tally { lines, created, entries, existing, .. } = evidence.tally;
    let found = evidence.cast.members().len() as u64;
    let count = |state| evidence.cast.members().iter().filter(|member| member.view.summary.state == state).count();
    let (delivered, dead) = (count(EntryState::Delivered), count(EntryState::DeadLettered));
    let whole = lines == Stage::input_lines()
        && created + existing == lines
        && entries == found
        && (delivered + dead) as u64 == found;
    let seen = format!(
        "{lines} lines = {created} saved + {existing} known; {found} entries = {delivered} delivered + {dead} in quarantine"
    );
    Check { invariant: "I-01", promise: "nothing is lost: what went in is accounted for", held: whole, seen }
}

fn as_scripted(evidence: &Evidence<'_>) -> Check {
    let members = evidence.cast.members().iter();
    let wrong: Vec<String> = members.filter_map(|member| unexpected(member, evidence)).collect();
    check("", "every event ended as its failures demand", &wrong, "four went into quarantine, one came back".to_owned())
}

/// Judged by the first generation: a redrive is a decision of its own.
fn unexpected(member: &Member, evidence: &Evidence<'_>) -> Option<String> {
    let first = member.view.ended.first();
    let state = first.map(|ended| ended.state);
    let right = match expected(&member.event) {
        Expected::Delivered => state == Some(EntryState::Delivered),
        Expected::DeadLettered(_) => state == Some(EntryState::DeadLettered),
    };
    let code = first.and_then(|ended| ended.dead_letter).and_then(|id| evidence.cast.code(id));
    let code_right = match expected(&member.event) {
        Expected::Delivered => true,
        Expected::DeadLettered(wanted) => code == Some(wanted),
    };
    (!right || !code_right)
        .then(|| format!("{}: {:?} {}", member.event, state.map(EntryState::as_str), code.unwrap_or_default()))
}

fn seen_of<'a>(evidence: &'a Evidence<'_>, member: &'a Member) -> impl Iterator<Item = &'a Seen> {
    let destination = member.view.summary.destination.as_str();
    evidence.seen.iter().filter(move |seen| seen.path == destination && seen.event == member.event)
}

fn acknowledged(evidence: &Evidence<'_>) -> Check {
    let delivered = evidence.cast.members().iter().filter(|member| member.view.summary.state == EntryState::Delivered);
    let wrong: Vec<String> = delivered
        .filter(|member| !seen_of(evidence, member).any(|seen| seen.did.says_so()))
        .map(|member| format!("{} was never accepted", member.event))
        .collect();
    let requests = evidence.seen.len();
    check("I-02", "what is called delivered was accepted by the receiver", &wrong, format!("{requests} requests seen"))
}

fn same_key(evidence: &Evidence<'_>) -> Check {
    let mut wrong = Vec::new();
    let mut repeated = 0;
    for member in evidence.cast.members() {
        let keys: BTreeSet<&str> = seen_of(evidence, member).map(|seen| seen.operation_key.as_str()).collect();
        if seen_of(evidence, member).count() > 1 {
            repeated += 1;
        }
        if keys.iter().any(|key| *key != member.view.operation_key.as_str()) {
            wrong.push(format!("{} came with another key", member.event));
        }
    }
    let right = format!("{repeated} events came more than once, each with one key");
    check("I-11", "every try carries the same operation key, redrive included", &wrong, right)
}

fn harmful_once(evidence: &Evidence<'_>) -> Check {
    let mut taken: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for seen in evidence.seen.iter().filter(|seen| HARMFUL.contains(&seen.path.as_str()) && seen.did.takes()) {
        *taken.entry((&seen.path, &seen.event)).or_default() += 1;
    }
    let wrong: Vec<String> = taken
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|((path, event), times)| format!("{path} took {event} {times} times"))
        .collect();
    let right = format!("{} payments and e-mails were taken, each once", taken.len());
    check("I-10", "where a duplicate does harm, nothing was taken twice", &wrong, right)
}

fn uncharged_holds(evidence: &Evidence<'_>) -> Check {
    let mails = || evidence.cast.members().iter().filter(|member| member.view.summary.destination.as_str() == "mails");
    let wrong: Vec<String> = mails()
        .filter(|member| failed(member) > 0)
        .map(|member| format!("{} was charged {} attempts", member.event, failed(member)))
        .collect();
    let refusals = evidence.seen.iter().filter(|seen| seen.path == "mails" && !seen.did.takes()).count();
    check("I-08", "a hold charges nothing", &wrong, format!("{refusals} answers of 401, no attempt charged"))
}

fn signed(evidence: &Evidence<'_>) -> Check {
    let wrong: Vec<String> = evidence
        .seen
        .iter()
        .filter(|seen| !seen.signed)
        .map(|seen| format!("{} came without a valid signature", seen.event))
        .collect();
    check("", "every request is signed", &wrong, "the receiver verified each signature".to_owned())
}

fn redrives(evidence: &Evidence<'_>) -> Check {
    let mut wrong = Vec::new();
    match &evidence.redrives.ambiguous {
        RedriveResult::Refused(refusal) if refusal.code() == "redrive.unanswered" => {}
        other => wrong.push(format!("{AMBIGUOUS_EVENT}: {other:?}")),
    }
    if !matches!(evidence.redrives.refused, RedriveResult::Redriven { .. }) {
        wrong.push(format!("{REFUSED_EVENT} was not redriven"));
    }
    let redriven = evidence.cast.of(REFUSED_EVENT).map(|member| &member.view.summary);
    if !redriven.is_some_and(|of| of.state == EntryState::Delivered && of.key.generation == 1) {
        wrong.push(format!("{REFUSED_EVENT} was not delivered as generation 1"));
    }
    let right = format!("{AMBIGUOUS_EVENT} refused, {REFUSED_EVENT} delivered");
    check("I-10", "an unanswered harmful send is not released, a mended failure is", &wrong, right)
}

async fn audited(evidence: &Evidence<'_>) -> Result<Check> {
    let page = PageRequest { after: None, limit: MAX_PAGE };
    let events = evidence.stage.outbox.reader().audit_events(None, page).await?.rows;
    let count = |act: &str| events.iter().filter(|event| event.act == act).count();
    let held = count(acts::REDRIVE) == 2 && count(acts::APPLY) == 1;
    let seen = format!("{} acts, {} audit events", 3, events.len());
    Ok(Check { invariant: "I-12", promise: "every act has its audit event", held, seen })
}

fn in_time(evidence: &Evidence<'_>) -> Check {
    let seen = format!("{}.{} s", evidence.took.as_secs(), evidence.took.subsec_millis() / 100);
    Check { invariant: "", promise: "the demo ends within a minute", held: evidence.took < LIMIT, seen }
}
