//! What an answer becomes: outcome, receipt, Retry-After, and nothing of its content.

use std::time::Duration;

use dlo_core::Observed;
use serde_json::json;

use crate::support::{OK, Server, emitter, failure, hang, harmful, receipt, send_order, write};

#[tokio::test]
async fn every_status_is_reported_as_it_is() {
    for status in [200_u16, 201, 202, 204, 299] {
        let server = Server::answering(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        receipt(send_order(&emitter(&server.url(), json!({}))).await);
    }
    for (status, text) in [
        (301_u16, "HTTP 301 (moved permanently)"),
        (400, "HTTP 400 (bad request)"),
        (401, "HTTP 401 (unauthorized)"),
        (404, "HTTP 404 (not found)"),
        (408, "HTTP 408 (request timeout)"),
        (410, "HTTP 410 (gone)"),
        (429, "HTTP 429 (too many requests)"),
        (500, "HTTP 500 (internal server error)"),
        (503, "HTTP 503 (service unavailable)"),
        (529, "HTTP 529"),
        (799, "HTTP 799"),
    ] {
        let answer =
            format!("HTTP/1.1 {status} reason-canary\r\nx-a: header-canary\r\ncontent-length: 11\r\n\r\nbody-canary");
        let server = Server::answering(answer).await;
        let failure = failure(send_order(&emitter(&server.url(), json!({}))).await);
        assert_eq!(failure.observed, Observed::Http { status });
        assert_eq!(failure.text.as_str(), text);
        assert_eq!((failure.provider_code, failure.retry_after), (None, None));
        assert_eq!(server.requests().len(), 1, "{status} is not repeated here");
    }
}

#[tokio::test]
async fn an_interim_answer_is_not_the_answer() {
    let server = Server::answering(format!("HTTP/1.1 103 Early Hints\r\n\r\n{OK}")).await;
    receipt(send_order(&emitter(&server.url(), json!({}))).await);
}

#[tokio::test]
async fn retry_after_is_passed_on_in_both_forms() {
    for (value, seconds) in [("120", Some(120)), ("Mon, 30 Nov 2026 12:01:00 GMT", Some(59)), ("later", None)] {
        let answer = format!("HTTP/1.1 503 X\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n");
        let server = Server::answering(answer).await;
        let failure = failure(send_order(&emitter(&server.url(), json!({}))).await);
        assert_eq!(failure.retry_after.map(|span| span.as_secs()), seconds, "{value}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::answering(OK).await;
    // 301 to 303 would come back as a GET, the others as the same POST.
    for status in [301_u16, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url());
        let server = Server::answering(answer).await;
        let failure = failure(send_order(&emitter(&server.url(), json!({}))).await);
        assert_eq!(failure.observed, Observed::Http { status });
        assert_eq!((server.connections(), target.connections()), (1, 0));
    }
}

#[tokio::test]
async fn the_receipt_is_the_providers_id_if_it_is_plain() {
    for (header, id) in [
        ("webhook-receipt: rcp_1", Some("rcp_1")),
        ("x-request-id: 0a-1b:2.c", Some("0a-1b:2.c")),
        ("request-id: req_9", Some("req_9")),
        ("x-request-id: not plain", None),
        ("x-other: req_9", None),
    ] {
        let server = Server::answering(format!("HTTP/1.1 200 OK\r\n{header}\r\ncontent-length: 0\r\n\r\n")).await;
        let receipt = receipt(send_order(&emitter(&server.url(), json!({}))).await);
        assert_eq!(receipt.id.as_ref().map(dlo_core::text::Bounded::as_str), id, "{header}");
        assert_eq!(receipt.kind.as_str(), if id.is_some() { "provider" } else { "status" });
    }
}

/// A body without end: what is read is bounded, and the outcome does not wait for the rest.
#[tokio::test]
async fn a_huge_body_is_not_read_to_its_end() {
    // What the two sockets may hold beside the 64 KiB that are read.
    const SOCKET_BUFFERS: usize = 32 * 1_024 * 1_024;
    let (ended, mut written) = tokio::sync::watch::channel(None);
    let server = Server::run(move |_, mut stream, log| {
        let ended = ended.clone();
        async move {
            log.read(&mut stream).await;
            write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n").await;
            let chunk = vec![b'x'; 64 * 1_024];
            let mut total = 0_usize;
            while tokio::io::AsyncWriteExt::write_all(&mut stream, &chunk).await.is_ok() {
                total += chunk.len();
            }
            ended.send_replace(Some(total));
        }
    })
    .await;
    receipt(send_order(&emitter(&server.url(), json!({}))).await);
    // The peer's write fails at last: the connection was closed, not drained.
    let total = written.wait_for(Option::is_some).await.unwrap().unwrap();
    assert!(total < SOCKET_BUFFERS, "{total}");
}

#[tokio::test]
async fn a_body_that_never_comes_does_not_hold_the_outcome() {
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
        write(&mut stream, "HTTP/1.1 503 X\r\nretry-after: 1\r\ncontent-length: 10\r\n\r\n").await;
        hang(stream).await;
    })
    .await;
    for emitter in [emitter(&server.url(), json!({})), harmful(&server.url())] {
        let failure = failure(send_order(&emitter).await);
        assert_eq!(failure.observed, Observed::Http { status: 503 });
        assert_eq!(failure.retry_after, Some(Duration::from_secs(1)));
    }
}

/// Compressed answers are not unpacked: there is nothing in them that we want.
#[tokio::test]
async fn no_encoding_is_asked_for() {
    let server = Server::answering(OK).await;
    receipt(send_order(&emitter(&server.url(), json!({}))).await);
    let request = server.only_request();
    assert_eq!(request.header("accept-encoding"), None);
    assert_eq!(request.header("cookie"), None);
    assert_eq!(request.line, "POST /in?token=q-canary HTTP/1.1");
}
