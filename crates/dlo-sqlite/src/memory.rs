//! What this connection claimed and nobody has settled yet: where the rows are, so that a delivery need not look for them.
//!
//! A memory alone, never a fence: the statement that uses it still names the claim token, and a row that is not as it is
//! remembered is judged as if nothing was.

use std::collections::{BTreeMap, VecDeque};

use dlo_core::{DestinationName, EntryId, EntryKey, Generation, TenantId, Token};

use crate::fence::Held;

/// Most pages that are remembered; the oldest goes first. Enough for every destination that one engine has in flight.
const PAGES: usize = 64;

/// Pages that were claimed.
#[derive(Default)]
pub(crate) struct ClaimMemory(VecDeque<Page>);

/// A page that is being claimed.
pub(crate) struct Page {
    token: Token,
    tenant: TenantId,
    destination: DestinationName,
    entries: BTreeMap<EntryId, (Generation, Held)>,
}

impl Page {
    pub(crate) fn new(token: Token, tenant: TenantId, destination: DestinationName) -> Self {
        Self { token, tenant, destination, entries: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, key: &EntryKey, held: Held) {
        self.entries.insert(key.entry, (key.generation, held));
    }
}

impl ClaimMemory {
    /// Remembers a page.
    pub(crate) fn remember(&mut self, page: Page) {
        if self.0.len() == PAGES {
            self.0.pop_front();
        }
        self.0.push_back(page);
    }

    /// Takes an entry out, if it was claimed here under that token and goes there.
    pub(crate) fn take(&mut self, token: Token, key: &EntryKey, destination: &DestinationName) -> Option<Held> {
        let at = self.0.iter().position(|page| page.token == token)?;
        let page = &mut self.0[at];
        if page.tenant != key.tenant || page.destination != *destination {
            return None;
        }
        let (generation, held) = page.entries.remove(&key.entry)?;
        if page.entries.is_empty() {
            self.0.remove(at);
        }
        (generation == key.generation).then_some(held)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn key(entry: u8) -> EntryKey {
        EntryKey { tenant: TenantId::default_tenant(), entry: EntryId::from_bytes([entry; 16]), generation: 0 }
    }

    fn page(token: u8, entries: &[u8]) -> Page {
        let token = Token::from_bytes([token; 16]);
        let mut page = Page::new(token, TenantId::default_tenant(), "orders".parse().unwrap());
        for entry in entries {
            let seq = i64::from(*entry);
            let held = Held { seq, envelope_ref: seq, claim: None, send_mark: false, manual_review: false, failed: 0 };
            page.add(&key(*entry), held);
        }
        page
    }

    #[test]
    fn an_entry_is_found_once_under_its_own_token_tenant_destination_and_generation() {
        let orders: DestinationName = "orders".parse().unwrap();
        let (own, other) = (Token::from_bytes([1; 16]), Token::from_bytes([2; 16]));
        let mut memory = ClaimMemory::default();
        memory.remember(page(1, &[7, 8, 9]));
        assert!(memory.take(other, &key(7), &orders).is_none());
        assert!(memory.take(own, &key(7), &"billing".parse().unwrap()).is_none());
        assert!(memory.take(own, &EntryKey { tenant: "acme".parse().unwrap(), ..key(7) }, &orders).is_none());
        assert_eq!(memory.take(own, &key(7), &orders).unwrap().seq, 7);
        assert!(memory.take(own, &key(7), &orders).is_none());
        assert!(memory.take(own, &EntryKey { generation: 1, ..key(8) }, &orders).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut memory = ClaimMemory::default();
        for token in 0..=PAGES as u8 {
            memory.remember(page(token, &[1]));
        }
        assert_eq!(memory.0.len(), PAGES);
        let orders = "orders".parse().unwrap();
        assert!(memory.take(Token::from_bytes([0; 16]), &key(1), &orders).is_none());
        assert!(memory.take(Token::from_bytes([PAGES as u8; 16]), &key(1), &orders).is_some());
        assert_eq!(memory.0.len(), PAGES - 1);
    }
}
