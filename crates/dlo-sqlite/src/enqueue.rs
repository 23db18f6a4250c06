//! Enqueue: save first (I-02). Answers first, rows afterwards, so that sequence numbers have no holes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use dlo_core::{
    DestinationName, EntryId, EnvelopeId, NewEntry, TenantId, Timestamp,
    limits::{MAX_ENQUEUE_BATCH, MAX_FAN_OUT},
    text::Code,
};
use dlo_ports::{
    StoreError, persisted,
    store::{EnqueueAnswer, Refusal},
};
use rusqlite::OptionalExtension;

use crate::{
    batch::{Batch, Facts},
    bulk::{Bulk, repeated},
    error::{Doing, bounded},
    keys::{self, Keys},
    payload, sequence,
    totals::{self, Totals},
    turn::Turn,
};

const DOING: &str = "enqueue";

/// Saves items; one answer each, in order.
pub(crate) fn enqueue(turn: &mut Turn<'_>, batch: &Batch<'_>) -> Result<Vec<EnqueueAnswer>, StoreError> {
    bounded("number of items of one enqueue", batch.items.len(), 0, MAX_ENQUEUE_BATCH)?;
    turn.caches.catalog.refresh(turn.tx)?;
    let mut backlogs = Backlogs::default();
    let mut plans = Vec::with_capacity(batch.items.len());
    let mut count = 0;
    {
        let mut admission = Admission::prepare(turn, &mut backlogs, batch)?;
        for (index, (item, facts)) in batch.iter().enumerate() {
            let plan = admission.judge(index, item, facts)?;
            if let Plan::Save { destinations, .. } = &plan {
                count += destinations.len();
            }
            plans.push(plan);
        }
    }
    let answers = save(turn, batch, plans, count)?;
    backlogs.save_totals(turn)?;
    Ok(answers)
}

/// What is to be done about one item.
enum Plan<'a> {
    Answer(EnqueueAnswer),
    Save { destinations: Cow<'a, [DestinationName]>, due: Timestamp },
}

/// Live entries of the destinations that a batch touches.
#[derive(Default)]
struct Backlogs(BTreeMap<TenantId, BTreeMap<DestinationName, Backlog>>);

struct Backlog {
    live: u64,
    limit: u64,
    added: i64,
}

impl Backlogs {
    fn save_totals(self, turn: &Turn<'_>) -> Result<(), StoreError> {
        for (tenant, destinations) in self.0 {
            for (destination, backlog) in destinations {
                let mut totals = Totals::default();
                totals.add(totals::LIVE, backlog.added);
                totals.add(totals::ENQUEUED, backlog.added);
                totals.save(turn.tx, tenant.as_str(), destination.as_str())?;
            }
        }
        Ok(())
    }
}

/// Judges items in the order that the port states, and takes their enqueue keys.
struct Admission<'t, 'a> {
    turn: &'t mut Turn<'a>,
    backlogs: &'t mut Backlogs,
    keys: Keys<'a>,
    /// Envelopes of earlier items of the batch that were imported: their rows are not written yet.
    imported: BTreeMap<(TenantId, Code, DestinationName), EnvelopeId>,
}

impl<'t, 'a> Admission<'t, 'a> {
    fn prepare(turn: &'t mut Turn<'a>, backlogs: &'t mut Backlogs, batch: &Batch<'_>) -> Result<Self, StoreError> {
        let keys = Keys::prepare(turn, batch)?;
        Ok(Self { turn, backlogs, keys, imported: BTreeMap::new() })
    }

