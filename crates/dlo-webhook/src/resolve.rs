//! Name resolution: what is checked is what is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dlo_ports::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::AddressRules;

/// Finds the addresses of a host name.
///
/// The answer is checked against the deny-list and then pinned: the connection goes to one of the addresses that
/// were checked, and the name is not looked up a second time.
pub trait Resolver: Send + Sync {
    /// Addresses of `host`, best first.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// Why a name gave no address to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    /// The look-up failed or gave nothing.
    #[error("name resolution failed")]
    Failed,
    /// It gave addresses, and all of them are denied.
    #[error("every address of the host is in a denied range")]
    Denied,
}

/// The only resolver that the connector knows.
pub(crate) struct Checked {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) rules: Arc<AddressRules>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, rules) = (Arc::clone(&self.resolver), Arc::clone(&self.rules));
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await.map_err(|_| ResolveError::Failed)?;
            if found.is_empty() {
                return Err(ResolveError::Failed.into());
            }
            // Port 0 means "the port of the URL" to the connector.
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| rules.check(*address).is_ok())
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(ResolveError::Denied.into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
}
