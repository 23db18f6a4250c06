//! Which addresses may be connected to: the guard against server-side request forgery.
//!
//! A destination's address is chosen by whoever configures it, the connection is made from where this process runs.
//! Without a guard that is a way to reach what only this host can reach: a metadata service, an admin port on
//! loopback, a database in the private network.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What a destination may be connected to beyond public addresses. Default: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowPrivate {
    /// Public addresses only.
    #[default]
    No,
    /// Loopback, RFC 1918, shared (100.64/10) and unique local addresses; not link-local, not metadata services.
    Yes,
    /// Exactly these ranges, of any kind but "this host", multicast and broadcast.
    Ranges(Vec<IpNet>),
}

/// The rules for one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressRules {
    /// What is allowed beyond public addresses.
    pub(crate) allow: AllowPrivate,
    /// Plain HTTP that was not allowed off loopback.
    pub(crate) loopback_only: bool,
}

/// Why an address is denied: the name of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied(&'static str);

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What opens a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opens {
    /// `allow_private = true`, or a range that is named.
    WithPrivate,
    /// Only a range that is named.
    ByRange,
    /// Nothing.
    Never,
}

struct Special<Net> {
    net: Net,
    name: &'static str,
    opens: Opens,
}

const fn v4(octets: [u8; 4], prefix: u8, name: &'static str, opens: Opens) -> Special<Ipv4Net> {
    Special { net: Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix), name, opens }
}

const fn v6(segments: [u16; 8], prefix: u8, name: &'static str, opens: Opens) -> Special<Ipv6Net> {
    Special { net: Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), prefix), name, opens }
}

use Opens::{ByRange, Never, WithPrivate};

/// IANA's special-purpose IPv4 ranges and the metadata services outside them; the first that matches counts.
static SPECIAL_V4: [Special<Ipv4Net>; 18] = [
    v4([100, 100, 100, 200], 32, "metadata service", ByRange),
    v4([168, 63, 129, 16], 32, "metadata service", ByRange),
    v4([0, 0, 0, 0], 8, "this host", Never),
    v4([10, 0, 0, 0], 8, "private", WithPrivate),
    v4([100, 64, 0, 0], 10, "shared address space", WithPrivate),
    v4([127, 0, 0, 0], 8, "loopback", WithPrivate),
    v4([169, 254, 0, 0], 16, "link-local", ByRange),
    v4([172, 16, 0, 0], 12, "private", WithPrivate),
    v4([192, 0, 0, 0], 24, "protocol assignments", ByRange),
    v4([192, 0, 2, 0], 24, "documentation", ByRange),
    v4([192, 88, 99, 0], 24, "6to4 relay", ByRange),
    v4([192, 168, 0, 0], 16, "private", WithPrivate),
    v4([198, 18, 0, 0], 15, "benchmarking", ByRange),
    v4([198, 51, 100, 0], 24, "documentation", ByRange),
    v4([203, 0, 113, 0], 24, "documentation", ByRange),
    v4([224, 0, 0, 0], 4, "multicast", Never),
    v4([255, 255, 255, 255], 32, "broadcast", Never),
    v4([240, 0, 0, 0], 4, "reserved", ByRange),
];

/// The same for IPv6. What is not in 2000::/3 and not listed is denied as "not global".
static SPECIAL_V6: [Special<Ipv6Net>; 13] = [
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, "metadata service", ByRange),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "this host", Never),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback", WithPrivate),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-compatible", Never),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local NAT64", ByRange),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 16, "discard", ByRange),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments and Teredo", ByRange),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation", ByRange),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4", ByRange),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation", ByRange),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique local", WithPrivate),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local", ByRange),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast", Never),
];

impl AddressRules {
    /// Whether this address may be connected to.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Denied> {
        let address = address.to_canonical();
        if self.loopback_only && !address.is_loopback() {
            return Err(Denied("plain HTTP off loopback"));
        }
        let named = matches!(&self.allow, AllowPrivate::Ranges(ranges) if ranges.iter().any(|r| r.contains(&address)));
        let judged = match address {
            IpAddr::V4(address) => special_v4(address),
            IpAddr::V6(address) => match embedded_v4(address) {
                // A translator turns it into a connection to the IPv4 address inside it.
                Some(inner) => return self.check(IpAddr::V4(inner)),
                None => special_v6(address),
            },
        };
        match judged {
            None => Ok(()),
            Some((name, Never)) => Err(Denied(name)),
            Some((_, WithPrivate)) if self.allow == AllowPrivate::Yes => Ok(()),
            Some(_) if named => Ok(()),
            Some((name, _)) => Err(Denied(name)),
        }
    }
}

fn special_v4(address: Ipv4Addr) -> Option<(&'static str, Opens)> {
    SPECIAL_V4.iter().find(|special| special.net.contains(&address)).map(|special| (special.name, special.opens))
}

fn special_v6(address: Ipv6Addr) -> Option<(&'static str, Opens)> {
    let listed = SPECIAL_V6.iter().find(|special| special.net.contains(&address));
    let global = address.segments()[0] & 0xe000 == 0x2000;
    match listed {
        Some(special) => Some((special.name, special.opens)),
        None if global => None,
        None => Some(("not global", ByRange)),
    }
}

/// The IPv4 address inside the well-known NAT64 prefix 64:ff9b::/96.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}