    fn judge<'i>(&mut self, index: usize, item: &'i NewEntry, facts: &Facts) -> Result<Plan<'i>, StoreError> {
        if let Some(problem) = &facts.problem {
            return Ok(refused(problem.clone().into()));
        }
        if item.destinations.len() > MAX_FAN_OUT {
            return Ok(fan_out(item.destinations.len()));
        }
        if let Some(answer) = self.keys.take(self.turn, index, item, facts)? {
            return Ok(Plan::Answer(answer));
        }
        let plan = self.admit(item)?;
        if !matches!(plan, Plan::Save { .. }) {
            keys::give_back(self.turn, item, facts)?;
        }
        Ok(plan)
    }

    fn admit<'i>(&mut self, item: &'i NewEntry) -> Result<Plan<'i>, StoreError> {
        let tenant = &item.envelope.tenant;
        let destinations = if item.destinations.is_empty() {
            let takers = self.turn.caches.catalog.takers(self.turn.tx, tenant, &item.envelope.event_type)?;
            if takers.is_empty() {
                return Ok(refused(Refusal::NoRoute { tenant: tenant.clone() }));
            }
            if takers.len() > MAX_FAN_OUT {
                return Ok(fan_out(takers.len()));
            }
            Cow::Owned(takers)
        } else {
            named(&item.destinations)
        };
        for name in destinations.iter() {
            if !self.load(tenant, name)? {
                let (tenant, destination) = (tenant.clone(), name.clone());
                return Ok(refused(Refusal::UnknownDestination { tenant, destination }));
            }
        }
        let due = item.not_before.map_or(self.turn.now, |not_before| not_before.max(self.turn.now));
        if let Some(deliver_by) = item.deliver_by.filter(|deliver_by| *deliver_by <= due) {
            return Ok(refused(Refusal::DeadlinePassed { deliver_by, earliest: due }));
        }
        if let Some(answer) = self.imported_before(item, &destinations)? {
            return Ok(Plan::Answer(answer));
        }
        let of_tenant = self.backlogs.0.get_mut(tenant).expect("loaded above");
        for name in destinations.iter() {
            let backlog = &of_tenant[name];
            let (seen, limit) = (backlog.live, backlog.limit);
            if seen >= limit {
                return Ok(refused(Refusal::BacklogFull { destination: name.clone(), seen, limit }));
            }
        }
        for name in destinations.iter() {
            let backlog = of_tenant.get_mut(name).expect("loaded above");
            backlog.live += 1;
            backlog.added += 1;
            if let Some(origin) = &item.origin {
                self.imported.insert((tenant.clone(), origin.clone(), name.clone()), item.envelope.id);
            }
        }
        Ok(Plan::Save { destinations, due })
    }

    /// Makes sure that the backlog of a destination is known; false if there is no such destination.
    fn load(&mut self, tenant: &TenantId, name: &DestinationName) -> Result<bool, StoreError> {
        if self.backlogs.0.get(tenant).is_some_and(|of_tenant| of_tenant.contains_key(name)) {
            return Ok(true);
        }
        let Some(destination) = self.turn.caches.catalog.find(self.turn.tx, tenant, name)? else { return Ok(false) };
        let limit = destination.spec.policy.backlog_limit;
        let live = totals::live(self.turn.tx, tenant.as_str(), name.as_str())?;
        let of_tenant = self.backlogs.0.entry(tenant.clone()).or_default();
        of_tenant.insert(name.clone(), Backlog { live, limit, added: 0 });
        Ok(true)
    }

    /// What was imported from the same place, and still lives, is not imported again.
    fn imported_before(
        &self,
        item: &NewEntry,
        destinations: &[DestinationName],
    ) -> Result<Option<EnqueueAnswer>, StoreError> {
        let Some(origin) = &item.origin else { return Ok(None) };
        for name in destinations {
            let key = (item.envelope.tenant.clone(), origin.clone(), name.clone());
            if let Some(envelope) = self.imported.get(&key) {
                return Ok(Some(EnqueueAnswer::Existing { envelope: *envelope }));
            }
            let envelope: Option<[u8; 16]> = self
                .turn
                .tx
                .prepare_cached(include_str!("sql/entry_by_origin.sql"))
                .and_then(|mut statement| {
                    statement
                        .query_row([item.envelope.tenant.as_str(), origin.as_str(), name.as_str()], |row| row.get(0))
                        .optional()
                })
                .doing(DOING)?;
            if let Some(envelope) = envelope {
                return Ok(Some(EnqueueAnswer::Existing { envelope: EnvelopeId::from_bytes(envelope) }));
            }
        }
        Ok(None)
    }
}

fn refused<'a>(refusal: Refusal) -> Plan<'a> {
    Plan::Answer(EnqueueAnswer::Refused(refusal))
}

fn fan_out<'a>(seen: usize) -> Plan<'a> {
    refused(Refusal::FanOut { seen, limit: MAX_FAN_OUT })
}

/// Named destinations, each once, in the order given.
fn named(destinations: &[DestinationName]) -> Cow<'_, [DestinationName]> {
    if destinations.len() == 1 {
        return Cow::Borrowed(destinations);
    }
    let mut seen = BTreeSet::new();
    Cow::Owned(destinations.iter().filter(|name| seen.insert(*name)).cloned().collect())
}

