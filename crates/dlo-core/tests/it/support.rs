//! Builders of entries, destinations and contexts.

use core::time::Duration;

use dlo_core::{
    Class, Destination, DestinationSpec, Duplicates, Entry, EntryId, EntryKey, EnvelopeId, Failure, Incarnation, Lane,
    Observed, Outcome, Phase, Reason, Status, TenantId, Timestamp, Token, TransportKind,
    decide::{Context, Event, Transition, decide},
    entry::{Claim, Counters, LastFailure, Progress},
    policy::{DeliveryPolicy, Jitter},
    text::ErrorText,
};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);
pub(crate) const WINDOW: Duration = Duration::from_hours(24);
pub(crate) const DEDUPLICATED: Duplicates = Duplicates::Deduplicated { window: WINDOW };

/// Defaults without jitter, so that due times are exact.
pub(crate) fn exact() -> DeliveryPolicy {
    DeliveryPolicy { jitter: Jitter::None, ..DeliveryPolicy::default() }
}

pub(crate) fn destination(duplicates: Duplicates, policy: DeliveryPolicy) -> Destination {
    policy.validate().unwrap();
    Destination {
        spec: DestinationSpec {
            tenant: TenantId::default_tenant(),
            name: "billing".parse().unwrap(),
            emitter: "noop".to_owned(),
            settings: "{}".to_owned(),
            duplicates,
            policy,
            pace: None,
            event_types: Vec::new(),
            owner: None,
            region: None,
        },
        version: 3,
        applied: Timestamp::EPOCH,
    }
}

pub(crate) fn entry_id(number: u64) -> EntryId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    EntryId::from_bytes(bytes)
}

/// An entry that was saved at [`NOW`], unclaimed.
pub(crate) fn saved(number: u64) -> Entry {
    let id = entry_id(number);
    Entry {
        key: EntryKey { tenant: TenantId::default_tenant(), entry: id, generation: 0 },
        seq: number,
        envelope: EnvelopeId::from_bytes([1; 16]),
        destination: "billing".parse().unwrap(),
        operation_key: id.operation_key(),
        created: NOW,
        updated: NOW,
        not_before: None,
        deliver_by: None,
        lane: Lane::Pending,
        due: NOW,
        status: Status::Pending,
        manual_review: false,
        version: 1,
        first_claimed: None,
        baseline: Counters::default(),
        progress: Progress::default(),
        claim: None,
    }
}

pub(crate) fn claim(entry: &mut Entry, at: Timestamp) {
    entry.first_claimed = entry.first_claimed.or(Some(at));
    entry.progress.counters.claims += 1;
    entry.claim = Some(Claim {
        token: Token::from_bytes([9; 16]),
        incarnation: Incarnation::from_bytes([8; 16]),
        claimed: at,
        deadline: at.after(MINUTE * 5),
        send_mark: false,
        sole_suspect: false,
    });
}

/// An entry that was saved and claimed at [`NOW`].
pub(crate) fn claimed() -> Entry {
    let mut entry = saved(1);
    claim(&mut entry, NOW);
    entry
}

/// A claimed entry with that many charged failures in this generation.
pub(crate) fn claimed_after(failures: u32) -> Entry {
    let mut entry = claimed();
    entry.lane = Lane::Retry;
    entry.status = Status::RetryableFailure;
    entry.progress.counters.failed = failures;
    entry.progress.attempts = failures;
    entry.progress.first_failed = Some(NOW.before(MINUTE));
    entry.progress.last_failed = Some(NOW.before(MINUTE));
    entry.progress.last_failure = Some(LastFailure {
        class: Class::Transient,
        reason: dlo_core::reason::HTTP_UNAVAILABLE,
        provider_code: None,
        text: ErrorText::new("status 503"),
    });
    entry
}

pub(crate) fn http(status: u16) -> Outcome {
    Outcome::Failed(Failure::new(Observed::Http { status }, format!("status {status}")))
}

pub(crate) fn transport(kind: TransportKind, phase: Phase) -> Outcome {
    Outcome::Failed(Failure::new(Observed::Transport { kind, phase }, "no usable answer"))
}

pub(crate) fn custom(class: Option<Class>, phase: Phase) -> Outcome {
    let observed = Observed::Custom { class, reason: Reason::known("provider.said_so"), phase };
    Outcome::Failed(Failure::new(observed, "as the emitter sees it"))
}

pub(crate) fn delivered() -> Outcome {
    Outcome::Delivered { receipt: None }
}

pub(crate) fn timed_out() -> Outcome {
    transport(TransportKind::Timeout, Phase::Sent)
}

/// Decides at `now`, with every invariant of the step checked.
pub(crate) fn decide_at(entry: &Entry, destination: &Destination, event: &Event, now: Timestamp) -> Transition {
    decide_with(entry, destination, event, now, None, [7; 18])
}

pub(crate) fn decide_with(
    entry: &Entry,
    destination: &Destination,
    event: &Event,
    now: Timestamp,
    last_success: Option<Timestamp>,
    random: [u8; 18],
) -> Transition {
    let context = Context { destination, last_success, now, started: now.before(Duration::from_secs(1)), random };
    let transition = decide(entry, event, &context);
    let breaches = dlo_core::invariant::check_transition(entry, destination, event, &transition, now);
    assert!(breaches.is_empty(), "{event:?} -> {transition:?}: {breaches:?}");
    transition
}

/// Decides at [`NOW`] with defaults without jitter.
pub(crate) fn emitted(entry: &Entry, duplicates: Duplicates, outcome: Outcome) -> Transition {
    decide_at(entry, &destination(duplicates, exact()), &Event::Emitted(outcome), NOW)
}
