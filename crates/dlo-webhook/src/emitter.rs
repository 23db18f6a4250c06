//! The emitter: one envelope, one signed request, one outcome.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{Failure, Outcome, Phase, TransportKind};
use dlo_ports::emitter::{Emission, Emitted};
use dlo_ports::{BoxFuture, Clock, Emitter};
use reqwest::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::cloudevents;
use crate::failure::{self, transport};
use crate::gate::Gate;
use crate::secret::{EnvLookup, Secret, SecretError, SecretRef};
use crate::settings::Settings;
use crate::sign::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use crate::{MAX_HEADER_BYTES, response};

/// Longest time that the rest of a response body may take, so that a trickle does not hold a settled entry up.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// What of an emission's time is kept to answer in: a tenth, at most this.
const MAX_ANSWER_MARGIN: Duration = Duration::from_millis(250);

/// Longest try, whatever the emission says; keeps the arithmetic of times within its range.
const MAX_TRY_TIME: Duration = Duration::from_hours(24);

/// Emits to one version of one destination.
pub(crate) struct Webhook {
    pub(crate) settings: Settings,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) env: EnvLookup,
    /// A new connection for each request.
    pub(crate) fresh: bool,
}

impl Emitter for Webhook {
    fn emit(&self, batch: Vec<Emission>) -> BoxFuture<'_, Vec<Emitted>> {
        Box::pin(async move {
            let mut emitted = Vec::with_capacity(batch.len());
            for emission in batch {
                emitted.push(Emitted { entry: emission.entry, outcome: self.emit_one(&emission).await });
            }
            emitted
        })
    }
}

/// A request that is ready to go, and the secrets in it.
struct Prepared {
    request: reqwest::Request,
    sent_secrets: Vec<Zeroizing<Vec<u8>>>,
}

impl Webhook {
    async fn emit_one(&self, emission: &Emission) -> Outcome {
        let gate = Gate::new();
        let allowed = emission.timeout.min(MAX_TRY_TIME);
        let end = Instant::now() + allowed.saturating_sub((allowed / 10).min(MAX_ANSWER_MARGIN));
        match tokio::time::timeout_at(end, self.exchange(emission, &gate)).await {
            Ok(Ok((response, sent_secrets))) => {
                let outcome = response::outcome(response.status(), response.headers(), self.clock.now(), &sent_secrets);
                self.drain(response, end).await;
                outcome
            }
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(_) if gate.close() => {
                Outcome::Failed(transport(TransportKind::Timeout, Phase::NotSent, "no connection in time"))
            }
            Err(_) => Outcome::Failed(transport(TransportKind::Timeout, Phase::Sent, "no answer in time")),
        }
    }

    /// Sends the request and waits for the head of its response.
    async fn exchange(&self, emission: &Emission, gate: &Gate) -> Result<(Response, Vec<Zeroizing<Vec<u8>>>), Failure> {
        let Prepared { request, sent_secrets } = self.prepare(emission, gate).await?;
        let response = self.client.execute(request).await;
        response
            .map(|response| (response, sent_secrets))
            .map_err(|error| failure::of_error(&error, self.settings.url.is_tls()))
    }

    async fn prepare(&self, emission: &Emission, gate: &Gate) -> Result<Prepared, Failure> {
        let written = cloudevents::write(&emission.envelope, self.settings.mode, &self.settings.disclose)
            .map_err(|unwritable| request_invalid(&unwritable.to_string()))?;
        let mut headers = written.headers;
        let mut sent_secrets = Vec::new();
        self.put_static(&mut headers);
        self.put_secret(&mut headers, &mut sent_secrets).await.map_err(|error| credential_unavailable(&error))?;
        self.put_identity(&mut headers, emission, &written.body).await?;
        if self.fresh {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if written.body.is_empty() {
            // The client says nothing of an empty body, and some servers refuse a POST without a length.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if size > MAX_HEADER_BYTES {
            return Err(request_invalid(&format!(
                "the headers of the request would be {size} bytes, more than {MAX_HEADER_BYTES}"
            )));
        }
        let mut request = reqwest::Request::new(reqwest::Method::POST, self.settings.url.url().clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(reqwest::Body::wrap(gate.body(written.body)));
        Ok(Prepared { request, sent_secrets })
    }

    fn put_static(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.settings.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("names are checked when settings are read");
            let value = HeaderValue::from_str(value).expect("values are checked when settings are read");
            headers.insert(name, value);
        }
    }

    async fn put_secret(
        &self,
        headers: &mut HeaderMap,
        sent_secrets: &mut Vec<Zeroizing<Vec<u8>>>,
    ) -> Result<(), SecretError> {
        let authorization = self.settings.authorization.iter().map(|reference| ("authorization", reference));
        let others = self.settings.secret_headers.iter().map(|(name, reference)| (name.as_str(), reference));
        for (name, reference) in authorization.chain(others) {
            let secret = reference.read(&self.env).await?;
            let value = secret_value(reference, &secret)?;
            let name = HeaderName::from_bytes(name.as_bytes()).expect("names are checked when settings are read");
            headers.insert(name, value);
            sent_secrets.push(secret);
        }
        Ok(())
    }

    /// The headers that tell a receiver which operation this is and that it is from us.
    async fn put_identity(&self, headers: &mut HeaderMap, emission: &Emission, body: &[u8]) -> Result<(), Failure> {
        let key = emission.operation_key.as_str();
        let key_value = HeaderValue::from_str(key).expect("an operation key is visible ASCII");
        headers.insert("idempotency-key", key_value.clone());
        headers.insert(ID_HEADER, key_value);
        let mut secrets = Vec::with_capacity(self.settings.secrets.len());
        for reference in &self.settings.secrets {
            let secret = Secret::read(reference, &self.env).await.map_err(|error| credential_unavailable(&error))?;
            secrets.push(secret);
        }
        let seconds = self.clock.now().as_micros().div_euclid(1_000_000);
        headers.insert(TIMESTAMP_HEADER, HeaderValue::from(seconds));
        if !secrets.is_empty() {
            let signature =
                HeaderValue::from_str(&sign(&secrets, key, seconds, body)).expect("signatures are base64 and spaces");
            headers.insert(SIGNATURE_HEADER, signature);
        }
        Ok(())
    }

    /// Reads a bounded rest of the body, so that the connection can be used again. The outcome stands already.
    async fn drain(&self, mut response: Response, end: Instant) {
        if self.fresh {
            return;
        }
        let limit = self.settings.response_limit;
        let end = end.min(Instant::now() + DRAIN_TIME);
        let read = async {
            let mut seen = 0_u64;
            while let Ok(Some(chunk)) = response.chunk().await {
                seen += chunk.len() as u64;
                if seen > limit {
                    break;
                }
            }
        };
        // What is not read in time is left: the connection is closed instead of kept.
        let _unread = tokio::time::timeout_at(end, read).await;
    }
}

fn secret_value(reference: &SecretRef, secret: &[u8]) -> Result<HeaderValue, SecretError> {
    let fits = secret.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
    let mut value = HeaderValue::from_bytes(secret)
        .ok()
        .filter(|_| fits)
        .ok_or_else(|| reference.error("can't be a header value: it must be visible ASCII"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn request_invalid(text: &str) -> Failure {
    transport(TransportKind::RequestInvalid, Phase::NotSent, text)
}

fn credential_unavailable(error: &SecretError) -> Failure {
    transport(TransportKind::CredentialUnavailable, Phase::NotSent, error.to_string())
}
