//! Every entry of the demo with the id of its event.

use std::collections::BTreeMap;

use dlo::Outbox;
use dlo_core::{DeadLetterId, Reason, limits::MAX_PAGE};
use dlo_ports::store::{DeadLetterFilter, EntryFilter, EntryView, PageRequest};

use crate::failure::Result;

/// One entry.
pub(crate) struct Member {
    /// CloudEvents id of its event.
    pub(crate) event: String,
    /// All that the store knows of it.
    pub(crate) view: EntryView,
}

/// All of them, by event id, and why dead letters were opened.
pub(crate) struct Cast {
    members: Vec<Member>,
    codes: BTreeMap<DeadLetterId, Reason>,
}

impl Cast {
    /// Reads them from the store.
    pub(crate) async fn read(outbox: &Outbox) -> Result<Self> {
        let reader = outbox.reader();
        let page = reader.entries(EntryFilter::default(), PageRequest { after: None, limit: MAX_PAGE }).await?;
        let mut members = Vec::with_capacity(page.rows.len());
        for row in &page.rows {
            let Some(view) = reader.entry(row.key.tenant.clone(), row.key.entry).await? else { continue };
            let event = view.envelope.as_ref().and_then(|envelope| envelope.source_event_id.clone());
            members.push(Member { event: event.unwrap_or_else(|| row.key.entry.to_string()), view });
        }
        members.sort_by(|one, other| one.event.cmp(&other.event));
        let letters =
            reader.dead_letters(DeadLetterFilter::default(), PageRequest { after: None, limit: MAX_PAGE }).await?;
        let codes = letters.rows.into_iter().map(|letter| (letter.id, letter.code)).collect();
        Ok(Self { members, codes })
    }

    /// By event id.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The one of an event.
    pub(crate) fn of(&self, event: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.event == event)
    }

    /// Why a dead letter was opened.
    pub(crate) fn code(&self, id: DeadLetterId) -> Option<&str> {
        self.codes.get(&id).map(Reason::as_str)
    }
}
