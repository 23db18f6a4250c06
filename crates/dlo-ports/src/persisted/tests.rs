#![allow(clippy::unwrap_used)]
//! Every shape ever released is read for ever: the files in `fixtures/` are never edited, only added to. That each is
//! also what is written today shows that a shape did not change under its number.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use dlo_core::{
    Class, DeliveryPolicy, DestinationSpec, Duplicates, EntryId, Envelope, EnvelopeId, Health, Hold, HoldCause,
    Payload, PayloadForm, Reason, TenantId, Timestamp, TraceContext,
    dead_letter::PayloadSummary,
    destination::Pace,
    health::ManualHold,
    policy::{Alternative, BreakerPolicy, Jitter},
};

use super::*;

fn fixture(text: &str) -> &str {
    text.trim_end()
}

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn envelope_id() -> EnvelopeId {
    EnvelopeId::from_bytes([3; 16])
}

fn full_envelope() -> Envelope {
    let some = |text: &str| Some(text.to_owned());
    let map = |pairs: [(&str, &str); 2]| -> BTreeMap<String, String> {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let payload = Payload::Descriptor { kind: "object".to_owned(), hash: some("sha256:bb"), size: Some(1_048_576) };
    Envelope {
        source: some("/billing"),
        source_event_id: some("evt-1"),
        subject: some("invoice 7"),
        occurred: Some(Timestamp::from_micros(1_764_504_000_250_000)),
        principal: some("user:7"),
        region: some("eu"),
        workload: some("billing-api"),
        correlation_id: some("corr-1"),
        audit_residue_id: some("res-1"),
        sequence_hint: Some(42),
        ordering_key: some("invoice-7"),
        policy_version: some("3"),
        policy_hash: some("sha256:aa"),
        trace: Some(TraceContext {
            parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
            state: some("vendor=1"),
        }),
        content_type: some("application/json"),
        schema: some("https://example.org/invoice"),
        schema_version: some("1"),
        headers: map([("x-a", "1"), ("x-b", "\"quoted\" ü")]),
        agent: map([("gen_ai.model", "m"), ("run", "r-1")]),
        ..Envelope::new(envelope_id(), tenant(), "invoice.paid", payload)
    }
}

fn full_destination() -> DestinationSpec {
    let seconds = Duration::from_secs;
    DestinationSpec {
        tenant: tenant(),
        name: "billing".parse().unwrap(),
        emitter: "webhook".to_owned(),
        settings: r#"{"url":"https://example.org/hook"}"#.to_owned(),
        duplicates: Duplicates::Deduplicated { window: seconds(86_400) },
        policy: DeliveryPolicy {
            max_retry_attempts: 7,
            dead_letter_on_max_retry_attempts: false,
            alternative: Some(Alternative::ManualReview),
            dead_letter_reason_code: Reason::new("billing.gave_up").unwrap(),
            dead_letter_reason_message: "gave up".into(),
            retry_delay: Duration::new(1, 500_000_001),
            deferred_delay: seconds(2),
            schedule: vec![Duration::from_millis(1), seconds(60)],
            jitter: Jitter::None,
            retry_after_cap: seconds(3_600),
            max_age: seconds(604_800),
            max_crashed_attempts: 4,
            backlog_limit: 1_000,
            resource_failures: 6,
            breaker: BreakerPolicy { failures: 8, entries: 2, probe_min: seconds(10), probe_max: seconds(100) },
            emission_deadline: seconds(15),
            concurrency: 4,
            page: 50,
        },
        pace: Some(Pace { per_minute: 600, burst: 10 }),
        event_types: vec!["invoice.*".parse().unwrap(), "payment.failed".parse().unwrap()],
        owner: Some("team-billing".to_owned()),
        region: Some("eu".to_owned()),
    }
}

fn minimal_destination() -> DestinationSpec {
    DestinationSpec {
        tenant: tenant(),
        name: "billing".parse().unwrap(),
        emitter: "noop".to_owned(),
        settings: "{}".to_owned(),
        duplicates: Duplicates::Harmful,
        policy: DeliveryPolicy::default(),
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

fn full_health() -> Health {
    let entry = |hex: &str| -> EntryId { format!("ent_019ad4b7c640070787070707070707{hex}").parse().unwrap() };
    Health {
        version: 9,
        manual: Some(ManualHold {
            since: Timestamp::from_micros(1_764_504_000_000_000),
            actor: "local:operator".to_owned(),
            reason: "provider maintenance".into(),
        }),
        hold: Some(Hold {
            cause: HoldCause::Breaker,
            class: Class::Transient,
            reason: dlo_core::reason::HTTP_UNAVAILABLE,
            since: Timestamp::from_micros(1_764_504_000_000_001),
            next_probe: Timestamp::MAX,
            next_probe_set: Timestamp::from_micros(1_764_504_000_000_001),
            failed_probes: 3,
        }),
        probe_requested: true,
        consecutive: 5,
        streak: vec![entry("0a"), entry("0b")],
        resource_streak: vec![entry("0c")],
        last_success: Some(Timestamp::from_micros(1_764_503_999_000_000)),
        ramp: Some(2),
        pace_at: Some(Timestamp::from_micros(1_764_504_000_000_002)),
    }
}

#[test]
fn envelope_fixtures_are_read_and_written_for_ever() {
    let cases = [
        (include_str!("../../fixtures/envelope.full.v1.json"), full_envelope(), "descriptor"),
        (
            include_str!("../../fixtures/envelope.minimal.v1.json"),
            Envelope::new(envelope_id(), tenant(), "ping", Payload::None),
            "none",
        ),
    ];
    for (text, envelope, form) in cases {
        let stored = StoredPayload { form, bytes: None };
        assert_eq!(decode_envelope_meta(1, text, envelope_id(), tenant(), stored).unwrap(), envelope);
        assert_eq!(encode_envelope_meta(&envelope), fixture(text));
    }
}

#[test]
fn destination_fixtures_are_read_and_written_for_ever() {
    let cases = [
        (include_str!("../../fixtures/destination.full.v1.json"), full_destination()),
        (include_str!("../../fixtures/destination.minimal.v1.json"), minimal_destination()),
    ];
    for (text, spec) in cases {
        assert_eq!(decode_destination(1, text, tenant(), spec.name.clone()).unwrap(), spec);
        assert_eq!(encode_destination(&spec), fixture(text));
    }
}

#[test]
fn health_fixtures_are_read_and_written_for_ever() {
    let cases = [
        (include_str!("../../fixtures/health.full.v1.json"), full_health()),
        (include_str!("../../fixtures/health.minimal.v1.json"), Health { version: 9, ..Health::default() }),
    ];
    for (text, health) in cases {
        assert_eq!(decode_health(1, text, 9).unwrap(), health);
        assert_eq!(encode_health(&health), fixture(text));
    }
}

#[test]
fn payload_bytes_stay_beside_the_text() {
    for form in [PayloadForm::Json, PayloadForm::Binary] {
        let bytes = Bytes::from_static(b"\xff\0secret");
        let payload = Payload::Bytes { bytes: bytes.clone(), form };
        let envelope = Envelope::new(envelope_id(), tenant(), "ping", payload.clone());
        let text = encode_envelope_meta(&envelope);
        assert!(!text.contains("secret"), "{text}");
        let stored = StoredPayload { form: payload_form(&payload), bytes: Some(bytes) };
        assert_eq!(decode_envelope_meta(1, &text, envelope_id(), tenant(), stored).unwrap(), envelope);
    }
}

#[test]
fn a_view_is_read_without_the_payload() {
    let text = include_str!("../../fixtures/envelope.full.v1.json");
    let summary = PayloadSummary { content_type: None, size: 12, sha256: Some([1; 32]) };
    let view = decode_envelope_view(1, text, envelope_id(), summary).unwrap();
    assert_eq!(view.event_type, "invoice.paid");
    assert_eq!(view.payload.content_type.as_deref(), Some("application/json"));
    assert_eq!((view.payload.size, view.payload.sha256), (12, Some([1; 32])));
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let newer = ENVELOPE_META_SCHEMA + 1;
    let stored = StoredPayload { form: "none", bytes: None };
    let errors = [
        decode_envelope_meta(newer, "{}", envelope_id(), tenant(), stored).unwrap_err(),
        decode_destination(DESTINATION_SCHEMA + 1, "{}", tenant(), "a".parse().unwrap()).unwrap_err(),
        decode_health(HEALTH_SCHEMA + 1, "{}", 1).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, PersistedError::Newer { seen: 2, known: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("newer binary wrote it"), "{error}");
        assert_eq!(error.code(), "store.schema");
    }
    assert_eq!(decode_health(0, "{}", 1).unwrap_err().code(), "store.corrupt");
}

#[test]
fn what_is_not_the_shape_is_refused_without_quoting_it() {
    let texts = ["", "nonsense-secret", r#"{"secret_field":1}"#, r#"{"ramp":"secret"}"#];
    for text in texts {
        let error = decode_health(1, text, 1).unwrap_err();
        assert_eq!(error.code(), "store.corrupt", "{text}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let wrong_names = [
        r#"{"hold":{"cause":"secret","class":"transient","reason":"a","since":0,"next_probe":0,"failed_probes":0}}"#,
        r#"{"hold":{"cause":"breaker","class":"secret","reason":"a","since":0,"next_probe":0,"failed_probes":0}}"#,
        r#"{"streak":["secret"]}"#,
    ];
    for text in wrong_names {
        let error = decode_health(1, text, 1).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn columns_that_contradict_the_text_are_refused() {
    let minimal = include_str!("../../fixtures/envelope.minimal.v1.json");
    let bytes = || Some(Bytes::from_static(b"{}"));
    let cases = [("json", None), ("binary", None), ("none", bytes()), ("descriptor", None), ("other", bytes())];
    for (form, bytes) in cases {
        let stored = StoredPayload { form, bytes };
        let error = decode_envelope_meta(1, minimal, envelope_id(), tenant(), stored).unwrap_err();
        assert_eq!(error.code(), "store.corrupt", "{form}");
    }
}

#[test]
fn a_span_of_any_length_is_kept_to_the_last_digit() {
    let mut spec = minimal_destination();
    spec.duplicates = Duplicates::Deduplicated { window: Duration::MAX };
    let text = encode_destination(&spec);
    assert_eq!(decode_destination(1, &text, tenant(), spec.name.clone()).unwrap(), spec);
}
