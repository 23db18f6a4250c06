//! A batch of items as it comes to the writer, with everything that can be worked out without the database: done by its
//! caller, so that the writer has less to do.

use std::borrow::Cow;

use dlo_core::{EnqueueKey, NewEntry, envelope::EnvelopeError};
use dlo_ports::persisted;

/// Items and their facts.
pub(crate) struct Batch<'i> {
    pub(crate) items: Cow<'i, [NewEntry]>,
    /// One for each item.
    pub(crate) facts: Vec<Facts>,
    /// Whether no enqueue key occurs twice.
    pub(crate) distinct: bool,
}

/// What can be worked out of an item alone.
pub(crate) struct Facts {
    pub(crate) problem: Option<EnvelopeError>,
    pub(crate) key: EnqueueKey,
    pub(crate) content_hash: [u8; 32],
    pub(crate) meta: String,
    pub(crate) payload_sha256: Option<[u8; 32]>,
}

impl<'i> Batch<'i> {
    pub(crate) fn new(items: impl Into<Cow<'i, [NewEntry]>>) -> Self {
        let items = items.into();
        let facts: Vec<Facts> = items.iter().map(Facts::of).collect();
        let mut keys: Vec<_> =
            items.iter().zip(&facts).map(|(item, facts)| (&item.envelope.tenant, &item.producer, &facts.key)).collect();
        keys.sort_unstable();
        let distinct = keys.windows(2).all(|pair| pair[0] != pair[1]);
        Self { items, facts, distinct }
    }

    /// Items with their facts, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NewEntry, &Facts)> {
        self.items.iter().zip(&self.facts)
    }
}

impl Facts {
    fn of(item: &NewEntry) -> Self {
        let envelope = &item.envelope;
        Self {
            problem: envelope.validate().err(),
            key: item.enqueue_key.clone().unwrap_or_else(|| envelope.default_enqueue_key()),
            content_hash: envelope.content_hash(),
            meta: persisted::encode_envelope_meta(envelope),
            payload_sha256: envelope.payload.sha256(),
        }
    }
}
