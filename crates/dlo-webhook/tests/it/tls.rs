//! TLS: certificates told apart from cut handshakes, both not sent; and no process-wide provider is needed.

use std::io::Write;
use std::sync::Arc;

use dlo_core::{Duplicates, Observed, Phase, TransportKind};
use dlo_ports::Emitter;
use dlo_ports::env::EmitterError;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{ConfigBuilder, RootCertStore, ServerConfig, SupportedProtocolVersion, WantsVerifier};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::support::{
    Fixed, OK, Server, assert_transport, destination, factory, failure, hang, receipt, reset, send_briefly, send_order,
    settings,
};

/// A private authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn file(&self) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(self.pem.as_bytes()).unwrap();
        file
    }

    /// Server configuration with a certificate of this authority, after `change`.
    fn server(&self, change: impl FnOnce(&mut CertificateParams)) -> ServerConfig {
        let (certificate, key) = self.issue(change);
        builder(rustls::ALL_VERSIONS).with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
    }

    fn issue(
        &self,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (rustls::pki_types::CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

/// The provider is named: these tests install none, or another, for the process.
fn builder(versions: &[&'static SupportedProtocolVersion]) -> ConfigBuilder<ServerConfig, WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap()
}

/// An HTTPS server that answers 200 and keeps connections.
async fn https(config: ServerConfig) -> Server {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Server::run(move |_, stream, log| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while log.read(&mut stream).await {
                if stream.write_all(OK.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

fn client(server: &Server, authority: &Authority, more: Value) -> Arc<dyn Emitter> {
    let file = authority.file();
    let mut settings = settings(&format!("https://localhost:{}/", server.address.port()), more);
    settings["ca_file"] = json!(file.path());
    let factory = factory(&[]).with_resolver(Fixed::new(&["127.0.0.1"]));
    factory.build(&destination(&settings, Duplicates::Tolerated)).unwrap()
}

#[tokio::test]
async fn a_private_authority_is_trusted_if_it_is_named() {
    let authority = Authority::new("ours");
    let mut config = authority.server(|_| {});
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = https(config).await;
    let emitter = client(&server, &authority, json!({}));
    for _ in 0..2 {
        receipt(send_order(&emitter).await);
    }
    assert_eq!(server.connections(), 1);
    assert!(server.requests()[0].line.ends_with("HTTP/1.1"), "HTTP/2 is not negotiated");
}

#[tokio::test]
async fn a_refused_certificate_is_told_apart_and_not_sent() {
    let (authority, other) = (Authority::new("ours"), Authority::new("another"));
    let past = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    };
    let future = |params: &mut CertificateParams| params.not_before = date_time_ymd(2990, 1, 1);
    let elsewhere = |params: &mut CertificateParams| {
        *params = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
    };
    for (config, text) in [
        (authority.server(past), "the peer's certificate has expired"),
        (authority.server(future), "the peer's certificate is not valid yet"),
        (authority.server(elsewhere), "the peer's certificate is for another name"),
        (other.server(|_| {}), "the peer's certificate is from an authority that is not trusted"),
    ] {
        let server = https(config).await;
        let failure = failure(send_order(&client(&server, &authority, json!({}))).await);
        let kind = TransportKind::TlsCertificate;
        assert_eq!(failure.observed, Observed::Transport { kind, phase: Phase::NotSent });
        assert_eq!(failure.text.as_str(), text);
        assert!(server.requests().is_empty());
    }
}

#[tokio::test]
async fn a_handshake_that_is_cut_is_not_sent() {
    let authority = Authority::new("ours");
    let cut = Server::run(|_, mut stream, _| async move {
        stream.read_exact(&mut [0; 16]).await.unwrap();
    })
    .await;
    let after_hello = Server::run(|_, mut stream, _| async move {
        // All that a client says first fits one read here; then the end without a reset.
        let read = stream.read(&mut vec![0; 65_536]).await.unwrap();
        assert!(read > 0);
    })
    .await;
    let resetting = Server::run(|_, mut stream, _| async move {
        stream.read_exact(&mut [0; 16]).await.unwrap();
        reset(stream);
    })
    .await;
    let plain = Server::run(|_, mut stream, _| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        hang(stream).await;
    })
    .await;
    for server in [cut, after_hello, resetting, plain] {
        let emitter = client(&server, &authority, json!({}));
        assert_transport(send_order(&emitter).await, TransportKind::TlsHandshake, Phase::NotSent);
    }
}

#[tokio::test]
async fn a_handshake_that_hangs_is_not_sent() {
    let authority = Authority::new("ours");
    let server = Server::run(|_, stream, _| hang(stream)).await;
    let by_deadline = client(&server, &authority, json!({}));
    assert_transport(send_briefly(&by_deadline).await, TransportKind::Timeout, Phase::NotSent);
    let by_setting = client(&server, &authority, json!({"connect_timeout": "100ms"}));
    assert_transport(send_order(&by_setting).await, TransportKind::Timeout, Phase::NotSent);
}

#[tokio::test]
async fn a_cut_after_the_handshake_is_sent() {
    let authority = Authority::new("ours");
    let acceptor = TlsAcceptor::from(Arc::new(authority.server(|_| {})));
    let server = Server::run(move |_, stream, log| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            log.read(&mut stream).await;
        }
    })
    .await;
    let emitter = client(&server, &authority, json!({}));
    assert_transport(send_order(&emitter).await, TransportKind::Cut, Phase::Sent);
    assert_eq!(server.requests().len(), 1);
}

/// In TLS 1.2 the peer says so within the handshake; in 1.3 the handshake is over by then, and the request is out.
#[tokio::test]
async fn a_peer_that_wants_our_certificate() {
    let authority = Authority::new("ours");
    for (version, kind, phase) in [
        (&rustls::version::TLS12, TransportKind::TlsCertificate, Phase::NotSent),
        (&rustls::version::TLS13, TransportKind::Cut, Phase::Sent),
    ] {
        let mut roots = RootCertStore::empty();
        roots.add(authority.issue(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)).0).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let (certificate, key) = authority.issue(|_| {});
        let config =
            builder(&[version]).with_client_cert_verifier(verifier).with_single_cert(vec![certificate], key).unwrap();
        let server = https(config).await;
        assert_transport(send_order(&client(&server, &authority, json!({}))).await, kind, phase);
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_file_without_authorities_is_refused() {
    let mut no_certificate = NamedTempFile::new().unwrap();
    no_certificate.write_all(b"just text\n").unwrap();
    for (path, rule) in [
        (no_certificate.path().to_owned(), "names a file without a certificate"),
        (std::path::PathBuf::from("/nonexistent/ca.pem"), "names a file that can't be read"),
    ] {
        let settings = json!({"url": "https://hooks.example.com/", "ca_file": path});
        let error = factory(&[]).build(&destination(&settings, Duplicates::Tolerated)).err();
        let problem = format!("`ca_file` {rule}");
        assert_eq!(error, Some(EmitterError::Settings { kind: "webhook".to_owned(), problem }));
    }
}

/// The system's authorities do not know ours. Where a system has none, that is said when the emitter is built.
#[tokio::test]
async fn without_a_file_the_systems_authorities_count() {
    let server = https(Authority::new("ours").server(|_| {})).await;
    let settings = settings(&format!("https://localhost:{}/", server.address.port()), json!({}));
    let factory = factory(&[]).with_resolver(Fixed::new(&["127.0.0.1"]));
    match factory.build(&destination(&settings, Duplicates::Tolerated)) {
        Ok(emitter) => assert_transport(send_order(&emitter).await, TransportKind::TlsCertificate, Phase::NotSent),
        Err(error) => assert!(error.to_string().contains("`ca_file` is needed"), "{error}"),
    }
}

/// An application may have installed no provider, or one that can do nothing for us.
#[tokio::test]
async fn a_process_wide_provider_does_not_matter() {
    let authority = Authority::new("ours");
    let server = https(authority.server(|_| {})).await;
    receipt(send_order(&client(&server, &authority, json!({}))).await);
    let useless =
        rustls::crypto::CryptoProvider { cipher_suites: Vec::new(), ..rustls::crypto::ring::default_provider() };
    // Another test of this process may have been first.
    let _installed = useless.install_default();
    receipt(send_order(&client(&server, &authority, json!({}))).await);
    receipt(send_order(&crate::support::emitter(&Server::answering(OK).await.url(), json!({}))).await);
}
