//! What the receiver gets of an envelope, in both modes; read by a server that checks HTTP strictly.

use bytes::Bytes;
use dlo_core::{Envelope, EnvelopeId, Payload, PayloadForm, TenantId, TraceContext};
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{Received, emission, emitter, envelope, receipt, send};

/// A receiver that parses requests with hyper and answers 204.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = seen.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let seen = seen.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let headers = head.headers.iter().map(|(name, value)| {
                        (name.as_str().to_owned(), value.to_str().expect("visible ASCII").to_owned())
                    });
                    let received = Received {
                        line: format!("{} {}", head.method, head.uri),
                        headers: headers.collect(),
                        body: body.collect().await?.to_bytes().to_vec(),
                    };
                    seen.send(received).expect("the test is there");
                    let mut answer = hyper::Response::new(Empty::<Bytes>::new());
                    *answer.status_mut() = hyper::StatusCode::NO_CONTENT;
                    Ok::<_, hyper::Error>(answer)
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (url, requests)
}

async fn delivered(envelope: Envelope, more: Value) -> Received {
    let (url, mut requests) = receiver().await;
    receipt(send(&emitter(&url, more), emission(envelope)).await);
    requests.recv().await.unwrap()
}

/// JSON that any parser would write otherwise: white space, key order, a repeated key, long numbers, escapes.
const ODD_JSON: &str =
    "{ \"b\" : 1.0e2,\n\t\"a\":12345678901234567890123,\"a\":\"\\u00e9 é 😀\",\"z\":[ ] , \"n\":-0.0}";

