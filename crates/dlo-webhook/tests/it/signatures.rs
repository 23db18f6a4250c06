//! Standard Webhooks: signatures on every try, keys that stay, rotation, and the receiver's check.

use std::time::Duration;

use dlo_core::{Duplicates, Timestamp};
use dlo_webhook::{Secret, SignedHeaders, VerifyError, sign, verify};
use serde_json::json;

use crate::support::{
    OK, Received, Server, destination, emission, envelope, factory, now, receipt, send, send_order, settings,
};

const TOLERANCE: Duration = Duration::from_mins(5);
const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "plain text secret of 34 characters";

fn check(secret: &str, request: &Received) -> Result<(), VerifyError> {
    let headers = SignedHeaders::find(|name| request.header(name))?;
    verify(&[Secret::new(secret).unwrap()], &headers, &request.body, now(), TOLERANCE)
}

/// The vector that the reference libraries of Standard Webhooks share.
#[test]
fn the_published_vector() {
    let secret = Secret::new(OLD).unwrap();
    let body = br#"{"test": 2432232314}"#;
    let signature = sign(core::slice::from_ref(&secret), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    let headers = SignedHeaders { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330", signature: &signature };
    let at = Timestamp::from_micros(1_614_265_330_000_000);
    assert_eq!(verify(&[secret], &headers, body, at, TOLERANCE), Ok(()));
}

#[test]
fn whatever_was_changed_does_not_verify() {
    let secret = Secret::new(OLD).unwrap();
    let signature = sign(core::slice::from_ref(&secret), "msg_1", 1_000, b"body");
    let headers = SignedHeaders { id: "msg_1", timestamp: "1000", signature: &signature };
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let outcome = |headers: SignedHeaders<'_>, body: &[u8], now| {
        verify(core::slice::from_ref(&secret), &headers, body, now, TOLERANCE).err()
    };
    let no_match = Some(VerifyError::NoMatch);
    assert_eq!(outcome(headers, b"body", at(1_000)), None);
    assert_eq!(outcome(headers, b"Body", at(1_000)), no_match);
    assert_eq!(outcome(headers, b"", at(1_000)), no_match);
    assert_eq!(outcome(SignedHeaders { id: "msg_2", ..headers }, b"body", at(1_000)), no_match);
    assert_eq!(outcome(SignedHeaders { timestamp: "1001", ..headers }, b"body", at(1_000)), no_match);
    for signature in ["", "v1,", "v1", &signature[3..], &signature[..20], "v1a,AAAA", &signature.replace("v1", "v2")] {
        assert_eq!(outcome(SignedHeaders { signature, ..headers }, b"body", at(1_000)), no_match, "{signature}");
    }
    for timestamp in ["", "soon", "-1000", "+1000", "1000.0", " 1000", "99999999999999999999"] {
        let error = Some(VerifyError::BadTimestamp);
        assert_eq!(outcome(SignedHeaders { timestamp, ..headers }, b"body", at(1_000)), error, "{timestamp}");
    }
    let outside = Some(VerifyError::OutsideTolerance { apart: 301, tolerance: 300 });
    assert_eq!(outcome(headers, b"body", at(1_300)), None);
    assert_eq!(outcome(headers, b"body", at(1_301)), outside);
    assert_eq!(outcome(headers, b"body", at(699)), outside);
    assert_eq!(verify(&[], &headers, b"body", at(1_000), TOLERANCE), Err(VerifyError::NoMatch));
    let others = Secret::new(NEW).unwrap();
    assert_eq!(
        verify(core::slice::from_ref(&others), &headers, b"body", at(1_000), TOLERANCE),
        Err(VerifyError::NoMatch)
    );
    assert_eq!(verify(&[others, secret.clone()], &headers, b"body", at(1_000), TOLERANCE), Ok(()));
    // Others' signatures before ours do no harm; a list without end is not read to its end.
    let among = format!("v1,AAAA v2,xyz {signature}");
    assert_eq!(outcome(SignedHeaders { signature: &among, ..headers }, b"body", at(1_000)), None);
    let behind = format!("{}{signature}", "v1,AAAA ".repeat(32));
    assert_eq!(outcome(SignedHeaders { signature: &behind, ..headers }, b"body", at(1_000)), no_match);
    let missing = SignedHeaders::find(|name| (name != "webhook-timestamp").then_some("x"));
    assert_eq!(missing, Err(VerifyError::MissingHeader { name: "webhook-timestamp" }));
}

#[tokio::test]
async fn requests_of_both_modes_verify_as_they_arrive() {
    for mode in ["binary", "structured"] {
        let server = Server::answering(OK).await;
        let settings = settings(&server.url(), json!({"secrets": ["env:OLD", "env:NEW"], "mode": mode}));
        let factory = factory(&[("OLD", OLD), ("NEW", NEW)]);
        let emitter = factory.build(&destination(&settings, Duplicates::Tolerated)).unwrap();
        receipt(send_order(&emitter).await);
        let request = server.only_request();
        // Receivers on either side of a rotation.
        assert_eq!(check(OLD, &request), Ok(()));
        assert_eq!(check(NEW, &request), Ok(()));
        assert_eq!(check("another secret of some length", &request), Err(VerifyError::NoMatch));
        let signatures = request.header("webhook-signature").unwrap();
        assert_eq!(signatures.split(' ').filter(|part| part.starts_with("v1,")).count(), 2, "{signatures}");
        let seconds = now().as_micros() / 1_000_000;
        assert_eq!(request.header("webhook-timestamp"), Some(&*seconds.to_string()));
    }
}

#[tokio::test]
async fn the_key_is_the_same_on_every_try() {
    let server = Server::answering("HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n").await;
    let settings = settings(&server.url(), json!({"secrets": ["env:OLD"]}));
    let emitter = factory(&[("OLD", OLD)]).build(&destination(&settings, Duplicates::Tolerated)).unwrap();
    for attempt in 1..=3 {
        let mut emission = emission(envelope(b"{}"));
        emission.attempt = attempt;
        emission.generation = attempt / 2;
        send(&emitter, emission).await;
    }
    for request in server.requests() {
        assert_eq!(request.header("webhook-id"), Some("op-key-1"));
        assert_eq!(request.header("idempotency-key"), Some("op-key-1"));
        assert_eq!(check(OLD, &request), Ok(()));
    }
}

#[tokio::test]
async fn without_secrets_there_is_no_signature() {
    let server = Server::answering(OK).await;
    receipt(send_order(&crate::support::emitter(&server.url(), json!({}))).await);
    let request = server.only_request();
    assert_eq!(request.header("webhook-signature"), None);
    assert_eq!(request.header("webhook-id"), Some("op-key-1"));
    assert!(request.header("webhook-timestamp").is_some());
}

#[test]
fn every_error_has_a_listed_code() {
    let errors = [
        VerifyError::MissingHeader { name: "webhook-id" },
        VerifyError::BadTimestamp,
        VerifyError::OutsideTolerance { apart: 1, tolerance: 0 },
        VerifyError::NoMatch,
    ];
    for error in errors {
        assert!(dlo_webhook::CODES.contains(&error.code()), "{error}");
    }
}
