//! Domain, policies and state machines of Dead Letter Office.
//!
//! **What it is for.** Every decision of the product is made here and nowhere else: what an outcome means
//! ([`classify`]), what happens to the entry ([`decide`](decide::decide)), what happens to its destination
//! ([`observe`](observe::observe)), when the next try is due ([`schedule`]).
//!
//! **What it must never do.** No async, no IO, no clock, no randomness, no floats, no hash-map order in state: time
//! and jitter are arguments, so that the same inputs give the same transition on every store and in every simulator.
//!
//! ```
//! use dlo_core::{DestinationName, TenantId, Timestamp};
//!
//! let tenant: TenantId = "default".parse()?;
//! let destination: DestinationName = "billing".parse()?;
//! let at: Timestamp = "2026-11-30T12:00:00Z".parse()?;
//! assert_eq!(at.to_string(), "2026-11-30T12:00:00.000000Z");
//! assert_eq!(format!("{tenant}/{destination}"), "default/billing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod claim;
pub mod classify;
pub mod dead_letter;
pub mod decide;
pub mod destination;
pub mod entry;
pub mod envelope;
pub mod fingerprint;
pub mod health;
pub mod id;
pub mod invariant;
pub mod limits;
pub mod observe;
pub mod outcome;
pub mod pace;
pub mod policy;
pub mod reason;
pub mod route;
pub mod schedule;
pub mod text;
pub mod time;

pub use audit::{Actor, AuditEvent, AuthenticationStrength};
pub use claim::{ClaimRef, Fence, TransitionResult};
pub use dead_letter::{DeadLetter, DeadLetterDraft, DeadLetterState};
pub use destination::{Destination, DestinationSpec, Duplicates};
pub use entry::{Attempt, Counters, Entry, EntryKey, EntryState, Generation, Lane, Status};
pub use envelope::{Envelope, NewEntry, Payload, PayloadForm, TraceContext};
pub use health::{Health, Hold, HoldCause};
pub use id::{
    AuditId, DeadLetterId, DestinationName, EnqueueKey, EntryId, EnvelopeId, Incarnation, OperationKey, ProducerId,
    RedriveId, TenantId, Token, WorkerId,
};
pub use outcome::{Failure, Observed, Outcome, Phase, Receipt, TransportKind};
pub use policy::{DeliveryPolicy, EngineOptions, OptionError};
pub use reason::{Class, Reason};
pub use time::Timestamp;
