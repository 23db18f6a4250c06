//! Reads CloudEvents 1.0 in structured mode, one JSON object a line.
//!
//! # Attributes and the envelope
//!
//! | CloudEvents attribute | envelope | |
//! | --- | --- | --- |
//! | `specversion` | – | required, `1.0` |
//! | `id`, `source`, `type` | source event id, source, event type | required, not empty; source and id together are the enqueue key |
//! | `subject` | subject | |
//! | `time` | occurred time | RFC 3339 |
//! | `datacontenttype` | content type | left out, `data` is JSON |
//! | `dataschema`, `schemaversion` | schema, schema version | |
//! | `data` | payload | JSON by its content type: the bytes as they stand in the line. Else a JSON text is its text, and anything else its bytes as they stand |
//! | `data_base64` | payload | decoded; not together with `data` |
//! | `dlodatakind`, `dlodatahash`, `dlodatasize` | payload descriptor | only without data |
//! | `traceparent`, `tracestate` | trace context | |
//! | `correlationid` | correlation id | |
//! | `auditresidueid` | audit residue id | |
//! | `principal`, `region`, `workload` | principal, region, workload | emitters may keep them to themselves |
//! | `policyversion`, `policyhash` | policy version, policy hash | the same |
//! | `orderingkey`, else `partitionkey` | ordering key | `partitionkey` stays a header too |
//! | `sequencehint` | sequence hint | whole number |
//! | `expirytime` | `deliver_by`, if it is the earlier one | RFC 3339; stays a header too |
//! | `tenant` | tenant | see [`Intake::tenant_from_event`] |
//! | `dloagent…` | agent context, under the rest of the name | emitters may keep it to themselves |
//! | any other | header of that name | texts, whole numbers, `true` and `false`, kept as text |
//!
//! An attribute that is `null` counts as left out. Names are `a`–`z` and `0`–`9`; a name that comes twice is an error.
//! Errors name the attribute and the rule, never what stands in it (I-13).

mod data;
mod error;
mod members;

use dlo_core::{
    DestinationName, Envelope, EnvelopeId, NewEntry, Payload, ProducerId, TenantId, Timestamp, TraceContext, limits,
};
use dlo_ports::Env;

pub use error::EventError;
use members::Members;

/// Longest line, in bytes (24 MiB): the largest payload as base64, and room for attributes.
pub const MAX_LINE_BYTES: usize = limits::MAX_PAYLOAD_BYTES / 2 * 3;

/// What every event of an input has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Tenant of events that name none.
    pub tenant: TenantId,
    /// Whether an event's own `tenant` counts. If not, an event that names another tenant is an error.
    pub tenant_from_event: bool,
    /// Who enqueues.
    pub producer: ProducerId,
    /// Explicit destinations; empty means by the event-type rules.
    pub destinations: Vec<DestinationName>,
    /// Not tried before this time.
    pub not_before: Option<Timestamp>,
    /// Dead-lettered if not delivered by this time; an event's own `expirytime` counts if it is earlier.
    pub deliver_by: Option<Timestamp>,
}

impl Intake {
    /// Events of one tenant and producer `default`, routed by event type.
    pub fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            tenant_from_event: false,
            producer: ProducerId::default_producer(),
            destinations: Vec::new(),
            not_before: None,
            deliver_by: None,
        }
    }
}

/// Reads one line; a line end at its end is allowed. The environment gives time and randomness for the envelope's id.
pub fn parse_line(line: &[u8], intake: &Intake, env: &dyn Env) -> Result<NewEntry, EventError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(EventError::TooLong { seen: line.len(), limit: MAX_LINE_BYTES });
    }
    let text = core::str::from_utf8(line).map_err(|error| EventError::NotUtf8 { at: error.valid_up_to() + 1 })?;
    let mut members = Members::read(text)?;
    match members.text("specversion")?.as_deref() {
        Some("1.0") => {}
        Some(_) => return Err(EventError::invalid("specversion", "must be `1.0`")),
        None => return Err(EventError::Missing { attribute: "specversion" }),
    }
    let mut random = [0; 10];
    env.random(&mut random);
    let id = EnvelopeId::new(env.now(), random);
    let event_type = members.required("type")?;
    let mut envelope = Envelope::new(id, tenant(&mut members, intake)?, event_type, Payload::None);
    envelope.source = Some(members.required("source")?);
    envelope.source_event_id = Some(members.required("id")?);
    envelope.subject = members.text("subject")?;
    envelope.occurred = members.time("time")?;
    envelope.content_type = members.text("datacontenttype")?;
    envelope.schema = members.text("dataschema")?;
    envelope.payload = data::payload(&mut members, envelope.content_type.as_deref())?;
    extensions(&mut members, &mut envelope)?;
    let expires = members.time("expirytime")?;
    if let Some(expires) = expires {
        envelope.headers.insert("expirytime".to_owned(), expires.to_string());
    }
    members.rest(&mut envelope)?;
    envelope.validate()?;
    Ok(NewEntry {
        envelope,
        producer: intake.producer.clone(),
        destinations: intake.destinations.clone(),
        enqueue_key: None,
        operation_key: None,
        not_before: intake.not_before,
        deliver_by: [intake.deliver_by, expires].into_iter().flatten().min(),
        origin: None,
    })
}

fn tenant(members: &mut Members<'_>, intake: &Intake) -> Result<TenantId, EventError> {
    let Some(named) = members.text("tenant")? else { return Ok(intake.tenant.clone()) };
    let tenant = TenantId::new(&named)
        .map_err(|_| EventError::invalid("tenant", "must be 1 to 64 bytes of a-z, 0-9, `.`, `_`, `-`"))?;
    if intake.tenant_from_event || tenant == intake.tenant {
        Ok(tenant)
    } else {
        Err(EventError::invalid("tenant", "must be the tenant that this input is for, or left out"))
    }
}

/// Extension attributes that the envelope has a place for.
fn extensions(members: &mut Members<'_>, envelope: &mut Envelope) -> Result<(), EventError> {
    let trace_state = members.value("tracestate")?;
    envelope.trace = members.value("traceparent")?.map(|parent| TraceContext { parent, state: trace_state });
    envelope.correlation_id = members.value("correlationid")?;
    envelope.audit_residue_id = members.value("auditresidueid")?;
    envelope.principal = members.value("principal")?;
    envelope.region = members.value("region")?;
    envelope.workload = members.value("workload")?;
    envelope.policy_version = members.value("policyversion")?;
    envelope.policy_hash = members.value("policyhash")?;
    envelope.schema_version = members.value("schemaversion")?;
    envelope.sequence_hint = members.number("sequencehint")?;
    let partition = members.value("partitionkey")?;
    if let Some(partition) = &partition {
        envelope.headers.insert("partitionkey".to_owned(), partition.clone());
    }
    envelope.ordering_key = members.value("orderingkey")?.or(partition);
    Ok(())
}
