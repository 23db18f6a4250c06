//! The HTTP client of one destination.
//!
//! Everything that a general-purpose client does by itself is off: proxies from the environment, redirects, repeats,
//! cookies, decompression. TLS is configured here with its own crypto provider, so that neither a missing nor another
//! process-wide provider matters to the application that embeds this.

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use reqwest::Client;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::resolve::{Checked, Resolver};
use crate::settings::{Settings, SettingsError};

/// How long an unused connection is kept. Shorter than the 5 s after which common servers close theirs, since a
/// request on a connection that the peer is closing counts as sent.
pub const POOL_IDLE: Duration = Duration::from_secs(4);
/// Most unused connections that are kept for a destination.
pub const POOL_SIZE: usize = 64;

/// Builds the client. `fresh` makes a new connection for each request.
pub(crate) fn build(settings: &Settings, resolver: Arc<dyn Resolver>, fresh: bool) -> Result<Client, SettingsError> {
    let rules = Arc::new(settings.address_rules());
    Client::builder()
        .tls_backend_preconfigured(tls(settings)?)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .dns_resolver(Arc::new(Checked { resolver, rules }))
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(if fresh { 0 } else { POOL_SIZE })
        .tcp_nodelay(true)
        .user_agent(&settings.user_agent)
        .build()
        .map_err(|_| SettingsError { setting: "url".into(), rule: "gives no usable HTTP client on this system".into() })
}

fn tls(settings: &Settings) -> Result<ClientConfig, SettingsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions");
    let mut config = if settings.url.is_tls() {
        let verifier = match &settings.ca_file {
            Some(path) => own_authorities(path, provider)?,
            None => system_authorities(provider)?,
        };
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    } else {
        // Never used; without one the client would look for a process-wide provider and panic.
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn system_authorities(provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, SettingsError> {
    let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|_| SettingsError {
        setting: "ca_file".into(),
        rule: "is needed: this system has no trusted certificate authorities".into(),
    })?;
    Ok(Arc::new(verifier))
}

fn own_authorities(path: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, SettingsError> {
    let error = |rule: &str| SettingsError { setting: "ca_file".into(), rule: rule.into() };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|_| error("names a file that can't be read"))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|_| error("names a file that is not PEM certificates"))?;
        roots.add(certificate).map_err(|_| error("holds a certificate that can't be a trusted authority"))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|_| error("names a file without a certificate"))?;
    Ok(verifier)
}
