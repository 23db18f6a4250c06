//! The deny-list: on hosts written as addresses, on what names resolve to, and what opens it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlo_core::{Duplicates, Phase, TransportKind};
use dlo_ports::BoxFuture;
use dlo_webhook::{Resolver, Settings};
use serde_json::{Value, json};

use crate::support::{Fixed, OK, Server, assert_transport, destination, factory, receipt, send_order, settings};

/// Host as written in a URL; whether `allow_private = true` opens it.
const DENIED: &[(&str, bool)] = &[
    ("127.0.0.1", true),
    ("127.255.255.254", true),
    ("127.1", true),
    ("2130706433", true),
    ("0x7f.1", true),
    ("0x7f000001", true),
    ("0177.0.0.1", true),
    ("017700000001", true),
    ("127.0.0.1.", true),
    ("%31%32%37.0.0.1", true),
    ("１２７。０。０。１", true),
    ("①②⑦.0.0.1", true),
    ("[::1]", true),
    ("[0:0:0:0:0:0:0:1]", true),
    ("[::ffff:127.0.0.1]", true),
    ("[::ffff:7f00:1]", true),
    ("[::127.0.0.1]", false),
    ("[64:ff9b::127.0.0.1]", true),
    ("[64:ff9b::a00:1]", true),
    ("[64:ff9b::169.254.169.254]", false),
    ("[64:ff9b:1::a00:1]", false),
    ("10.0.0.1", true),
    ("0xa.0.0.1", true),
    ("167772161", true),
    ("172.16.0.1", true),
    ("172.31.255.255", true),
    ("192.168.1.1", true),
    ("192.168.257", true),
    ("100.64.0.1", true),
    ("100.127.255.255", true),
    ("100.100.100.200", false),
    ("169.254.169.254", false),
    ("0251.0376.0251.0376", false),
    ("[::ffff:169.254.169.254]", false),
    ("168.63.129.16", false),
    ("0.0.0.0", false),
    ("0", false),
    ("0.1.2.3", false),
    ("[::]", false),
    ("192.0.0.8", false),
    ("192.0.2.1", false),
    ("198.51.100.7", false),
    ("203.0.113.9", false),
    ("198.18.0.1", false),
    ("192.88.99.1", false),
    ("224.0.0.1", false),
    ("239.255.255.250", false),
    ("240.0.0.1", false),
    ("255.255.255.255", false),
    ("[fe80::1]", false),
    ("[fec0::1]", false),
    ("[fc00::1]", true),
    ("[fd12:3456::1]", true),
    ("[fd00:ec2::254]", false),
    ("[ff02::1]", false),
    ("[2001:db8::1]", false),
    ("[2001::1]", false),
    ("[2002:7f00:1::]", false),
    ("[3fff::1]", false),
    ("[100::1]", false),
    ("[4000::1]", false),
];

const PUBLIC: &[&str] = &[
    "8.8.8.8",
    "134744072",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "223.255.255.255",
    "[2606:4700::1111]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
    "hooks.example.com",
];

fn parse(host: &str, more: Value) -> Result<Settings, String> {
    let mut settings = json!({"url": format!("https://{host}/")});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Settings::parse(&settings.to_string()).map_err(|error| error.to_string())
}

#[test]
fn written_addresses_are_checked_in_every_spelling() {
    for (host, opens) in DENIED {
        let error = parse(host, json!({})).expect_err(host);
        assert!(error.contains("denied range"), "{host}: {error}");
        assert_eq!(parse(host, json!({"allow_private": true})).is_ok(), *opens, "{host} with allow_private");
    }
    for host in PUBLIC {
        assert!(parse(host, json!({})).is_ok(), "{host}");
    }
    for host in ["256.0.0.1", "0x7f.0.0.0.1", "[::1", "[fe80::1%25eth0]", "127.0.0.08"] {
        assert!(parse(host, json!({"allow_private": true})).is_err(), "{host}");
    }
}

#[test]
fn ranges_open_exactly_what_they_name() {
    let link_local = json!({"allow_private": ["169.254.0.0/16", "fe80::/10"]});
    for (host, taken) in
        [("169.254.169.254", true), ("[::ffff:169.254.1.1]", true), ("[fe80::1]", true), ("10.0.0.1", false)]
    {
        assert_eq!(parse(host, link_local.clone()).is_ok(), taken, "{host}");
    }
    let everything = json!({"allow_private": ["0.0.0.0/0", "::/0"]});
    for (host, taken) in [
        ("127.0.0.1", true),
        ("169.254.169.254", true),
        ("[64:ff9b::169.254.169.254]", true),
        ("0.0.0.0", false),
        ("[::]", false),
        ("[::127.0.0.1]", false),
        ("224.0.0.1", false),
        ("255.255.255.255", false),
        ("[ff02::1]", false),
    ] {
        assert_eq!(parse(host, everything.clone()).is_ok(), taken, "{host}");
    }
}