fn full() -> Envelope {
    let payload = Payload::Bytes { bytes: Bytes::from_static(ODD_JSON.as_bytes()), form: PayloadForm::Json };
    let mut envelope = Envelope::new(
        EnvelopeId::from_bytes([7; 16]),
        TenantId::new("tenant-canary").unwrap(),
        "order.created",
        payload,
    );
    let text = |text: &str| Some(text.to_owned());
    envelope.source = text("/shop/ümläut");
    envelope.source_event_id = text("evt 1");
    envelope.subject = text("Euro € 😀");
    envelope.occurred = Some("2026-11-30T12:00:00.123456Z".parse().unwrap());
    envelope.principal = text("principal-canary");
    envelope.region = text("region-canary");
    envelope.workload = text("workload-canary");
    envelope.correlation_id = text("corr-1");
    envelope.audit_residue_id = text("res-1");
    envelope.sequence_hint = Some(u64::MAX);
    envelope.ordering_key = text("customer\"7%");
    envelope.policy_version = text("policy-canary");
    envelope.policy_hash = text("policy-canary");
    envelope.trace = Some(TraceContext {
        parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
        state: text("vendor=a,other=b c"),
    });
    envelope.content_type = text("application/json; charset=utf-8");
    envelope.schema = text("https://example.com/schema");
    envelope.schema_version = text("3");
    envelope.headers = [
        ("myext", "é"),
        ("x-forwarded-for", "6.6.6.6"),
        ("specversion", "9"),
        ("principal", "spoofed"),
        ("datacontenttype", "spoofed"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    envelope.agent = [("gen_ai.request.model".to_owned(), "agent canary".to_owned())].into();
    envelope
}

#[tokio::test]
async fn binary_mode_carries_the_bytes_and_every_attribute() {
    let received = delivered(full(), json!({})).await;
    assert_eq!(received.body, ODD_JSON.as_bytes());
    for (name, value) in [
        ("content-type", Some("application/json; charset=utf-8")),
        ("ce-specversion", Some("1.0")),
        ("ce-id", Some("evt%201")),
        ("ce-source", Some("/shop/%C3%BCml%C3%A4ut")),
        ("ce-type", Some("order.created")),
        ("ce-subject", Some("Euro%20%E2%82%AC%20%F0%9F%98%80")),
        ("ce-time", Some("2026-11-30T12:00:00.123456Z")),
        ("ce-dataschema", Some("https://example.com/schema")),
        ("ce-schemaversion", Some("3")),
        ("ce-correlationid", Some("corr-1")),
        ("ce-auditresidueid", Some("res-1")),
        ("ce-sequencehint", Some("18446744073709551615")),
        ("ce-orderingkey", Some("customer%227%25")),
        ("ce-traceparent", Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        ("traceparent", Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
        ("tracestate", Some("vendor=a,other=b c")),
        ("ce-myext", Some("%C3%A9")),
        ("dlo-header-x-forwarded-for", Some("6.6.6.6")),
        ("x-forwarded-for", None),
        ("ce-datacontenttype", None),
        ("ce-principal", None),
    ] {
        assert_eq!(received.header(name), value, "{name}");
    }
    let shown = format!("{received:?}");
    assert!(!shown.contains("canary"), "not disclosed: {shown}");
}

#[tokio::test]
async fn structured_mode_embeds_json_as_it_stands() {
    let received = delivered(full(), json!({"mode": "structured"})).await;
    assert_eq!(received.header("content-type"), Some("application/cloudevents+json; charset=UTF-8"));
    let body = String::from_utf8(received.body.clone()).unwrap();
    assert!(body.ends_with(&format!(",\"data\":{ODD_JSON}}}")), "{body}");
    let mut event = received.json();
    event.as_object_mut().unwrap().remove("data");
    let expected = json!({
        "specversion": "1.0",
        "id": "evt 1",
        "source": "/shop/ümläut",
        "type": "order.created",
        "subject": "Euro € 😀",
        "time": "2026-11-30T12:00:00.123456Z",
        "datacontenttype": "application/json; charset=utf-8",
        "dataschema": "https://example.com/schema",
        "schemaversion": "3",
        "correlationid": "corr-1",
        "auditresidueid": "res-1",
        "sequencehint": "18446744073709551615",
        "orderingkey": "customer\"7%",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=a,other=b c",
        "myext": "é",
    });
    assert_eq!(event, expected);
    assert!(!received.headers.iter().any(|(name, _)| name.starts_with("ce-")));
    assert_eq!(received.header("dlo-header-x-forwarded-for"), Some("6.6.6.6"));
    assert!(received.header("traceparent").is_some());
}

#[tokio::test]
async fn what_the_destination_asks_for_is_disclosed() {
    let everything = json!({"disclose": ["principal", "workload", "region", "policy", "agent"]});
    let received = delivered(full(), everything).await;
    for (name, value) in [
        ("ce-principal", "principal-canary"),
        ("ce-workload", "workload-canary"),
        ("ce-region", "region-canary"),
        ("ce-policyversion", "policy-canary"),
        ("ce-policyhash", "policy-canary"),
        ("dlo-agent-gen_ai.request.model", "agent%20canary"),
    ] {
        assert_eq!(received.header(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_json_arrive_as_they_are() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut binary = envelope(b"");
    binary.payload = Payload::Bytes { bytes: bytes.clone().into(), form: PayloadForm::Binary };

    let received = delivered(binary.clone(), json!({})).await;
    assert_eq!(received.body, bytes);
    assert_eq!(received.header("content-type"), Some("application/octet-stream"));

    let received = delivered(binary, json!({"mode": "structured"})).await;
    let event = received.json();
    let encoded = event["data_base64"].as_str().unwrap();
    assert_eq!(base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).unwrap(), bytes);
    assert_eq!(event.get("data"), None);
    assert_eq!(event.get("datacontenttype"), None);
}

#[tokio::test]
async fn an_envelope_without_anything_is_still_an_event() {
    let bare = Envelope::new(EnvelopeId::from_bytes([9; 16]), TenantId::default_tenant(), "t", Payload::None);
    let received = delivered(bare.clone(), json!({})).await;
    assert_eq!(received.body, b"");
    assert_eq!(received.header("content-type"), None);
    assert_eq!(received.header("ce-source"), Some("urn:dlo"));
    assert_eq!(received.header("ce-id"), Some(&*bare.id.to_string()));
    assert_eq!(received.header("content-length"), Some("0"));

    let received = delivered(bare.clone(), json!({"mode": "structured"})).await;
    let event = json!({"specversion": "1.0", "id": bare.id.to_string(), "source": "urn:dlo", "type": "t"});
    assert_eq!(received.json(), event);
}

#[tokio::test]
async fn a_descriptor_is_described() {
    let mut described = envelope(b"");
    described.payload =
        Payload::Descriptor { kind: "invoice".to_owned(), hash: Some("sha256:00".to_owned()), size: Some(12) };
    let received = delivered(described, json!({})).await;
    assert_eq!(received.body, b"");
    assert_eq!(received.header("ce-dlodatakind"), Some("invoice"));
    assert_eq!(received.header("ce-dlodatahash"), Some("sha256:00"));
    assert_eq!(received.header("ce-dlodatasize"), Some("12"));
}

#[tokio::test]
async fn a_malformed_trace_is_no_trace_header() {
    for parent in ["", "00-zz-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "é"] {
        let mut traced = envelope(b"{}");
        traced.trace = Some(TraceContext { parent: parent.to_owned(), state: Some("a=b".to_owned()) });
        let received = delivered(traced, json!({})).await;
        assert_eq!((received.header("traceparent"), received.header("tracestate")), (None, None), "{parent}");
    }
}

#[tokio::test]
async fn the_ping_is_an_event_without_data_of_anybody() {
    let id = EnvelopeId::from_bytes([3; 16]);
    let ping = dlo_webhook::ping(id, TenantId::default_tenant(), crate::support::now());
    ping.validate().unwrap();
    let received = delivered(ping, json!({})).await;
    assert_eq!(received.header("ce-type"), Some("dlo.ping"));
    assert_eq!(received.header("ce-time"), Some("2026-11-30T12:00:00.500000Z"));
    assert_eq!(received.json(), json!({"ping": true}));
}

/// The largest payload that an envelope may carry.
#[tokio::test]
async fn a_large_payload_arrives_whole() {
    let bytes: Bytes = vec![b'a'; dlo_core::limits::MAX_PAYLOAD_BYTES].into();
    let mut large = envelope(b"");
    large.payload = Payload::Bytes { bytes: bytes.clone(), form: PayloadForm::Binary };
    assert_eq!(Bytes::from(delivered(large, json!({})).await.body), bytes);
}
