//! Lists of entries.

use std::collections::BTreeMap;

use dlo_core::{Class, DestinationName, EntryId, EntryKey, EntryState, Status, TenantId, Timestamp};
use dlo_ports::{
    StoreError,
    store::{EntryFilter, EntrySummary, Page, PageRequest},
};
use rusqlite::{Connection, Row, params};

use super::{
    attempts::last_failure_of,
    dead_letters::reason,
    destinations::is_held,
    envelopes::EventNames,
    scan::{Filling, NotShown, Scan, before, takes},
};
use crate::{
    error::Doing,
    rows::{Unreadable, bytes16, flag, number, optional_integer, optional_text, parsed, text, time},
};

/// Entries by their latest generation, newest first.
pub(crate) fn entries(
    conn: &Connection,
    now: Timestamp,
    filter: &EntryFilter,
    request: PageRequest,
) -> Result<Page<EntrySummary>, StoreError> {
    let mut page = Filling::new(request)?;
    let mut holds = Holds { conn, known: BTreeMap::new() };
    let places = Places::of(filter.state);
    let mut statement = conn.prepare_cached(include_str!("../sql/read/entries.sql")).doing("list entries")?;
    let mut rows = statement
        .query(params![before(request), places.live, places.history, places.quarantine])
        .doing("list entries")?;
    while let Some(row) = rows.next().doing("list entries")? {
        let take = || take(conn, now, filter, row, &mut holds);
        if page.look(number(row, 0, "seq")?, take)? == Scan::Stop {
            break;
        }
    }
    Ok(page.finish())
}

/// Where rows of a state can be: the other tables are not looked at.
struct Places {
    live: bool,
    history: bool,
    quarantine: bool,
}

impl Places {
    fn of(state: Option<EntryState>) -> Self {
        match state {
            None => Self { live: true, history: true, quarantine: true },
            Some(EntryState::Delivered | EntryState::Cancelled) => {
                Self { live: false, history: true, quarantine: false }
            }
            Some(EntryState::DeadLettered) => Self { live: false, history: false, quarantine: true },
            Some(_) => Self { live: true, history: false, quarantine: false },
        }
    }
}

fn take(
    conn: &Connection,
    now: Timestamp,
    filter: &EntryFilter,
    row: &Row<'_>,
    holds: &mut Holds<'_>,
) -> Result<Option<EntrySummary>, NotShown> {
    let wanted = takes(filter.tenant.as_ref().map(TenantId::as_str), text(row, 1, "tenant")?)
        && takes(filter.destination.as_ref().map(DestinationName::as_str), text(row, 4, "destination")?);
    if !wanted {
        return Ok(None);
    }
    let state = state(row, now)?;
    if filter.state.is_some_and(|wanted| wanted != state) {
        return Ok(None);
    }
    let event = event_names(conn, row)?;
    if !takes_event(filter, &event) {
        return Ok(None);
    }
    let mut summary = summary(row, state, event)?;
    if matches!(state, EntryState::Delivered | EntryState::Cancelled) && summary.attempts > 0 {
        let (tenant, entry) = (summary.key.tenant.as_str(), summary.key.entry.as_bytes());
        let last = last_failure_of(conn, tenant, entry, summary.key.generation)?;
        summary.last_failure = last.map(|last| (last.class, last.reason));
    }
    summary.held = state == EntryState::Ready && holds.held(&summary.key.tenant, &summary.destination)?;
    Ok(Some(summary))
}

/// What history keeps, or what the envelope says.
fn event_names(conn: &Connection, row: &Row<'_>) -> Result<EventNames, NotShown> {
    match optional_integer(row, 14, "envelope_ref")? {
        Some(envelope_ref) => Ok(EventNames::of_envelope(conn, text(row, 1, "tenant")?, envelope_ref)?),
        None => Ok(EventNames::of_row(row, 15)),
    }
}

fn takes_event(filter: &EntryFilter, event: &EventNames) -> bool {
    (filter.event_type.is_none() || filter.event_type == event.event_type)
        && (filter.source_event_id.is_none() || filter.source_event_id == event.source_event_id)
}

fn state(row: &Row<'_>, now: Timestamp) -> Result<EntryState, Unreadable> {
    match text(row, 5, "state")? {
        "live" if flag(row, 10, "claim_token")? => Ok(EntryState::Claimed),
        "live" if flag(row, 9, "manual_review")? => Ok(EntryState::ManualReview),
        "live" if time(row, 7, "due")? <= now => Ok(EntryState::Ready),
        "live" => Ok(EntryState::Waiting),
        ended => ended_state(ended),
    }
}

/// State of a row that has ended.
pub(super) fn ended_state(name: &str) -> Result<EntryState, Unreadable> {
    EntryState::ALL
        .into_iter()
        .filter(|state| state.is_terminal())
        .find(|state| state.as_str() == name)
        .ok_or(Unreadable("state"))
}

fn summary(row: &Row<'_>, state: EntryState, event: EventNames) -> Result<EntrySummary, Unreadable> {
    let last_failure = match optional_text(row, 12, "last_class")? {
        None => None,
        Some(class) => {
            let class = class.parse::<Class>().map_err(|_| Unreadable("last_class"))?;
            Some((class, reason(row, 13, "last_reason")?))
        }
    };
    let status = match status_of_ended(state) {
        Some(status) => status,
        None => Some(live_status(text(row, 8, "status")?)?),
    };
    Ok(EntrySummary {
        key: EntryKey {
            tenant: parsed(row, 1, "tenant")?,
            entry: EntryId::from_bytes(bytes16(row, 2, "entry")?),
            generation: number(row, 3, "generation")?,
        },
        seq: number(row, 0, "seq")?,
        destination: parsed(row, 4, "destination")?,
        state,
        held: false,
        status,
        created: time(row, 6, "created")?,
        due: if state == EntryState::Waiting { Some(time(row, 7, "due")?) } else { None },
        attempts: number(row, 11, "attempts")?,
        last_failure,
        event_type: event.event_type,
        source_event_id: event.source_event_id,
    })
}

/// The status that an ended state stands for (S-03): cancelled has none. `None` for live states.
#[expect(clippy::option_option, reason = "outer: whether the state has ended; inner: whether S-03 has a status for it")]
pub(super) fn status_of_ended(state: EntryState) -> Option<Option<Status>> {
    match state {
        EntryState::Delivered => Some(Some(Status::Delivered)),
        EntryState::DeadLettered => Some(Some(Status::DeadLettered)),
        EntryState::Cancelled => Some(None),
        _ => None,
    }
}

fn live_status(name: &str) -> Result<Status, Unreadable> {
    Status::ALL.into_iter().find(|status| status.as_str() == name).ok_or(Unreadable("status"))
}

/// Which destinations are held, looked up once each.
struct Holds<'a> {
    conn: &'a Connection,
    known: BTreeMap<(TenantId, DestinationName), bool>,
}

impl Holds<'_> {
    fn held(&mut self, tenant: &TenantId, destination: &DestinationName) -> Result<bool, StoreError> {
        let key = (tenant.clone(), destination.clone());
        if let Some(held) = self.known.get(&key) {
            return Ok(*held);
        }
        let held = is_held(self.conn, tenant, destination)?;
        self.known.insert(key, held);
        Ok(held)
    }
}
