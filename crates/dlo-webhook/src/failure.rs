//! What a request that got no answer is evidence of.
//!
//! Only a failure to connect (name, TCP, TLS handshake) proves that no byte of the request left. Whatever ends a
//! connection that stood counts as sent, a kept-alive connection that the peer had already closed included.

use core::error::Error;
use std::io;

use dlo_core::{Failure, Observed, Phase, TransportKind};
use rustls::{AlertDescription, CertificateError};

use crate::resolve::ResolveError;

/// A failure without an answer, with a text of ours.
pub(crate) fn transport(kind: TransportKind, phase: Phase, text: impl AsRef<str>) -> Failure {
    Failure::new(Observed::Transport { kind, phase }, text)
}

/// The failure that an error of the HTTP client stands for. No text of the error is taken: it may hold the URL.
pub(crate) fn of_error(error: &reqwest::Error, tls: bool) -> Failure {
    if error.is_builder() {
        transport(TransportKind::RequestInvalid, Phase::NotSent, "the request can't be built")
    } else if error.is_connect() {
        let (kind, text) = connecting(error, tls);
        transport(kind, Phase::NotSent, text)
    } else {
        let (kind, text) = connected(error);
        transport(kind, Phase::Sent, text)
    }
}

fn connecting(error: &reqwest::Error, tls: bool) -> (TransportKind, &'static str) {
    if error.is_timeout() {
        return (TransportKind::Timeout, "no connection in time");
    }
    for cause in causes(error) {
        if let Some(resolve) = cause.downcast_ref::<ResolveError>() {
            return match resolve {
                ResolveError::Failed => (TransportKind::Dns, "name resolution failed"),
                ResolveError::Denied => {
                    (TransportKind::AddressDenied, "every address of the host is in a denied range")
                }
            };
        }
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return handshake(error);
        }
    }
    let kinds: Vec<io::ErrorKind> =
        causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).collect();
    let any = |kind| kinds.contains(&kind);
    // A TCP connect is refused or unreachable; only a connection that stood can end.
    if tls
        && (any(io::ErrorKind::UnexpectedEof) || any(io::ErrorKind::ConnectionReset) || any(io::ErrorKind::BrokenPipe))
    {
        (TransportKind::TlsHandshake, "connection ended during the TLS handshake")
    } else if any(io::ErrorKind::ConnectionRefused) {
        (TransportKind::Connect, "connection refused")
    } else if any(io::ErrorKind::HostUnreachable) || any(io::ErrorKind::NetworkUnreachable) {
        (TransportKind::Connect, "host or network unreachable")
    } else {
        (TransportKind::Connect, "connection failed")
    }
}

fn handshake(error: &rustls::Error) -> (TransportKind, &'static str) {
    use TransportKind::{TlsCertificate, TlsHandshake};
    match error {
        rustls::Error::InvalidCertificate(problem) => (TlsCertificate, certificate(problem)),
        rustls::Error::NoCertificatesPresented | rustls::Error::UnsupportedNameType => {
            (TlsCertificate, "the peer gave no certificate that can be checked")
        }
        rustls::Error::AlertReceived(
            AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired,
        ) => (TlsCertificate, "the peer asks for a client certificate"),
        rustls::Error::AlertReceived(_) => (TlsHandshake, "the peer refused the TLS handshake"),
        _ => (TlsHandshake, "the TLS handshake failed"),
    }
}

fn certificate(problem: &CertificateError) -> &'static str {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the peer's certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the peer's certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the peer's certificate is for another name"
        }
        CertificateError::UnknownIssuer => "the peer's certificate is from an authority that is not trusted",
        CertificateError::Revoked => "the peer's certificate has been revoked",
        _ => "the peer's certificate is not valid",
    }
}

fn connected(error: &reqwest::Error) -> (TransportKind, &'static str) {
    if error.is_timeout() {
        return (TransportKind::Timeout, "no answer in time");
    }
    let unreadable = causes(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_parse);
    if unreadable {
        (TransportKind::AnswerUnreadable, "the answer is not HTTP, or its head is too large")
    } else {
        (TransportKind::Cut, "the connection ended without an answer")
    }
}

/// An error and all that caused it. `io::Error` hides what it wraps from `source`, so it is opened by hand.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    core::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
