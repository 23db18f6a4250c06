//! What evidence means: every rule, what emitters say themselves, and how the two combine (C-007…C-012).

use std::collections::BTreeSet;

use dlo_core::{
    Class, Duplicates, Failure, Observed, Outcome, Phase, Reason, TransportKind,
    classify::{Classified, RULES, SAID_RULES, Scope, classify, is_about_resource},
    reason,
};

use crate::support::{DEDUPLICATED, custom, http, transport};

fn of(outcome: &Outcome) -> Classified {
    classify(outcome, Duplicates::Tolerated).expect("a failure")
}

#[test]
fn http_statuses() {
    use Class::{Ambiguous, Configuration, Deterministic, Transient, Unknown};
    // (status, rule, class, reason, unanswered)
    let cases = [
        (429, "http.429", Transient, "http.too_many_requests", false),
        (408, "http.408", Transient, "http.request_timeout", false),
        (503, "http.503", Transient, "http.unavailable", false),
        (529, "http.503", Transient, "http.unavailable", false),
        (500, "http.500", Transient, "http.server_error", true),
        (502, "http.502", Ambiguous, "http.bad_gateway", true),
        (504, "http.504", Ambiguous, "http.gateway_timeout", true),
        (401, "http.401", Configuration, "http.unauthorized", false),
        (407, "http.401", Configuration, "http.unauthorized", false),
        (402, "http.402", Configuration, "http.payment_required", false),
        (403, "http.403", Configuration, "http.forbidden", false),
        (404, "http.404", Configuration, "http.not_found", false),
        (410, "http.410", Configuration, "http.gone", false),
        (300, "http.3xx", Configuration, "http.redirect_refused", false),
        (399, "http.3xx", Configuration, "http.redirect_refused", false),
        (400, "http.400", Deterministic, "http.bad_request", false),
        (409, "http.409", Deterministic, "http.conflict", false),
        (412, "http.412", Deterministic, "http.precondition_failed", false),
        (428, "http.412", Deterministic, "http.precondition_failed", false),
        (413, "http.413", Deterministic, "http.payload_too_large", false),
        (415, "http.415", Deterministic, "http.unsupported_media_type", false),
        (422, "http.422", Deterministic, "http.unprocessable", false),
        (451, "http.451", Deterministic, "http.unavailable_for_legal_reasons", false),
        (405, "http.4xx", Deterministic, "http.client_error", false),
        (499, "http.4xx", Deterministic, "http.client_error", false),
        (501, "http.501", Deterministic, "http.not_implemented", false),
        (505, "http.501", Deterministic, "http.not_implemented", false),
        (520, "http.unlisted", Unknown, "http.unexpected_status", true),
        (102, "http.unlisted", Unknown, "http.unexpected_status", true),
        (200, "http.unlisted", Unknown, "http.unexpected_status", true),
        (0, "http.unlisted", Unknown, "http.unexpected_status", true),
        (999, "http.unlisted", Unknown, "http.unexpected_status", true),
    ];
    for (status, rule, class, reason, unanswered) in cases {
        let got = of(&http(status));
        assert_eq!((got.rule, got.class, got.reason.as_str()), (rule, class, reason), "{status}");
        assert_eq!(
            (got.unanswered, got.phase, got.http_status),
            (unanswered, Phase::Answered, Some(status)),
            "{status}"
        );
        let resource = matches!(status, 300..=399 | 403 | 404 | 410);
        assert_eq!(got.scope == Scope::Resource, resource, "{status}");
    }
}

#[test]
fn a_500_is_ambiguous_where_duplicates_are_harmful_only() {
    let class = |duplicates| classify(&http(500), duplicates).unwrap().class;
    assert_eq!(class(Duplicates::Harmful), Class::Ambiguous);
    assert_eq!(class(Duplicates::Tolerated), Class::Transient);
    assert_eq!(class(DEDUPLICATED), Class::Transient);
    assert_eq!(classify(&http(503), Duplicates::Harmful).unwrap().class, Class::Transient);
}

