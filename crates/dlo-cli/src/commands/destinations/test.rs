//! `dlo destinations test`: one signed ping to the endpoint, outside the outbox.

use std::sync::Arc;

use dlo::Outbox;
use dlo_core::{Destination, EntryId, EnvelopeId, Failure as Evidence, Observed, Outcome, classify::classify, reason};
use dlo_ports::env::EmitterError;
use dlo_ports::{Emission, Env};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::{Out, Sheet};
use crate::wire::or_dash;

/// Code that the office gives for the same cause when a destination is applied.
const SETTINGS_INVALID: &str = "office.settings_invalid";

/// What came of a ping.
#[derive(Serialize)]
struct PingSheet {
    destination: String,
    version: u64,
    operation_key: String,
    outcome: &'static str,
    class: Option<&'static str>,
    reason: Option<String>,
    http_status: Option<u16>,
    phase: Option<&'static str>,
    retry_after_seconds: Option<u64>,
    text: Option<String>,
    took_milliseconds: u128,
}

impl Sheet for PingSheet {
    fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("destination", format!("{} version {}", self.destination, self.version)),
            ("operation key", self.operation_key.clone()),
            ("outcome", self.outcome.to_owned()),
            ("http status", or_dash(self.http_status.map(|status| status.to_string()))),
            ("said", or_dash(self.text.clone())),
            ("cause", or_dash(self.class.zip(self.reason.as_ref()).map(|(class, reason)| format!("{class} {reason}")))),
            ("took", format!("{} ms", self.took_milliseconds)),
        ]
    }
}

/// Sends the ping and shows the answer.
pub(crate) async fn ping(destination: &Destination, outbox: &Outbox, out: &mut Out) -> Result<Exit> {
    let env = outbox.env();
    let emitter = env.emitter(destination).map_err(|error| {
        let code = match &error {
            EmitterError::UnknownKind { .. } => reason::EMITTER_UNKNOWN.as_str().to_owned(),
            EmitterError::Settings { .. } => SETTINGS_INVALID.to_owned(),
        };
        Failure::new(Exit::Refused, code, error.to_string())
    })?;
    let emission = emission(destination, &*env);
    let operation_key = emission.operation_key.to_string();
    let (started, timeout) = (env.now(), emission.timeout);
    let outcome = tokio::select! {
        biased;
        mut emitted = emitter.emit(vec![emission]) => emitted.pop().map(|emitted| emitted.outcome),
        () = env.sleep(timeout) => None,
    };
    let evidence = outcome.as_ref().and_then(evidence);
    let classified = outcome.as_ref().and_then(|outcome| classify(outcome, destination.spec.duplicates));
    let sheet = PingSheet {
        destination: destination.spec.name.to_string(),
        version: destination.version,
        operation_key,
        outcome: outcome.as_ref().map_or("no_answer", Outcome::name),
        class: classified.as_ref().map(|found| found.class.as_str()),
        reason: classified.as_ref().map(|found| found.reason.to_string()),
        http_status: evidence.and_then(|evidence| match evidence.observed {
            Observed::Http { status } => Some(status),
            _ => None,
        }),
        phase: evidence.and_then(|evidence| match evidence.observed {
            Observed::Transport { phase, .. } | Observed::Custom { phase, .. } => Some(phase.as_str()),
            Observed::Http { .. } | Observed::Nothing => None,
        }),
        retry_after_seconds: evidence.and_then(|evidence| evidence.retry_after).map(|wait| wait.as_secs()),
        text: evidence.map(|evidence| evidence.text.to_string()),
        took_milliseconds: env.now().since(started).as_millis(),
    };
    out.sheet(&sheet)?;
    if matches!(outcome, Some(Outcome::Delivered { .. })) {
        return Ok(Exit::Ok);
    }
    let message = format!("`{}` did not accept the ping", destination.spec.name);
    let failure = Failure::new(Exit::CheckFailed, code::CHECK_FAILED, message);
    Err(match classified {
        Some(found) => failure.hint(format!("`dlo explain {}` says what to do", found.reason)),
        None => failure,
    })
}

fn emission(destination: &Destination, env: &dyn Env) -> Emission {
    let mut random = [0; 20];
    env.random(&mut random);
    let (first, second) = random.split_at(10);
    let ten = |half: &[u8]| <[u8; 10]>::try_from(half).expect("twenty bytes are split in the middle");
    let now = env.now();
    let entry = EntryId::new(now, ten(first));
    let id = EnvelopeId::new(now, ten(second));
    let envelope = dlo::webhook::ping(id, destination.spec.tenant.clone(), now);
    let timeout = destination.spec.policy.emission_deadline;
    Emission {
        entry,
        tenant: destination.spec.tenant.clone(),
        destination: destination.spec.name.clone(),
        generation: 0,
        operation_key: entry.operation_key(),
        attempt: 1,
        deadline: now.after(timeout),
        timeout,
        envelope: Arc::new(envelope),
    }
}

fn evidence(outcome: &Outcome) -> Option<&Evidence> {
    match outcome {
        Outcome::Failed(evidence)
        | Outcome::RetryableFailure(evidence)
        | Outcome::DeadLettered(evidence)
        | Outcome::Ambiguous(evidence) => Some(evidence),
        Outcome::Delivered { .. } | Outcome::Pending | Outcome::Deferred { .. } => None,
    }
}
