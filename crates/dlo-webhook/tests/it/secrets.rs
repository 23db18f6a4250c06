//! Secrets are read at use, and are nowhere but in the request.

use dlo_core::{Duplicates, Outcome, Phase, TransportKind};
use dlo_webhook::{Secret, Settings, WebhookFactory};
use serde_json::json;

use crate::support::{OK, Server, assert_transport, destination, factory, failure, receipt, send_order, settings};

const CANARY: &str = "canary-0123456789abcdef";

#[tokio::test]
async fn a_secret_that_is_not_there_sends_nothing() {
    let server = Server::answering(OK).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("file:{}", folder.path().join(name).display());
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    std::fs::write(folder.path().join("short"), "0123456789").unwrap();
    std::fs::write(folder.path().join("not-base64"), "whsec_%%%canary%%%").unwrap();
    std::fs::write(folder.path().join("long"), "x".repeat(9_000)).unwrap();
    for (reference, problem) in [
        ("env:MISSING".to_owned(), "is not set"),
        ("env:EMPTY".to_owned(), "is empty"),
        (path("missing"), "does not exist"),
        (path("."), "is not a regular file"),
        (path("empty"), "is empty"),
        (path("short"), "is shorter than 16 bytes"),
        (path("not-base64"), "is not base64"),
        (path("long"), "is longer than 8192 bytes"),
    ] {
        let settings = settings(&server.url(), json!({"secrets": [reference]}));
        let emitter = factory(&[("EMPTY", "")]).build(&destination(&settings, Duplicates::Tolerated)).unwrap();
        let outcome = send_order(&emitter).await;
        let text = failure(outcome.clone()).text.to_string();
        assert!(text.contains(problem) && text.contains(&reference) && !text.contains("canary%"), "{text}");
        assert_transport(outcome, TransportKind::CredentialUnavailable, Phase::NotSent);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_secret_that_is_replaced_is_used_by_the_next_try() {
    let server = Server::answering(OK).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let reference = format!("file:{}", file.path().display());
    let settings = settings(&server.url(), json!({"authorization": reference}));
    let emitter = factory(&[]).build(&destination(&settings, Duplicates::Tolerated)).unwrap();
    for (written, sent) in [("Bearer one\n", "Bearer one"), ("Bearer two\r\n", "Bearer two")] {
        std::fs::write(file.path(), written).unwrap();
        receipt(send_order(&emitter).await);
        assert_eq!(server.requests().last().unwrap().header("authorization"), Some(sent));
    }
    // What can't be a header value is not sent, nor shown.
    std::fs::write(file.path(), "Bearer canary\nx-injected: 1").unwrap();
    let outcome = send_order(&emitter).await;
    assert!(!format!("{outcome:?}").contains("canary"));
    assert_transport(outcome, TransportKind::CredentialUnavailable, Phase::NotSent);
}

#[tokio::test]
async fn secret_headers_are_sent_beside_plain_ones() {
    let server = Server::answering(OK).await;
    let more = json!({
        "authorization": "env:AUTH",
        "secret_headers": {"X-Api-Key": "env:KEY"},
        "headers": {"X-Team": "billing & co"},
        "user_agent": "acme/1",
    });
    let settings = settings(&server.url(), more);
    let emitter =
        factory(&[("AUTH", "Bearer a"), ("KEY", "k")]).build(&destination(&settings, Duplicates::Tolerated)).unwrap();
    receipt(send_order(&emitter).await);
    let request = server.only_request();
    for (name, value) in
        [("authorization", "Bearer a"), ("x-api-key", "k"), ("x-team", "billing & co"), ("user-agent", "acme/1")]
    {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
}

/// Neither outcome nor any `Debug` form shows a secret, a payload byte, a query or what the provider said.
#[tokio::test]
async fn nothing_secret_comes_back() {
    let echo = format!(
        "HTTP/1.1 418 {CANARY}\r\nwebhook-receipt: {CANARY}\r\nx-a: {CANARY}\r\ncontent-length: 23\r\n\r\n{CANARY}"
    );
    let failing = Server::answering(echo.clone()).await;
    let accepting = Server::answering(echo.replace("418", "200")).await;
    let cutting = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
    })
    .await;
    let authorization: &'static str = Box::leak(format!("Bearer {CANARY}").into_boxed_str());
    let factory: WebhookFactory = factory(&[("AUTH", authorization), ("KEY", CANARY)]);
    assert!(!format!("{factory:?}").contains("canary"));
    for server in [&failing, &accepting, &cutting] {
        let url = format!("http://{}/{CANARY}?t={CANARY}", server.address);
        let settings = settings(&url, json!({"authorization": "env:AUTH", "secrets": ["env:KEY"]}));
        let emitter = factory.build(&destination(&settings, Duplicates::Tolerated)).unwrap();
        let outcome: Outcome = send_order(&emitter).await;
        assert!(!format!("{outcome:?}").contains("canary"), "{outcome:?}");
        assert!(server.only_request().header("authorization").unwrap().contains("canary"));
        let parsed = Settings::parse(&settings.to_string()).unwrap();
        assert!(!format!("{parsed:?}").contains("canary"), "{parsed:?}");
    }
    assert!(!format!("{:?}", Secret::new(CANARY).unwrap()).contains("canary"));
}