#[test]
fn transport_failures_by_kind_and_phase() {
    use Class::{Ambiguous, Configuration, Deterministic, Transient, Unknown};
    use Phase::{Answered, NotSent, Sent};
    use TransportKind as Kind;
    let cases = [
        (Kind::Dns, NotSent, Transient, "transport.dns"),
        (Kind::Dns, Phase::Unknown, Transient, "transport.dns"),
        (Kind::Connect, NotSent, Transient, "transport.connect"),
        (Kind::Cut, NotSent, Transient, "transport.connect"),
        (Kind::TlsHandshake, NotSent, Transient, "transport.tls_handshake"),
        (Kind::Timeout, NotSent, Transient, "transport.timeout_before_send"),
        (Kind::Timeout, Sent, Ambiguous, "transport.timeout_after_send"),
        (Kind::Timeout, Answered, Ambiguous, "transport.timeout_after_send"),
        (Kind::Cut, Sent, Ambiguous, "transport.cut_after_send"),
        (Kind::Connect, Sent, Ambiguous, "transport.cut_after_send"),
        (Kind::AnswerUnreadable, Answered, Ambiguous, "transport.answer_unreadable"),
        (Kind::AnswerUnreadable, Sent, Ambiguous, "transport.answer_unreadable"),
        (Kind::TlsCertificate, NotSent, Configuration, "transport.tls_certificate"),
        (Kind::AddressDenied, NotSent, Configuration, "transport.address_denied"),
        (Kind::CredentialUnavailable, NotSent, Configuration, "transport.credential_unavailable"),
        (Kind::RequestInvalid, NotSent, Deterministic, "transport.request_invalid"),
        (Kind::Timeout, Phase::Unknown, Unknown, "emission.deadline_exceeded"),
        (Kind::Connect, Phase::Unknown, Unknown, "transport.connect"),
        (Kind::Cut, Phase::Unknown, Unknown, "emission.exception"),
        (Kind::AnswerUnreadable, NotSent, Unknown, "emission.exception"),
    ];
    for (kind, phase, class, reason) in cases {
        let got = of(&transport(kind, phase));
        assert_eq!((got.class, got.reason.as_str(), got.phase), (class, reason, phase), "{kind:?} {phase:?}");
        let maybe_taken = matches!(class, Ambiguous | Unknown) && phase != NotSent;
        assert_eq!(got.unanswered, maybe_taken, "{kind:?} {phase:?}");
        assert_eq!(got.scope, Scope::Destination);
    }
}

#[test]
fn what_an_emitter_says_is_kept() {
    for class in Class::ALL {
        let got = of(&custom(Some(class), Phase::Answered));
        assert_eq!((got.class, got.reason.as_str(), got.rule), (class, "provider.said_so", "custom.class"));
        assert_eq!(got.unanswered, class == Class::Ambiguous);
    }
    let without = of(&custom(None, Phase::NotSent));
    assert_eq!((without.class, without.unanswered), (Class::Unknown, false));
    assert!(of(&custom(None, Phase::Unknown)).unanswered);
}

#[test]
fn nobody_can_know_that_a_send_without_an_answer_was_not_taken() {
    for class in [Class::Transient, Class::Configuration] {
        let got = of(&custom(Some(class), Phase::Sent));
        assert_eq!((got.class, got.rule, got.unanswered), (Class::Ambiguous, "custom.after_send", true));
    }
    let deterministic = of(&custom(Some(Class::Deterministic), Phase::Sent));
    assert_eq!((deterministic.class, deterministic.unanswered), (Class::Deterministic, true));
}

