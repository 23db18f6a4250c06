//! The audit event of an operator's act. Every act and its event are one transaction (I-12).

use std::collections::BTreeMap;

use crate::{AuditId, TenantId, text::ActText};

/// How far the name of an actor is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthenticationStrength {
    /// The process said so (CLI on the database): `local:<os user>`.
    Asserted,
    /// A server authenticated it.
    Authenticated,
}

impl AuthenticationStrength {
    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asserted => "asserted",
            Self::Authenticated => "authenticated",
        }
    }
}

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// For example `local:alice`.
    pub name: String,
    /// How far that is proven.
    pub strength: AuthenticationStrength,
}

/// One act by a person. Times are stamped by the store; never holds payload bytes, secrets or raw provider text (I-13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Its id.
    pub id: AuditId,
    /// Tenant that it concerns.
    pub tenant: TenantId,
    /// Who.
    pub actor: Actor,
    /// Act, for example `destination.hold`.
    pub act: &'static str,
    /// What it was done to: ids or names.
    pub target: String,
    /// Why; required for releases.
    pub reason: Option<ActText>,
    /// Further facts, bounded and without content.
    pub detail: BTreeMap<&'static str, String>,
}
