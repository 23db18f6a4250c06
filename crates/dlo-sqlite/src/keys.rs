//! Enqueue keys: taken first, so that what was saved under one before is known (trap D18).

use std::sync::LazyLock;

use dlo_core::{EnvelopeId, NewEntry, limits::MAX_FAN_OUT};
use dlo_ports::{StoreError, store::EnqueueAnswer};
use rusqlite::{CachedStatement, params};

use crate::{
    batch::{Batch, Facts},
    bulk::{Bulk, ROWS, repeated},
    error::Doing,
    turn::Turn,
};

const DOING: &str = "take enqueue keys";
const TAKE: &str = include_str!("sql/enqueue_key_take.sql");
static TAKE_MANY: LazyLock<String> = LazyLock::new(|| repeated(TAKE, 6));

/// Takes keys.
pub(crate) struct Keys<'t> {
    take: CachedStatement<'t>,
    /// For each item, whether its key was taken already, if the batch was asked as a whole.
    fresh: Option<Vec<bool>>,
}

impl<'t> Keys<'t> {
    /// Takes the keys of a large batch by few statements. A batch with a key that occurs twice is asked item by item,
    /// because what becomes of the second depends on the first.
    pub(crate) fn prepare(turn: &Turn<'t>, batch: &Batch<'_>) -> Result<Self, StoreError> {
        let take = turn.tx.prepare_cached(TAKE).doing(DOING)?;
        let fresh = if batch.distinct && batch.items.len() >= ROWS { Some(take_all(turn, batch)?) } else { None };
        Ok(Self { take, fresh })
    }

    /// Takes the key of an item, or says what was saved under it before.
    pub(crate) fn take(
        &mut self,
        turn: &Turn<'_>,
        index: usize,
        item: &NewEntry,
        facts: &Facts,
    ) -> Result<Option<EnqueueAnswer>, StoreError> {
        let asked = self.fresh.as_ref().map(|fresh| fresh[index]);
        let fresh = asked.map_or_else(|| self.take_one(turn, item, facts), Ok)?;
        if fresh {
            return Ok(None);
        }
        let first = first_of(turn, item, facts)?;
        let envelope = EnvelopeId::from_bytes(first.envelope);
        Ok(Some(if first.content_hash == facts.content_hash {
            EnqueueAnswer::Existing { envelope }
        } else {
            EnqueueAnswer::Conflict { envelope }
        }))
    }

    fn take_one(&mut self, turn: &Turn<'_>, item: &NewEntry, facts: &Facts) -> Result<bool, StoreError> {
        let taken = self.take.execute(params![
            item.envelope.tenant.as_str(),
            item.producer.as_str(),
            facts.key.as_str(),
            item.envelope.id.as_bytes(),
            facts.content_hash,
            turn.now.as_micros()
        ]);
        Ok(taken.doing(DOING)? == 1)
    }
}

/// Nothing of a refused item stays: gives its key back.
pub(crate) fn give_back(turn: &Turn<'_>, item: &NewEntry, facts: &Facts) -> Result<(), StoreError> {
    turn.tx
        .prepare_cached("DELETE FROM dlo_enqueue_key WHERE tenant = ?1 AND producer = ?2 AND key = ?3")
        .and_then(|mut statement| {
            statement.execute([item.envelope.tenant.as_str(), item.producer.as_str(), facts.key.as_str()])
        })
        .doing(DOING)?;
    Ok(())
}

/// Whether an item gets as far as its key.
pub(crate) fn asks_for_key(item: &NewEntry, facts: &Facts) -> bool {
    facts.problem.is_none() && item.destinations.len() <= MAX_FAN_OUT
}

fn take_all(turn: &Turn<'_>, batch: &Batch<'_>) -> Result<Vec<bool>, StoreError> {
    let before: i64 = turn
        .tx
        .prepare_cached("SELECT coalesce(max(id), 0) FROM dlo_enqueue_key")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .doing(DOING)?;
    let asking = batch.iter().filter(|(item, facts)| asks_for_key(item, facts)).count();
    let mut bulk = Bulk::prepare(turn.tx, TAKE, &TAKE_MANY, asking, DOING)?;
    for (item, facts) in batch.iter().filter(|(item, facts)| asks_for_key(item, facts)) {
        bulk.add([
            &item.envelope.tenant.as_str(),
            &item.producer.as_str(),
            &facts.key.as_str(),
            item.envelope.id.as_bytes(),
            &facts.content_hash,
            &turn.now.as_micros(),
        ])?;
    }
    if bulk.inserted() == asking {
        return Ok(vec![true; batch.items.len()]);
    }
    // Rows of this batch have the highest numbers.
    let is_fresh = |(item, facts)| Ok(asks_for_key(item, facts) && first_of(turn, item, facts)?.id > before);
    batch.iter().map(is_fresh).collect()
}

