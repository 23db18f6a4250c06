//! The event with which a destination is tried out.

use bytes::Bytes;
use dlo_core::{Envelope, EnvelopeId, Payload, PayloadForm, TenantId, Timestamp};

/// Event type of a ping.
pub const PING_TYPE: &str = "dlo.ping";

/// The envelope that `dlo destinations test` sends: no data of anybody, signed like any other.
///
/// A receiver should answer 2xx and do nothing.
pub fn ping(id: EnvelopeId, tenant: TenantId, now: Timestamp) -> Envelope {
    let payload = Payload::Bytes { bytes: Bytes::from_static(br#"{"ping":true}"#), form: PayloadForm::Json };
    let mut envelope = Envelope::new(id, tenant, PING_TYPE, payload);
    envelope.content_type = Some("application/json".to_owned());
    envelope.occurred = Some(now);
    envelope
}