/// Settings for a name that resolves to what the test says, on the server's port.
fn named(server: &Server, more: Value) -> Value {
    let mut settings = json!({
        "url": format!("http://hooks.test:{}/", server.address.port()),
        "allow_plaintext": true,
    });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    settings
}

#[tokio::test]
async fn a_name_that_resolves_to_denied_addresses_is_not_connected_to() {
    let server = Server::answering(OK).await;
    for (answers, more) in [
        (vec!["127.0.0.1"], json!({})),
        (vec!["::1", "127.0.0.1", "10.0.0.1", "::ffff:127.0.0.1"], json!({})),
        (vec!["169.254.169.254", "0.0.0.0"], json!({"allow_private": true})),
        (vec!["127.0.0.1"], json!({"allow_private": ["10.0.0.0/8"]})),
    ] {
        let factory = factory(&[]).with_resolver(Fixed::new(&answers));
        let emitter = factory.build(&destination(&named(&server, more), Duplicates::Tolerated)).unwrap();
        assert_transport(send_order(&emitter).await, TransportKind::AddressDenied, Phase::NotSent);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn of_a_mixed_answer_only_the_allowed_address_is_used() {
    let server = Server::answering(OK).await;
    let resolver = Fixed::new(&["169.254.169.254", "0.0.0.0", "127.0.0.2", "127.0.0.1"]);
    let settings = named(&server, json!({"allow_private": ["127.0.0.1/32"]}));
    let factory = factory(&[]).with_resolver(resolver.clone());
    let emitter = factory.build(&destination(&settings, Duplicates::Tolerated)).unwrap();
    receipt(send_order(&emitter).await);
    assert_eq!(server.only_request().header("host"), Some(&*format!("hooks.test:{}", server.address.port())));
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1, "asked once: what was checked is what was connected to");
}

#[tokio::test]
async fn an_empty_answer_is_a_failed_look_up() {
    let server = Server::answering(OK).await;
    let factory = factory(&[]).with_resolver(Fixed::new(&[]));
    let emitter = factory.build(&destination(&named(&server, json!({})), Duplicates::Tolerated)).unwrap();
    assert_transport(send_order(&emitter).await, TransportKind::Dns, Phase::NotSent);
}

/// A name that answers with an allowed address first and with a metadata service later.
#[derive(Default)]
struct Rebinding(AtomicUsize);

impl Resolver for Rebinding {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let answer = if first { "127.0.0.1" } else { "169.254.169.254" };
        Box::pin(async move { Ok(vec![answer.parse().unwrap()]) })
    }
}

#[tokio::test]
async fn every_new_connection_is_checked_again() {
    let server = Server::answering(OK).await;
    let factory = factory(&[]).with_resolver(Arc::new(Rebinding::default()));
    let settings = named(&server, json!({"allow_private": true}));
    let emitter = factory.build(&destination(&settings, Duplicates::Harmful)).unwrap();
    receipt(send_order(&emitter).await);
    assert_transport(send_order(&emitter).await, TransportKind::AddressDenied, Phase::NotSent);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_loopback_name_that_resolves_elsewhere_gets_no_plain_http() {
    let server = Server::answering(OK).await;
    let url = format!("http://localhost:{}/", server.address.port());
    let factory = factory(&[]).with_resolver(Fixed::new(&["10.0.0.1", "::ffff:127.0.0.1"]));
    let emitter = factory.build(&destination(&settings(&url, json!({})), Duplicates::Tolerated)).unwrap();
    receipt(send_order(&emitter).await);
    let elsewhere = crate::support::factory(&[]).with_resolver(Fixed::new(&["10.0.0.1"]));
    let emitter = elsewhere.build(&destination(&settings(&url, json!({})), Duplicates::Tolerated)).unwrap();
    assert_transport(send_order(&emitter).await, TransportKind::AddressDenied, Phase::NotSent);
}

/// The resolver of the system is behind the same check.
#[tokio::test]
async fn the_systems_answer_is_checked_too() {
    let server = Server::answering(OK).await;
    let url = format!("http://localhost:{}/", server.address.port());
    let denied = json!({"url": url});
    let emitter = factory(&[]).build(&destination(&denied, Duplicates::Tolerated)).unwrap();
    assert_transport(send_order(&emitter).await, TransportKind::AddressDenied, Phase::NotSent);
    let emitter = factory(&[]).build(&destination(&settings(&url, json!({})), Duplicates::Tolerated)).unwrap();
    receipt(send_order(&emitter).await);
    assert_eq!(server.connections(), 1);
}
