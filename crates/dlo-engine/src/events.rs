//! Log events of the engine: one for each thing that happens, with structured fields, never with content (I-13).

use core::time::Duration;

use dlo_core::{
    Class, DeadLetterId, EntryId, EntryKey, Envelope, Health, Incarnation, Reason, Timestamp, TransitionResult,
    WorkerId,
};
use dlo_ports::{StoreError, env::EmitterError};
use tracing::{debug, error, info, warn};

use crate::{account::Note, shared::LaneKey};

pub(crate) fn started(worker: &WorkerId, incarnation: Incarnation, lease: Duration) {
    info!(%worker, %incarnation, lease_s = lease.as_secs(), "engine started");
}

pub(crate) fn stopping(worker: &WorkerId, cause: &str, grace: Duration) {
    info!(%worker, cause, grace_ms = grace.as_millis() as u64, "engine stops: claims no more");
}

pub(crate) fn stopped(worker: &WorkerId) {
    info!(%worker, "engine stopped");
}

pub(crate) fn failed(worker: &WorkerId, failure: &crate::EngineError) {
    error!(%worker, code = failure.code(), error = %failure, "engine ends with an error");
}

pub(crate) fn store_failed(verb: &str, failure: &StoreError) {
    error!(
        verb,
        code = failure.code(),
        error = %failure,
        "store fails: claiming has stopped, outcomes in hand are kept and saved when it works again"
    );
}

pub(crate) fn store_recovered(verb: &str, code: &str) {
    info!(verb, code, "store works again");
}

pub(crate) fn outcomes_given_up(key: &LaneKey, count: usize) {
    error!(
        tenant = %key.0, destination = %key.1, count,
        "outcomes could not be saved before the end: their claims are recovered at the next start"
    );
}

pub(crate) fn emission_failed(key: &LaneKey, entry: EntryId, note: &Note) {
    let (class, reason) = (class_of(note.class), reason_of(note.reason.as_ref()));
    info!(
        tenant = %key.0, destination = %key.1, %entry, attempt = note.attempt, class, code = reason,
        charged = note.charged, due = %note.due.unwrap_or(Timestamp::MAX), "emission failed, will be tried again"
    );
}

pub(crate) fn put_off(key: &LaneKey, entry: EntryId, note: &Note) {
    let reason = reason_of(note.reason.as_ref());
    debug!(
        tenant = %key.0, destination = %key.1, %entry, code = reason, due = %note.due.unwrap_or(Timestamp::MAX),
        "entry put off, nothing charged"
    );
}

/// Producer's identifiers that lead from an alert to its traces elsewhere: no content (P-10, I-13).
macro_rules! alert {
    ($envelope:expr, $($rest:tt)*) => {{
        let envelope: Option<&Envelope> = $envelope;
        warn!(
            correlation_id = envelope.and_then(|e| e.correlation_id.as_deref()),
            audit_residue_id = envelope.and_then(|e| e.audit_residue_id.as_deref()),
            region = envelope.and_then(|e| e.region.as_deref()),
            workload = envelope.and_then(|e| e.workload.as_deref()),
            $($rest)*
        );
    }};
}

pub(crate) fn last_chance(key: &LaneKey, entry: EntryId, note: &Note, envelope: Option<&Envelope>) {
    alert!(
        envelope, tenant = %key.0, destination = %key.1, %entry, attempt = note.attempt, class = class_of(note.class),
        code = reason_of(note.reason.as_ref()), "the next failure of this entry will dead-letter it"
    );
}

pub(crate) fn dead_letter_opened(
    key: &LaneKey,
    entry: EntryId,
    note: &Note,
    id: DeadLetterId,
    code: &Reason,
    envelope: Option<&Envelope>,
) {
    alert!(
        envelope, tenant = %key.0, destination = %key.1, %entry, dead_letter = %id, attempt = note.attempt,
        class = class_of(note.class), code = %code, cause = reason_of(note.reason.as_ref()), "dead letter opened"
    );
}

pub(crate) fn manual_review(key: &LaneKey, entry: EntryId, note: &Note, envelope: Option<&Envelope>) {
    alert!(
        envelope, tenant = %key.0, destination = %key.1, %entry, attempt = note.attempt, class = class_of(note.class),
        code = reason_of(note.reason.as_ref()), "entry set aside for manual review"
    );
}

pub(crate) fn hold_opened(key: &LaneKey, health: &Health) {
    let Some(hold) = &health.hold else { return };
    warn!(
        tenant = %key.0, destination = %key.1, cause = hold.cause.as_str(), class = %hold.class, code = %hold.reason,
        next_probe = %hold.next_probe, "destination held"
    );
}

pub(crate) fn probe_failed(key: &LaneKey, health: &Health) {
    let Some(hold) = &health.hold else { return };
    info!(
        tenant = %key.0, destination = %key.1, failed_probes = hold.failed_probes, next_probe = %hold.next_probe,
        "probe failed, destination stays held"
    );
}

pub(crate) fn hold_closed(key: &LaneKey, health: &Health) {
    info!(tenant = %key.0, destination = %key.1, ramp = health.ramp.unwrap_or(0), "hold ended");
}

pub(crate) fn emitter_unknown(key: &LaneKey, failure: &EmitterError) {
    warn!(tenant = %key.0, destination = %key.1, error = %failure, "destination can't be emitted to by this process");
}

pub(crate) fn stale(key: &LaneKey, entry: EntryId, verb: &str, result: TransitionResult) {
    warn!(
        tenant = %key.0, destination = %key.1, %entry, verb, result = result.as_str(),
        "another decision was quicker: nothing changed"
    );
}

pub(crate) fn unreadable(key: &LaneKey, entry: &EntryKey) {
    warn!(
        tenant = %key.0, destination = %key.1, entry = %entry.entry, generation = entry.generation,
        "row could not be read and was quarantined by itself"
    );
}

pub(crate) fn destination_missing(key: &LaneKey) {
    warn!(tenant = %key.0, destination = %key.1, "destination has entries and no row: they are left as they are");
}

pub(crate) fn destination_unreadable(key: &LaneKey, verb: &str, failure: &StoreError) {
    error!(
        tenant = %key.0, destination = %key.1, verb, code = failure.code(), error = %failure,
        "destination has rows that can't be read: it is left alone, the others go on (`dlo doctor` shows the rows)"
    );
}

pub(crate) fn destination_readable(key: &LaneKey, verb: &str) {
    info!(tenant = %key.0, destination = %key.1, verb, "destination can be read again");
}

pub(crate) fn suspect_tried(key: &LaneKey, entry: EntryId) {
    info!(
        tenant = %key.0, destination = %key.1, %entry,
        "entry was in flight when a worker was lost: tried as the only suspect in flight"
    );
}

pub(crate) fn claims_recovered(key: &LaneKey, count: usize) {
    warn!(tenant = %key.0, destination = %key.1, count, "claims of a lost worker recovered");
}

pub(crate) fn overdue(key: &LaneKey, count: usize) {
    warn!(tenant = %key.0, destination = %key.1, count, "entries past their age or deadline were dead-lettered");
}

pub(crate) fn page_shrunk(key: &LaneKey, page: u32, limit: usize) {
    warn!(
        tenant = %key.0, destination = %key.1, page, limit,
        "page is claimed smaller than configured: a full page might outlast the lease"
    );
}

fn class_of(class: Option<Class>) -> &'static str {
    class.map_or("none", Class::as_str)
}

fn reason_of(reason: Option<&Reason>) -> &str {
    reason.map_or("none", Reason::as_str)
}