#[test]
fn a_retryable_failure_is_evidence_of_transient_where_there_is_no_other() {
    let retryable = |observed| of(&Outcome::RetryableFailure(Failure::new(observed, "later")));
    let nothing = retryable(Observed::Nothing);
    assert_eq!((nothing.class, nothing.reason.as_str()), (Class::Transient, "emission.retryable"));
    let custom = |phase| Observed::Custom { class: None, reason: Reason::known("provider.busy"), phase };
    assert_eq!(retryable(custom(Phase::Unknown)).class, Class::Transient);
    assert_eq!(retryable(custom(Phase::Sent)).class, Class::Ambiguous);
    // Evidence wins over the label: a 400 will fail again whatever it is called (trap D14).
    assert_eq!(retryable(Observed::Http { status: 400 }).class, Class::Deterministic);
    assert_eq!(retryable(Observed::Http { status: 520 }).class, Class::Unknown);
}

#[test]
fn outcomes_without_evidence() {
    let nothing = || Failure::new(Observed::Nothing, "");
    let failed = of(&Outcome::Failed(nothing()));
    assert_eq!((failed.class, failed.reason), (Class::Unknown, reason::EMISSION_FAILED));
    let ended = of(&Outcome::DeadLettered(nothing()));
    assert_eq!((ended.class, ended.unanswered), (Class::Unknown, false));
    assert_eq!(ended.reason, reason::EMISSION_DEAD_LETTERED);
    let ambiguous = of(&Outcome::Ambiguous(nothing()));
    assert_eq!((ambiguous.class, ambiguous.reason), (Class::Ambiguous, reason::EMISSION_AMBIGUOUS));
    for fine in [Outcome::Pending, Outcome::Deferred { until: None }, Outcome::Delivered { receipt: None }] {
        assert_eq!(classify(&fine, Duplicates::Harmful), None);
    }
}

#[test]
fn an_ambiguous_outcome_is_ambiguous_whatever_else_was_seen() {
    for observed in [
        Observed::Http { status: 400 },
        Observed::Http { status: 404 },
        Observed::Transport { kind: TransportKind::Dns, phase: Phase::NotSent },
        Observed::Custom { class: Some(Class::Transient), reason: Reason::known("x"), phase: Phase::Answered },
    ] {
        let got = of(&Outcome::Ambiguous(Failure::new(observed, "lost")));
        assert_eq!((got.class, got.unanswered, got.scope), (Class::Ambiguous, true, Scope::Destination));
    }
}

#[test]
fn rule_ids_are_unique_and_every_rule_is_reached() {
    let mut ids = BTreeSet::new();
    for id in RULES.iter().map(|rule| rule.id).chain(SAID_RULES.iter().copied()) {
        assert!(ids.insert(id), "{id} twice");
    }
    let mut reached = BTreeSet::new();
    for duplicates in [Duplicates::Tolerated, Duplicates::Harmful] {
        for status in 0..1_000 {
            reached.insert(classify(&http(status), duplicates).unwrap().rule);
        }
        for kind in KINDS {
            for phase in [Phase::NotSent, Phase::Sent, Phase::Answered, Phase::Unknown] {
                reached.insert(classify(&transport(kind, phase), duplicates).unwrap().rule);
            }
        }
    }
    for rule in RULES {
        assert!(reached.contains(rule.id), "no evidence reaches {}", rule.id);
        assert!(reason::CODES.contains(&rule.reason.as_str()), "{} is no code of the product", rule.reason);
    }
}

const KINDS: [TransportKind; 10] = [
    TransportKind::Dns,
    TransportKind::Connect,
    TransportKind::TlsHandshake,
    TransportKind::TlsCertificate,
    TransportKind::Timeout,
    TransportKind::Cut,
    TransportKind::AnswerUnreadable,
    TransportKind::AddressDenied,
    TransportKind::RequestInvalid,
    TransportKind::CredentialUnavailable,
];

#[test]
fn resource_failures_are_known_again_by_their_reason() {
    assert!(is_about_resource(Class::Configuration, &reason::HTTP_NOT_FOUND));
    assert!(!is_about_resource(Class::Configuration, &reason::HTTP_UNAUTHORIZED));
    assert!(!is_about_resource(Class::Ambiguous, &reason::HTTP_NOT_FOUND));
}
