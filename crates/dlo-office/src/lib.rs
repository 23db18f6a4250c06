//! The office: the only place where an operator's act happens.
//!
//! **What it is for.** Every act takes the same way: permission ([`authority`]) → checks → change and audit event in
//! one transaction of the store (I-12). The CLI and the facade call it, and so does whatever comes later.
//!
//! **What it must never do.** No act without an audit event; no payload byte, secret or provider text in one (I-13); no
//! operator authority for a producer or a worker by default (I-17); no SQL, no clock or randomness of its own, and
//! nothing of the engine.
//!
//! ```
//! use dlo_core::TenantId;
//! use dlo_office::{Authority, Grants};
//!
//! let tenant = TenantId::default_tenant();
//! assert!(Grants::operator().allow(Authority::Execute, &tenant, None));
//! assert!(!Grants::worker().allow(Authority::Execute, &tenant, None));
//! ```

pub mod acts;
pub mod authority;
mod destinations;
mod entries;
mod error;
mod office;
mod redrive;

pub use authority::{Authority, Grant, Grants, Scope};
pub use destinations::{ApplyReport, SettingsCheck, advice};
pub use error::OfficeError;
pub use office::{Office, local_actor};