/// Writes the rows of what is to be saved.
fn save(
    turn: &Turn<'_>,
    batch: &Batch<'_>,
    plans: Vec<Plan<'_>>,
    count: usize,
) -> Result<Vec<EnqueueAnswer>, StoreError> {
    let mut seq = if count == 0 { 0 } else { sequence::take(turn.tx, count)? };
    let envelopes = plans.iter().filter(|plan| matches!(plan, Plan::Save { .. })).count();
    let mut rows = Rows::prepare(turn, envelopes, count)?;
    let mut ids = entry_ids(turn, count).into_iter();
    let mut answers = Vec::with_capacity(batch.items.len());
    for ((item, facts), plan) in batch.iter().zip(plans) {
        let (destinations, due) = match plan {
            Plan::Answer(answer) => {
                answers.push(answer);
                continue;
            }
            Plan::Save { destinations, due } => (destinations, due),
        };
        let envelope_ref = seq;
        rows.save_envelope(item, facts, envelope_ref, destinations.len())?;
        let mut entries = Vec::with_capacity(destinations.len());
        for (destination, entry) in destinations.iter().zip(&mut ids) {
            rows.save_entry(item, due, (seq, envelope_ref, entry), destination)?;
            entries.push((entry, destination.clone()));
            seq += 1;
        }
        answers.push(EnqueueAnswer::Created { envelope: item.envelope.id, entries });
    }
    Ok(answers)
}

/// Ids of the entries of a batch, in the order of their sequence: so each goes to the end of its index.
fn entry_ids(turn: &Turn<'_>, count: usize) -> Vec<EntryId> {
    let mut ids: Vec<EntryId> = (0..count).map(|_| EntryId::new(turn.now, turn.random10())).collect();
    ids.sort_unstable();
    ids
}

const ENVELOPE: &str = include_str!("sql/envelope_insert.sql");
const ENTRY: &str = include_str!("sql/entry_insert.sql");
static ENVELOPES: LazyLock<String> = LazyLock::new(|| repeated(ENVELOPE, 16));
static ENTRIES: LazyLock<String> = LazyLock::new(|| repeated(ENTRY, 11));

/// The rows of a batch on their way.
struct Rows<'t> {
    now: Timestamp,
    envelopes: Bulk<'t, 16>,
    entries: Bulk<'t, 11>,
}

impl<'t> Rows<'t> {
    fn prepare(turn: &Turn<'t>, envelopes: usize, entries: usize) -> Result<Self, StoreError> {
        Ok(Self {
            now: turn.now,
            envelopes: Bulk::prepare(turn.tx, ENVELOPE, &ENVELOPES, envelopes, DOING)?,
            entries: Bulk::prepare(turn.tx, ENTRY, &ENTRIES, entries, DOING)?,
        })
    }

    fn save_envelope(&mut self, item: &NewEntry, facts: &Facts, id: i64, refs: usize) -> Result<(), StoreError> {
        let envelope = &item.envelope;
        let payload = payload::store(&envelope.payload);
        self.envelopes.add([
            &id,
            &envelope.tenant.as_str(),
            envelope.id.as_bytes(),
            &(refs as i64),
            &envelope.event_type,
            &envelope.source_event_id,
            &envelope.correlation_id,
            &envelope.audit_residue_id,
            &envelope.content_type,
            &persisted::ENVELOPE_META_SCHEMA,
            &facts.meta,
            &payload.form,
            &payload.size,
            &facts.payload_sha256,
            &payload.key_id,
            &payload.bytes,
        ])
    }

    fn save_entry(
        &mut self,
        item: &NewEntry,
        due: Timestamp,
        (seq, envelope_ref, entry): (i64, i64, EntryId),
        destination: &DestinationName,
    ) -> Result<(), StoreError> {
        let mut own_key = [0; EntryId::TEXT_BYTES];
        let operation_key = match &item.operation_key {
            Some(key) => key.as_str(),
            None => entry.text(&mut own_key),
        };
        self.entries.add([
            &seq,
            &item.envelope.tenant.as_str(),
            entry.as_bytes(),
            &destination.as_str(),
            &envelope_ref,
            &operation_key,
            &self.now.as_micros(),
            &item.not_before.map(Timestamp::as_micros),
            &item.deliver_by.map(Timestamp::as_micros),
            &due.as_micros(),
            &item.origin.as_ref().map(Code::as_str),
        ])
    }
}
