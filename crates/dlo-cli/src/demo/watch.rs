//! Tells what happens while it happens, and mends what has been broken for long enough.

use core::time::Duration;
use std::collections::BTreeMap;

use dlo_core::{EntryId, EntryState, Health, Timestamp, limits::MAX_PAGE};
use dlo_ports::store::{EntryFilter, EntrySummary, PageRequest};

use super::cast::Cast;
use super::script::Fault;
use super::stage::Stage;
use super::{LIMIT, because};
use crate::exit::Exit;
use crate::failure::{Failure, Result, code};
use crate::output::note;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// What was last told of an entry.
#[derive(Clone, PartialEq, Eq)]
struct Told {
    generation: u32,
    state: EntryState,
    attempts: u32,
}

/// See the module.
pub(crate) struct Watch<'a> {
    stage: &'a Stage,
    events: BTreeMap<EntryId, String>,
    started: Timestamp,
    told: BTreeMap<EntryId, Told>,
    held: BTreeMap<String, bool>,
}

impl<'a> Watch<'a> {
    /// Begins to watch.
    pub(crate) async fn start(stage: &'a Stage) -> Result<Self> {
        let cast = Cast::read(&stage.outbox).await?;
        let events =
            cast.members().iter().map(|member| (member.view.summary.key.entry, member.event.clone())).collect();
        Ok(Self { stage, events, started: stage.env.now(), told: BTreeMap::new(), held: BTreeMap::new() })
    }

    /// Looks until no entry lives.
    pub(crate) async fn until_all_ended(&mut self) -> Result {
        loop {
            let rows = self.look().await?;
            if rows.iter().all(|row| row.state.is_terminal()) {
                return Ok(());
            }
            if self.stage.env.now().since(self.started) > LIMIT {
                let live: Vec<&str> =
                    rows.iter().filter(|row| !row.state.is_terminal()).map(|row| self.event(row)).collect();
                let message = format!("after {} s these have not ended: {}", LIMIT.as_secs(), live.join(", "));
                return Err(Failure::new(Exit::CheckFailed, code::CHECK_FAILED, message));
            }
            self.stage.env.sleep(LOOK).await;
        }
    }

    async fn look(&mut self) -> Result<Vec<EntrySummary>> {
        let reader = self.stage.outbox.reader();
        for view in reader.destinations(None, None, MAX_PAGE).await? {
            self.tell_hold(view.destination.spec.name.as_str(), &view.health);
        }
        let rows = reader.entries(EntryFilter::default(), PageRequest { after: None, limit: MAX_PAGE }).await?.rows;
        for row in rows.iter().rev() {
            self.tell_entry(row);
        }
        Ok(rows)
    }

    fn event(&self, row: &EntrySummary) -> &str {
        self.events.get(&row.key.entry).map_or("?", String::as_str)
    }

    fn say(&self, who: &str, what: &str) {
        let at = self.stage.env.now().since(self.started);
        note(format!("{:>3}.{} s  {who:<19} {what}", at.as_secs(), at.subsec_millis() / 100));
    }

    fn tell_entry(&mut self, row: &EntrySummary) {
        let now = Told { generation: row.key.generation, state: row.state, attempts: row.attempts };
        let before = self.told.insert(row.key.entry, now.clone());
        let news = before.as_ref().is_none_or(|before| before.attempts != now.attempts || before.state != now.state);
        if !news {
            return;
        }
        let failure = row.last_failure.as_ref();
        let why = failure.map(|(class, reason)| format!("{reason} ({}: {})", class.as_str(), because(*class)));
        let why = why.unwrap_or_default();
        match row.state {
            EntryState::Delivered if row.attempts > 0 => {
                self.say(self.event(row), &format!("delivered at try {}", row.attempts));
            }
            EntryState::Delivered => self.say(self.event(row), "delivered"),
            EntryState::DeadLettered => self.say(self.event(row), &format!("into quarantine: {why}")),
            EntryState::Waiting if row.attempts > before.map_or(0, |before| before.attempts) => {
                self.say(self.event(row), &format!("waits: {why}"));
            }
            _ => {}
        }
    }

    fn tell_hold(&mut self, destination: &str, health: &Health) {
        let was_held = self.held.insert(destination.to_owned(), health.is_held()).unwrap_or(false);
        match &health.hold {
            Some(hold) if !was_held => {
                self.say(destination, &format!("HELD by {}: {}", hold.cause.as_str(), hold.reason));
            }
            None if was_held => self.say(destination, "a probe was accepted: the hold is over"),
            _ => {}
        }
        // One failed probe shows that a hold does not end by time alone.
        if health.hold.as_ref().is_some_and(|hold| hold.failed_probes >= 1) {
            let fault = match destination {
                "mails" => Fault::MailCredentials,
                "warehouse" => Fault::WarehouseDown,
                _ => return,
            };
            if self.stage.receiver.mend(fault) {
                self.say(destination, "(the receiver has been mended)");
            }
        }
    }
}
