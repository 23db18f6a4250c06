//! How far a request got: "not sent" only if no byte can have left.

use dlo_core::{Phase, TransportKind};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::support::{
    NoNames, OK, Server, assert_transport, destination, emission, emitter, envelope, factory, hang, harmful, receipt,
    reset, send, send_briefly, send_order, settings, write,
};

#[tokio::test]
async fn refused_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_transport(send_order(&emitter(&url, json!({}))).await, TransportKind::Connect, Phase::NotSent);
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_sent() {
    let factory = factory(&[]).with_resolver(std::sync::Arc::new(NoNames));
    let target = destination(&settings("https://hooks.example.com/", json!({})), dlo_core::Duplicates::Tolerated);
    let emitter = factory.build(&target).unwrap();
    assert_transport(send_order(&emitter).await, TransportKind::Dns, Phase::NotSent);
}

#[tokio::test]
async fn hanging_before_the_body_is_read_is_sent() {
    let server = Server::run(|_, stream, _| hang(stream)).await;
    assert_transport(send_briefly(&emitter(&server.url(), json!({}))).await, TransportKind::Timeout, Phase::Sent);
}

#[tokio::test]
async fn hanging_after_the_body_was_read_is_sent() {
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
        hang(stream).await;
    })
    .await;
    assert_transport(send_briefly(&emitter(&server.url(), json!({}))).await, TransportKind::Timeout, Phase::Sent);
    assert_eq!(server.only_request().body, br#"{"order":1}"#);
}

#[tokio::test]
async fn time_that_runs_out_while_connecting_is_not_sent() {
    // A listener whose queue is full leaves further connects without an answer.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    loop {
        let connect = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(std::time::Duration::from_millis(200), connect).await {
            Ok(stream) => queued.push(stream.unwrap()),
            Err(_) => break,
        }
    }
    let url = format!("http://{address}/");
    // By the emission's own time, and by the connect timeout of the destination.
    assert_transport(send_briefly(&emitter(&url, json!({}))).await, TransportKind::Timeout, Phase::NotSent);
    let emitter = emitter(&url, json!({"connect_timeout": "100ms"}));
    assert_transport(send_order(&emitter).await, TransportKind::Timeout, Phase::NotSent);
    drop(queued);
}

#[tokio::test]
async fn a_cut_after_the_body_was_read_is_sent() {
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
    })
    .await;
    for emitter in [emitter(&server.url(), json!({})), harmful(&server.url())] {
        assert_transport(send_order(&emitter).await, TransportKind::Cut, Phase::Sent);
    }
    assert_eq!(server.requests().len(), 2, "nothing was sent twice");
}

#[tokio::test]
async fn a_reset_after_a_few_bytes_is_sent() {
    let server = Server::run(|_, mut stream, _| async move {
        stream.read_exact(&mut [0; 4]).await.unwrap();
        reset(stream);
    })
    .await;
    assert_transport(send_order(&emitter(&server.url(), json!({}))).await, TransportKind::Cut, Phase::Sent);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_cut_within_the_head_of_the_answer_is_sent() {
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 O").await;
    })
    .await;
    assert_transport(send_order(&emitter(&server.url(), json!({}))).await, TransportKind::Cut, Phase::Sent);
}

#[tokio::test]
async fn a_cut_within_the_body_of_the_answer_changes_nothing() {
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    })
    .await;
    assert_eq!(receipt(send_order(&emitter(&server.url(), json!({}))).await).kind.as_str(), "status");
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_unreadable() {
    let huge_head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1_000_000));
    for answer in ["SSH-2.0-OpenSSH_9\r\n\r\n".to_owned(), huge_head] {
        let server = Server::run(move |_, mut stream, log| {
            let answer = answer.clone();
            async move {
                log.read(&mut stream).await;
                // The client may close before it has read it all.
                let _result = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
                hang(stream).await;
            }
        })
        .await;
        let emitter = emitter(&server.url(), json!({}));
        assert_transport(send_order(&emitter).await, TransportKind::AnswerUnreadable, Phase::Sent);
    }
}

#[tokio::test]
async fn a_kept_connection_that_is_cut_counts_as_sent() {
    // The peer reads the second request on the kept connection and ends it: to us that is the same as a stale one.
    let server = Server::run(|_, mut stream, log| async move {
        log.read(&mut stream).await;
        write(&mut stream, OK).await;
        log.read(&mut stream).await;
    })
    .await;
    let emitter = emitter(&server.url(), json!({}));
    receipt(send_order(&emitter).await);
    assert_transport(send_order(&emitter).await, TransportKind::Cut, Phase::Sent);
    assert_eq!((server.connections(), server.requests().len()), (1, 2), "one connection, nothing sent twice");
}

#[tokio::test]
async fn harmful_uses_a_new_connection_each_time() {
    let server = Server::answering(OK).await;
    let emitter = harmful(&server.url());
    for _ in 0..3 {
        receipt(send_order(&emitter).await);
    }
    assert_eq!(server.connections(), 3);
    assert!(server.requests().iter().all(|request| request.header("connection") == Some("close")));
}

#[tokio::test]
async fn others_keep_their_connection() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let emitter = emitter(&server.url(), json!({}));
    for _ in 0..3 {
        receipt(send_order(&emitter).await);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_request_that_can_not_be_built_is_not_sent() {
    let server = Server::answering(OK).await;
    let mut not_json = envelope(b"{\"a\":1},\"id\":\"other\"");
    let structured = emitter(&server.url(), json!({"mode": "structured"}));
    let outcome = send(&structured, emission(not_json.clone())).await;
    assert_transport(outcome, TransportKind::RequestInvalid, Phase::NotSent);
    // Too much for the headers of one request.
    not_json.headers = (0..20).map(|n| (format!("name{n}"), "v".repeat(2_000))).collect();
    let outcome = send(&emitter(&server.url(), json!({})), emission(not_json)).await;
    assert_transport(outcome, TransportKind::RequestInvalid, Phase::NotSent);
    // A payload that says that it is a CloudEvent would be read as one.
    let mut nested = envelope(b"{}");
    nested.content_type = Some("application/cloudevents+json".to_owned());
    let outcome = send(&emitter(&server.url(), json!({})), emission(nested)).await;
    assert_transport(outcome, TransportKind::RequestInvalid, Phase::NotSent);
    assert_eq!(server.connections(), 0);
}
