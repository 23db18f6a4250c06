//! The rules of classification for HTTP and transport evidence, as ordered data.

use super::Scope;
use crate::{Class, Duplicates, Observed, Phase, Reason, TransportKind, reason};

/// Evidence that a rule takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// An HTTP status in one of these inclusive ranges.
    Status(&'static [(u16, u16)]),
    /// The same, where the destination declares duplicates harmful.
    StatusWhereHarmful(&'static [(u16, u16)]),
    /// A transport failure of one of these kinds in one of these phases.
    Transport(&'static [TransportKind], &'static [Phase]),
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id, stored with attempts and dead letters.
    pub id: &'static str,
    /// Evidence that it takes.
    pub takes: Takes,
    /// Class that it gives.
    pub class: Class,
    /// Reason that it gives.
    pub reason: Reason,
    /// What the failure is about.
    pub scope: Scope,
    /// Whether the send may have been taken.
    pub unanswered: bool,
}

const fn rule(id: &'static str, takes: Takes, class: Class, reason: Reason) -> Rule {
    Rule { id, takes, class, reason, scope: Scope::Destination, unanswered: matches!(class, Ambiguous) }
}

const fn resource(id: &'static str, takes: Takes, reason: Reason) -> Rule {
    Rule { id, takes, class: Configuration, reason, scope: Scope::Resource, unanswered: false }
}

/// A rule whose failures leave open whether the send was taken, although the class is not ambiguous.
const fn open(id: &'static str, takes: Takes, class: Class, reason: Reason) -> Rule {
    Rule { id, takes, class, reason, scope: Scope::Destination, unanswered: true }
}

use Class::{Ambiguous, Configuration, Deterministic, Transient, Unknown};
use Phase::{Answered, NotSent, Sent};
use Takes::{Status, StatusWhereHarmful, Transport};
use TransportKind as Kind;

const ANY_PHASE: &[Phase] = &[NotSent, Sent, Answered, Phase::Unknown];
const BEFORE: &[Phase] = &[NotSent];
const AFTER: &[Phase] = &[Sent, Answered];
const NO_PHASE: &[Phase] = &[Phase::Unknown];

/// Every rule, in order: the first that takes the evidence decides.
pub static RULES: &[Rule] = &[
    rule("http.429", Status(&[(429, 429)]), Transient, reason::HTTP_TOO_MANY_REQUESTS),
    rule("http.408", Status(&[(408, 408)]), Transient, reason::HTTP_REQUEST_TIMEOUT),
    rule("http.503", Status(&[(503, 503), (529, 529)]), Transient, reason::HTTP_UNAVAILABLE),
    // A server that fails half way may have done its work: where that could hurt, it is not simply retried.
    rule("http.500.harmful", StatusWhereHarmful(&[(500, 500)]), Ambiguous, reason::HTTP_SERVER_ERROR),
    open("http.500", Status(&[(500, 500)]), Transient, reason::HTTP_SERVER_ERROR),
    // A gateway's answer says nothing about what the server behind it did.
    rule("http.502", Status(&[(502, 502)]), Ambiguous, reason::HTTP_BAD_GATEWAY),
    rule("http.504", Status(&[(504, 504)]), Ambiguous, reason::HTTP_GATEWAY_TIMEOUT),
    rule("http.401", Status(&[(401, 401), (407, 407)]), Configuration, reason::HTTP_UNAUTHORIZED),
    rule("http.402", Status(&[(402, 402)]), Configuration, reason::HTTP_PAYMENT_REQUIRED),
    resource("http.403", Status(&[(403, 403)]), reason::HTTP_FORBIDDEN),
    resource("http.404", Status(&[(404, 404)]), reason::HTTP_NOT_FOUND),
    resource("http.410", Status(&[(410, 410)]), reason::HTTP_GONE),
    resource("http.3xx", Status(&[(300, 399)]), reason::HTTP_REDIRECT),
    rule("http.400", Status(&[(400, 400)]), Deterministic, reason::HTTP_BAD_REQUEST),
    rule("http.409", Status(&[(409, 409)]), Deterministic, reason::HTTP_CONFLICT),
    rule("http.412", Status(&[(412, 412), (428, 428)]), Deterministic, reason::HTTP_PRECONDITION),
    rule("http.413", Status(&[(413, 413)]), Deterministic, reason::HTTP_TOO_LARGE),
    rule("http.415", Status(&[(415, 415)]), Deterministic, reason::HTTP_MEDIA_TYPE),
    rule("http.422", Status(&[(422, 422)]), Deterministic, reason::HTTP_UNPROCESSABLE),
    rule("http.451", Status(&[(451, 451)]), Deterministic, reason::HTTP_LEGAL),
    rule("http.4xx", Status(&[(400, 499)]), Deterministic, reason::HTTP_CLIENT_ERROR),
    rule("http.501", Status(&[(501, 501), (505, 505)]), Deterministic, reason::HTTP_NOT_IMPLEMENTED),
    open("http.unlisted", Status(&[(0, u16::MAX)]), Unknown, reason::HTTP_UNEXPECTED),
    rule(
        "transport.request_invalid",
        Transport(&[Kind::RequestInvalid], ANY_PHASE),
        Deterministic,
        reason::REQUEST_INVALID,
    ),
    rule(
        "transport.address_denied",
        Transport(&[Kind::AddressDenied], ANY_PHASE),
        Configuration,
        reason::ADDRESS_DENIED,
    ),
    rule(
        "transport.credential",
        Transport(&[Kind::CredentialUnavailable], ANY_PHASE),
        Configuration,
        reason::CREDENTIAL_UNAVAILABLE,
    ),
    rule(
        "transport.certificate",
        Transport(&[Kind::TlsCertificate], ANY_PHASE),
        Configuration,
        reason::TLS_CERTIFICATE,
    ),
    // A name that does not resolve can't have been sent to, whether or not the emitter knows the phase.
    rule("transport.dns", Transport(&[Kind::Dns], &[NotSent, Phase::Unknown]), Transient, reason::DNS_FAILED),
    // A cut before the first byte is a connection that never came to be.
    rule("transport.connect", Transport(&[Kind::Connect, Kind::Cut], BEFORE), Transient, reason::CONNECT_FAILED),
    rule("transport.tls_handshake", Transport(&[Kind::TlsHandshake], BEFORE), Transient, reason::TLS_HANDSHAKE_CUT),
    rule("transport.timeout_before_send", Transport(&[Kind::Timeout], BEFORE), Transient, reason::TIMEOUT_BEFORE_SEND),
    rule("transport.timeout_after_send", Transport(&[Kind::Timeout], AFTER), Ambiguous, reason::TIMEOUT_AFTER_SEND),
    rule(
        "transport.answer_unreadable",
        Transport(&[Kind::AnswerUnreadable], &[Sent, Answered, Phase::Unknown]),
        Ambiguous,
        reason::ANSWER_UNREADABLE,
    ),
    // Whatever ended the connection after the first byte, there is no answer.
    rule(
        "transport.cut_after_send",
        Transport(&[Kind::Cut, Kind::Connect, Kind::TlsHandshake, Kind::Dns], AFTER),
        Ambiguous,
        reason::CUT_AFTER_SEND,
    ),
    open("transport.connect.unknown", Transport(&[Kind::Connect], NO_PHASE), Unknown, reason::CONNECT_FAILED),
    open("transport.tls.unknown", Transport(&[Kind::TlsHandshake], NO_PHASE), Unknown, reason::TLS_HANDSHAKE_CUT),
    open("transport.timeout.unknown", Transport(&[Kind::Timeout], NO_PHASE), Unknown, reason::EMISSION_DEADLINE),
    open("transport.unlisted", Transport(ALL_KINDS, ANY_PHASE), Unknown, reason::EMISSION_EXCEPTION),
];

const ALL_KINDS: &[TransportKind] = &[
    Kind::Dns,
    Kind::Connect,
    Kind::TlsHandshake,
    Kind::TlsCertificate,
    Kind::Timeout,
    Kind::Cut,
    Kind::AnswerUnreadable,
    Kind::AddressDenied,
    Kind::RequestInvalid,
    Kind::CredentialUnavailable,
];

impl Takes {
    pub(super) fn matches(self, observed: &Observed, duplicates: Duplicates) -> bool {
        let within =
            |ranges: &[(u16, u16)], status: u16| ranges.iter().any(|(from, to)| (*from..=*to).contains(&status));
        match (self, observed) {
            (Status(ranges), Observed::Http { status }) => within(ranges, *status),
            (StatusWhereHarmful(ranges), Observed::Http { status }) => {
                duplicates == Duplicates::Harmful && within(ranges, *status)
            }
            (Transport(kinds, phases), Observed::Transport { kind, phase }) => {
                kinds.contains(kind) && phases.contains(phase)
            }
            _ => false,
        }
    }
}
