//! Servers that do exactly what a test says, and emissions for them.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dlo_core::{
    DeliveryPolicy, Destination, DestinationSpec, Duplicates, EntryId, Envelope, EnvelopeId, Failure, Observed,
    Outcome, Payload, PayloadForm, Phase, Receipt, TenantId, Timestamp, TransportKind,
};
use dlo_ports::emitter::Emission;
use dlo_ports::{BoxFuture, Clock, Emitter};
use dlo_webhook::{KIND, Resolver, WebhookFactory};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A time that stands still: 2026-11-30T12:00:00.5Z.
pub(crate) struct At(pub(crate) Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-11-30T12:00:00.5Z".parse().unwrap()
}

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "header {name} came twice");
        value
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Reads one request; `None` if the connection ended before one was whole.
pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut received = Received { line, headers, body: bytes.split_off(head_end) };
    let length: usize = received.header("content-length").map_or(0, |value| value.parse().unwrap());
    while received.body.len() < length {
        if stream.read_buf(&mut received.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(received)
}

/// A server on loopback that runs a script for each connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Received>>,
    connections: AtomicUsize,
}

/// What a script has of its server.
#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

impl Log {
    pub(crate) async fn read<S: AsyncRead + Unpin>(&self, stream: &mut S) -> bool {
        match read_request(stream).await {
            Some(request) => {
                self.0.requests.lock().unwrap().push(request);
                true
            }
            None => false,
        }
    }
}

impl Server {
    /// Runs `script` for each connection; its number counts from 0.
    pub(crate) async fn run<F, R>(script: F) -> Self
    where
        F: Fn(usize, TcpStream, Log) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let log = Log(Arc::clone(&shared));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = log.0.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(number, stream, log.clone()));
            }
        });
        Self { address, shared }
    }

    /// Answers every request on every connection with these bytes, and keeps the connection.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<Vec<u8>> = Arc::new(answer.into());
        Self::run(move |_, mut stream, log| {
            let answer = Arc::clone(&answer);
            async move {
                while log.read(&mut stream).await {
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in?token=q-canary", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn only_request(&self) -> Received {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "requests");
        requests.into_iter().next().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

/// Makes closing this connection send RST.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}

/// Waits until the test is over.
pub(crate) async fn hang<S>(stream: S) {
    Notify::new().notified().await;
    drop(stream);
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

pub(crate) fn destination(settings: &Value, duplicates: Duplicates) -> Destination {
    Destination {
        spec: DestinationSpec {
            tenant: TenantId::default_tenant(),
            name: "hook".parse().unwrap(),
            emitter: KIND.to_owned(),
            settings: settings.to_string(),
            duplicates,
            policy: DeliveryPolicy::default(),
            pace: None,
            event_types: Vec::new(),
            owner: None,
            region: None,
        },
        version: 1,
        applied: Timestamp::EPOCH,
    }
}

/// Settings for a loopback URL, with more on top.
pub(crate) fn settings(url: &str, more: Value) -> Value {
    let mut settings = json!({"url": url, "allow_private": true});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    settings
}

/// A factory with its own environment: names and values.
pub(crate) fn factory(env: &[(&'static str, &'static str)]) -> WebhookFactory {
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    WebhookFactory::new(Arc::new(At(now()))).with_env(Arc::new(move |name| env.get(name).map(|v| (*v).to_owned())))
}

pub(crate) fn emitter(url: &str, more: Value) -> Arc<dyn Emitter> {
    factory(&[]).build(&destination(&settings(url, more), Duplicates::Tolerated)).unwrap()
}

pub(crate) fn harmful(url: &str) -> Arc<dyn Emitter> {
    factory(&[]).build(&destination(&settings(url, json!({})), Duplicates::Harmful)).unwrap()
}

pub(crate) fn envelope(body: &'static [u8]) -> Envelope {
    let payload = Payload::Bytes { bytes: Bytes::from_static(body), form: PayloadForm::Json };
    let mut envelope =
        Envelope::new(EnvelopeId::from_bytes([7; 16]), TenantId::default_tenant(), "order.created", payload);
    envelope.source = Some("/shop".to_owned());
    envelope.source_event_id = Some("evt-1".to_owned());
    envelope
}

pub(crate) fn emission(envelope: Envelope) -> Emission {
    let timeout = Duration::from_secs(20);
    Emission {
        entry: EntryId::from_bytes([1; 16]),
        tenant: envelope.tenant.clone(),
        destination: "hook".parse().unwrap(),
        generation: 0,
        operation_key: "op-key-1".parse().unwrap(),
        attempt: 1,
        deadline: now().after(timeout),
        timeout,
        envelope: Arc::new(envelope),
    }
}

pub(crate) async fn send(emitter: &Arc<dyn Emitter>, emission: Emission) -> Outcome {
    let entry = emission.entry;
    let mut emitted = emitter.emit(vec![emission]).await;
    assert_eq!(emitted.len(), 1);
    assert_eq!(emitted[0].entry, entry);
    emitted.remove(0).outcome
}

/// Sends a small order with the usual deadline.
pub(crate) async fn send_order(emitter: &Arc<dyn Emitter>) -> Outcome {
    send(emitter, emission(envelope(br#"{"order":1}"#))).await
}

/// The same with a short deadline, for servers that never answer.
pub(crate) async fn send_briefly(emitter: &Arc<dyn Emitter>) -> Outcome {
    send(emitter, Emission { timeout: Duration::from_millis(400), ..emission(envelope(br#"{"order":1}"#)) }).await
}

pub(crate) fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

pub(crate) fn receipt(outcome: Outcome) -> Receipt {
    match outcome {
        Outcome::Delivered { receipt: Some(receipt) } => receipt,
        other => panic!("not delivered: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_transport(outcome: Outcome, kind: TransportKind, phase: Phase) {
    let failure = failure(outcome);
    assert_eq!(failure.observed, Observed::Transport { kind, phase }, "{}", failure.text);
}

/// A resolver with a fixed answer for every name; counts how often it was asked.
pub(crate) struct Fixed {
    pub(crate) answers: Vec<&'static str>,
    pub(crate) asked: AtomicUsize,
}

impl Fixed {
    pub(crate) fn new(answers: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), asked: AtomicUsize::new(0) })
    }
}

impl Resolver for Fixed {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<std::net::IpAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(self.answers.iter().map(|answer| answer.parse().unwrap()).collect()) })
    }
}

/// A resolver that fails.
pub(crate) struct NoNames;

impl Resolver for NoNames {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(async { Err(io::Error::other("no such name")) })
    }
}

/// Writes an answer and keeps the stream open.
pub(crate) async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: impl AsRef<[u8]>) {
    stream.write_all(bytes.as_ref()).await.unwrap();
    stream.flush().await.unwrap();
}