/// What was saved first under a key.
struct First {
    id: i64,
    envelope: [u8; 16],
    content_hash: [u8; 32],
}

fn first_of(turn: &Turn<'_>, item: &NewEntry, facts: &Facts) -> Result<First, StoreError> {
    turn.tx
        .prepare_cached(include_str!("sql/enqueue_key_first.sql"))
        .and_then(|mut statement| {
            let key = [item.envelope.tenant.as_str(), item.producer.as_str(), facts.key.as_str()];
            statement
                .query_row(key, |row| Ok(First { id: row.get(0)?, envelope: row.get(1)?, content_hash: row.get(2)? }))
        })
        .doing(DOING)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use bytes::Bytes;
    use dlo_core::{Payload, PayloadForm};

    use super::*;
    use crate::testing::{MAIN, World, name};

    /// Items of which some are known, some conflict, and some are refused.
    fn mixed(world: &mut World) -> Vec<NewEntry> {
        let mut items: Vec<NewEntry> = (0..3 * ROWS + 5).map(|_| world.item(MAIN)).collect();
        for known in [0, 7, ROWS, 2 * ROWS + 1] {
            world.save_item(items[known].clone());
        }
        items[7].envelope.payload = Payload::Bytes { bytes: Bytes::from_static(b"{}"), form: PayloadForm::Json };
        items[9].destinations = vec![name("nowhere")];
        items[10].envelope.event_type.clear();
        items[11].destinations = (0..=MAX_FAN_OUT).map(|number| name(&format!("d-{number}"))).collect();
        items
    }

    fn kinds(answers: &[EnqueueAnswer]) -> Vec<String> {
        let kind = |answer: &EnqueueAnswer| match answer {
            EnqueueAnswer::Created { envelope, .. } => format!("created {envelope}"),
            other => format!("{other:?}"),
        };
        answers.iter().map(kind).collect()
    }

    fn count(world: &World) -> i64 {
        world.conn.query_row("SELECT count(*) FROM dlo_enqueue_key", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_batch_is_answered_like_its_items_one_by_one() {
        let (mut whole, mut single) = (World::new(), World::new());
        let items = mixed(&mut whole);
        assert_eq!(mixed(&mut single), items, "both worlds begin alike");
        let answers = whole.save_items(&items);
        let one_by_one: Vec<EnqueueAnswer> =
            items.iter().map(|item| single.save_items(core::slice::from_ref(item)).remove(0)).collect();
        assert_eq!(kinds(&answers), kinds(&one_by_one));
        let seen = |wanted: &str| kinds(&answers).iter().filter(|kind| kind.starts_with(wanted)).count();
        assert_eq!((seen("Existing"), seen("Conflict"), seen("Refused")), (3, 1, 3));
        assert_eq!(count(&whole), count(&single), "nothing of a refused item stays");
        assert_eq!(count(&whole), items.len() as i64 - 3);
    }

    #[test]
    fn a_key_that_occurs_twice_is_saved_once() {
        let mut world = World::new();
        let mut items: Vec<NewEntry> = (0..2 * ROWS).map(|_| world.item(MAIN)).collect();
        items.push(items[3].clone());
        // The first of these is refused, so that the second is the one that is saved.
        let mut refused = items[5].clone();
        refused.destinations = vec![name("nowhere")];
        items.insert(0, refused);
        let answers = world.save_items(&items);
        assert!(matches!(answers[0], EnqueueAnswer::Refused(_)), "{:?}", answers[0]);
        assert!(matches!(answers[6], EnqueueAnswer::Created { .. }), "{:?}", answers[6]);
        assert!(matches!(answers[2 * ROWS + 1], EnqueueAnswer::Existing { .. }), "{:?}", answers[2 * ROWS + 1]);
        assert_eq!(count(&world), 2 * ROWS as i64);
    }
}
