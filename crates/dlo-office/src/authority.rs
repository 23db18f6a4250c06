//! Who may do what: authorities, each within a scope. Deny by default.

use dlo_core::{DestinationName, TenantId};

/// What one may do (design, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// Enqueue.
    Produce,
    /// Emit, or pull.
    Consume,
    /// See everything but protected content.
    ViewMetadata,
    /// See protected content.
    Reveal,
    /// Hold destinations, move entries from manual review into quarantine.
    Triage,
    /// Make plans.
    Plan,
    /// Approve what another has planned.
    Approve,
    /// Grant an exception to a gate.
    Waive,
    /// Release: end holds, probe, retry now, redrive.
    Execute,
    /// Change the bytes of what is released.
    Edit,
    /// End something without delivery: cancel, dispose.
    Dispose,
    /// Create and change destinations.
    Administer,
    /// Read the audit events.
    Audit,
}

impl Authority {
    /// All authorities.
    pub const ALL: [Self; 13] = [
        Self::Produce,
        Self::Consume,
        Self::ViewMetadata,
        Self::Reveal,
        Self::Triage,
        Self::Plan,
        Self::Approve,
        Self::Waive,
        Self::Execute,
        Self::Edit,
        Self::Dispose,
        Self::Administer,
        Self::Audit,
    ];

    /// Stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Produce => "produce",
            Self::Consume => "consume",
            Self::ViewMetadata => "view_metadata",
            Self::Reveal => "reveal",
            Self::Triage => "triage",
            Self::Plan => "plan",
            Self::Approve => "approve",
            Self::Waive => "waive",
            Self::Execute => "execute",
            Self::Edit => "edit",
            Self::Dispose => "dispose",
            Self::Administer => "administer",
            Self::Audit => "audit",
        }
    }
}

/// Where an authority holds. `None` means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// One tenant, or all.
    pub tenant: Option<TenantId>,
    /// One destination of that tenant, or all.
    pub destination: Option<DestinationName>,
}

/// One authority within one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What.
    pub authority: Authority,
    /// Where.
    pub scope: Scope,
}

/// All that an identity may do. Empty = nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// These grants and no others.
    pub fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    /// Whoever can open the database file may do everything in it; the audit event says that the name is *asserted*.
    pub fn operator() -> Self {
        Self(Authority::ALL.into_iter().map(|authority| Grant { authority, scope: Scope::default() }).collect())
    }

    /// A producer of one tenant: it may enqueue, and nothing else (I-17).
    pub fn producer(tenant: TenantId) -> Self {
        Self(vec![Grant { authority: Authority::Produce, scope: Scope { tenant: Some(tenant), destination: None } }])
    }

    /// A worker: it may emit, and nothing else (I-17).
    pub fn worker() -> Self {
        Self(vec![Grant { authority: Authority::Consume, scope: Scope::default() }])
    }

    /// Whether the authority holds for the destination, or (`None`) for every destination of the tenant.
    pub fn allow(&self, authority: Authority, tenant: &TenantId, destination: Option<&DestinationName>) -> bool {
        self.0.iter().any(|grant| {
            grant.authority == authority
                && grant.scope.tenant.as_ref().is_none_or(|granted| granted == tenant)
                && grant.scope.destination.as_ref().is_none_or(|granted| destination == Some(granted))
        })
    }

    /// Whether the authority holds for at least one destination of the tenant.
    pub fn allow_some(&self, authority: Authority, tenant: &TenantId) -> bool {
        self.0.iter().any(|grant| {
            grant.authority == authority && grant.scope.tenant.as_ref().is_none_or(|granted| granted == tenant)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).expect("valid")
    }

    fn destination(name: &str) -> DestinationName {
        DestinationName::new(name).expect("valid")
    }

    #[test]
    fn workers_and_producers_hold_no_operator_authority() {
        for authority in Authority::ALL {
            let producer = Grants::producer(tenant("a"));
            assert_eq!(producer.allow(authority, &tenant("a"), None), authority == Authority::Produce);
            assert!(!producer.allow_some(authority, &tenant("b")), "{authority:?} in a tenant that is not its own");
            assert_eq!(Grants::worker().allow(authority, &tenant("a"), None), authority == Authority::Consume);
            assert!(Grants::operator().allow(authority, &tenant("a"), None));
            assert!(!Grants::default().allow_some(authority, &tenant("a")), "nothing is granted by default");
        }
    }

    #[test]
    fn a_grant_holds_within_its_scope_only() {
        let scope = Scope { tenant: Some(tenant("a")), destination: Some(destination("billing")) };
        let grants = Grants::new(vec![Grant { authority: Authority::Execute, scope }]);
        assert!(grants.allow(Authority::Execute, &tenant("a"), Some(&destination("billing"))));
        assert!(grants.allow_some(Authority::Execute, &tenant("a")));
        assert!(!grants.allow(Authority::Execute, &tenant("a"), Some(&destination("mail"))));
        assert!(!grants.allow(Authority::Execute, &tenant("a"), None), "one destination is not the whole tenant");
        assert!(!grants.allow(Authority::Execute, &tenant("b"), Some(&destination("billing"))));
        assert!(!grants.allow(Authority::Administer, &tenant("a"), Some(&destination("billing"))));
    }
}
