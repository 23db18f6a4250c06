#![allow(clippy::unwrap_used, reason = "tests")]
//! What SQLite's own shape could get wrong: merged lists, what history keeps, order, damaged rows, tenants.

use dlo_core::{DestinationSpec, EntryId, EntryState, TenantId};
use dlo_ports::store::{DeadLetterFilter, EntryAct, EntryFilter, HoldAct, PageRequest};

use super::{dead_letter, dead_letters, dead_letters::OF_A_GROUP, destinations, entries, entry, groups, stats};
use crate::testing::{ALL, HARMFUL, MAIN, REVIEWED, World, busy, delivered, name, refused, spec, tenant};

fn listed(world: &World, filter: &EntryFilter, limit: usize) -> Vec<(EntryId, EntryState)> {
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = entries(&world.conn, world.now, filter, PageRequest { after, limit }).unwrap();
        rows.extend(page.rows.iter().map(|row| (row.key.entry, row.state)));
        let Some(next) = page.next else { return rows };
        assert!(after.is_none_or(|after| next < after), "a cursor only goes down");
        after = Some(next);
    }
}

#[test]
fn three_tables_are_one_list_whatever_the_page() {
    let mut world = World::new();
    let mut expected = vec![
        (world.ended(MAIN, delivered()), EntryState::Delivered),
        (world.dead(MAIN).key.entry, EntryState::DeadLettered),
        (world.ended(REVIEWED, busy()), EntryState::ManualReview),
        (world.ended(MAIN, delivered()), EntryState::Delivered),
    ];
    let redriven = world.dead(MAIN);
    let cancelled = world.save(MAIN);
    world.act(cancelled, EntryAct::Cancel);
    expected.push((cancelled, EntryState::Cancelled));
    expected.push((world.save(HARMFUL), EntryState::Ready));
    world.redrive(&[redriven.id]).unwrap();
    expected.push((redriven.key.entry, EntryState::Ready));
    expected.reverse();
    for limit in 1..=8 {
        assert_eq!(listed(&world, &EntryFilter::default(), limit), expected, "pages of {limit}");
    }
    let filter = EntryFilter { destination: Some(name(MAIN)), ..EntryFilter::default() };
    assert_eq!(listed(&world, &filter, 1).len(), 5);
    let filter = EntryFilter { tenant: Some("other".parse().unwrap()), ..EntryFilter::default() };
    assert_eq!(listed(&world, &filter, 1), []);
}

#[test]
fn lists_read_their_indexes_in_order() {
    let world = World::new();
    let mut statement =
        world.conn.prepare(concat!("EXPLAIN QUERY PLAN ", include_str!("../sql/read/entries.sql"))).unwrap();
    let plan: Vec<String> =
        statement.query_map([1, 1, 1, 1], |row| row.get::<_, String>(3)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(plan.iter().all(|line| !line.contains("TEMP B-TREE") && !line.contains("SCAN")), "{plan:#?}");
    let mut statement = world.conn.prepare(&format!("EXPLAIN QUERY PLAN {OF_A_GROUP}")).unwrap();
    let plan: Vec<String> =
        statement.query_map([1, 1, 1, 1], |row| row.get::<_, String>(3)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(plan[0].contains("USING INDEX dlo_dead_letter_group"), "{plan:#?}");
    assert!(plan.iter().all(|line| !line.contains("TEMP B-TREE") && !line.contains("SCAN")), "{plan:#?}");
}

#[test]
fn an_entry_without_its_envelope_is_listed_without_a_name() {
    let mut world = World::new();
    world.ended(MAIN, delivered());
    world.dead(MAIN);
    world.save(MAIN);
    let list = |world: &World| entries(&world.conn, world.now, &EntryFilter::default(), ALL).unwrap().rows;
    assert!(list(&world).iter().all(|row| row.event_type.as_deref() == Some("test.happened")));
    // History says '' of an envelope that was gone when its entry ended.
    world.conn.execute("UPDATE dlo_history SET event_type = '', source_event_id = NULL", []).unwrap();
    world.conn.execute("DELETE FROM dlo_envelope", []).unwrap();
    let rows = list(&world);
    let names: Vec<_> = rows.iter().map(|row| (row.event_type.as_deref(), row.source_event_id.as_deref())).collect();
    assert_eq!(names, [(None, None); 3]);
    for row in rows.into_iter().filter(|row| row.state.is_terminal()) {
        let view = entry(&world.conn, world.now, &tenant(), row.key.entry).unwrap().unwrap();
        assert_eq!(view.summary, row, "list and look-up must agree");
    }
    let empty = EntryFilter { event_type: Some(String::new()), ..EntryFilter::default() };
    assert_eq!(listed(&world, &empty, 10), []);
}

#[test]
fn an_ended_entry_keeps_its_attempts_failures_and_receipt() {
    let mut world = World::new();
    let id = world.save(MAIN);
    let page = world.claim(MAIN);
    world.settle(&page[0], busy());
    let waiting = entry(&world.conn, world.now, &tenant(), id).unwrap().unwrap();
    world.advance(86_400);
    let page = world.claim(MAIN);
    world.settle(&page[0], delivered());
    let view = entry(&world.conn, world.now, &tenant(), id).unwrap().unwrap();
    assert_eq!(view.summary.state, EntryState::Delivered);
    assert_eq!(view.summary.last_failure, waiting.summary.last_failure);
    assert_eq!(view.last_failure, waiting.last_failure);
    assert_eq!(view.attempts[0], waiting.attempts[0]);
    assert_eq!(view.summary.attempts as usize, view.attempts.len());
    assert_eq!(view.ended[0].receipt.as_ref().unwrap().id.as_ref().unwrap().as_str(), "r-1");
    let list = entries(&world.conn, world.now, &EntryFilter::default(), ALL).unwrap();
    assert_eq!(list.rows, [view.summary]);
}

#[test]
fn history_keeps_what_identifies_an_envelope_and_quarantine_all_of_it() {
    let mut world = World::new();
    let gone = world.ended(MAIN, delivered());
    let kept = world.dead(MAIN);
    world.redrive(&[kept.id]).unwrap();
    let page = world.claim(MAIN);
    world.settle(&page[0], delivered());
    let gone = entry(&world.conn, world.now, &tenant(), gone).unwrap().unwrap().envelope.unwrap();
    assert_eq!((gone.event_type.as_str(), gone.correlation_id.as_deref()), ("test.happened", Some("corr")));
    assert_eq!((gone.payload.size, gone.payload.sha256.is_some(), gone.source), (17, true, None));
    let view = entry(&world.conn, world.now, &tenant(), kept.key.entry).unwrap().unwrap();
    assert_eq!(view.envelope.unwrap().source.as_deref(), Some("/test"));
    let generations: Vec<_> = view.ended.iter().map(|ended| (ended.generation, ended.state)).collect();
    assert_eq!(generations, [(0, EntryState::DeadLettered), (1, EntryState::Delivered)]);
}

#[test]
fn held_is_said_of_ready_entries_of_held_destinations_only() {
    let mut world = World::new();
    world.save(MAIN);
    let page = world.claim(MAIN);
    world.settle(&page[0], busy());
    let ready = world.save(MAIN);
    world.save(HARMFUL);
    world.hold_act(MAIN, &HoldAct::Hold { reason: "maintenance".into() });
    let rows = entries(&world.conn, world.now, &EntryFilter::default(), ALL).unwrap().rows;
    let held: Vec<_> = rows.iter().filter(|row| row.held).map(|row| row.key.entry).collect();
    assert_eq!(held, [ready]);
    assert!(entry(&world.conn, world.now, &tenant(), ready).unwrap().unwrap().summary.held);
}

#[test]
fn quarantine_is_shown_although_its_envelope_is_damaged_or_gone() {
    let mut world = World::new();
    let dead = world.dead(MAIN);
    world.tamper("UPDATE dlo_envelope SET meta = 'damaged'", []);
    let shown = dead_letter(&world.conn, &tenant(), dead.id).unwrap().unwrap();
    assert_eq!((shown.envelope, shown.dead_letter.event_type, shown.dead_letter.envelope), (None, None, dead.envelope));
    world.tamper("DELETE FROM dlo_envelope", []);
    let shown = dead_letters(&world.conn, &DeadLetterFilter::default(), ALL).unwrap().rows;
    assert_eq!((shown.len(), *shown[0].envelope.as_bytes()), (1, [0; 16]));
}

#[test]
fn groups_tie_in_order_and_count_what_is_open() {
    let mut world = World::new();
    let first = world.dead(MAIN);
    world.dead(MAIN);
    world.dead(HARMFUL);
    world.dead(HARMFUL);
    world.redrive(&[first.id]).unwrap();
    let seen: Vec<_> = groups(&world.conn, &DeadLetterFilter::default(), 10)
        .unwrap()
        .into_iter()
        .map(|group| (group.destination.to_string(), group.count, group.open))
        .collect();
    assert_eq!(seen, [(HARMFUL.to_owned(), 2, 2), (MAIN.to_owned(), 2, 1)]);
}

#[test]
fn figures_are_those_of_the_rows() {
    let mut world = World::new();
    world.ended(REVIEWED, busy());
    world.dead(MAIN);
    world.save(MAIN);
    world.claim(MAIN);
    let oldest = world.now;
    world.save(MAIN);
    world.advance(5);
    world.save(MAIN);
    let all = stats(&world.conn, world.now).unwrap();
    let of = |wanted: &str| all.destinations.iter().find(|row| row.destination.as_str() == wanted).unwrap();
    let main = of(MAIN);
    let depth = main.depth;
    assert_eq!((depth.ready, depth.waiting, depth.claimed, depth.dead_letters_open), (2, 0, 1, 1));
    assert_eq!(main.oldest_due, Some(oldest));
    assert_eq!((main.enqueued_total, of(REVIEWED).depth.manual_review), (4, 1));
    let views = destinations(&world.conn, world.now, None, None, 10).unwrap();
    let names: Vec<_> = views.iter().map(|view| view.destination.spec.name.as_str()).collect();
    assert_eq!(names, [HARMFUL, MAIN, REVIEWED]);
    assert_eq!(views[1].depth, depth);
}

#[test]
fn tenants_see_their_own() {
    let mut world = World::new();
    let other: TenantId = "other".parse().unwrap();
    world.apply(vec![DestinationSpec { tenant: other.clone(), ..spec(MAIN) }]).unwrap();
    let dead = world.dead(MAIN);
    assert!(dead_letter(&world.conn, &other, dead.id).unwrap().is_none());
    assert!(entry(&world.conn, world.now, &other, dead.key.entry).unwrap().is_none());
    let filter = DeadLetterFilter { tenant: Some(other.clone()), ..DeadLetterFilter::default() };
    assert_eq!(dead_letters(&world.conn, &filter, ALL).unwrap().rows, []);
    assert_eq!(groups(&world.conn, &filter, 10).unwrap(), []);
    assert_eq!(destinations(&world.conn, world.now, Some(&other), None, 10).unwrap().len(), 1);
    assert_eq!(destinations(&world.conn, world.now, Some(&tenant()), None, 10).unwrap().len(), 3);
}

#[test]
fn a_refused_entry_is_listed_with_its_failure() {
    let mut world = World::new();
    world.ended(MAIN, refused());
    let row = entries(&world.conn, world.now, &EntryFilter::default(), ALL).unwrap().rows.remove(0);
    let (class, reason) = row.last_failure.unwrap();
    assert_eq!((class.as_str(), reason.as_str(), row.attempts), ("deterministic", "test.refused", 1));
}

#[test]
fn what_can_not_be_read_of_a_destination_is_named_and_hides_no_figure() {
    let mut world = World::new();
    world.save(MAIN);
    world.hold_act(MAIN, &HoldAct::Hold { reason: "maintenance".into() });
    world.tamper("UPDATE dlo_health SET schema = 2", []);
    let all = stats(&world.conn, world.now).unwrap();
    assert!(all.destinations.iter().any(|row| row.destination.as_str() == MAIN && row.held), "held, as for claims");
    assert!(entries(&world.conn, world.now, &EntryFilter::default(), ALL).unwrap().rows[0].held);
    let error = destinations(&world.conn, world.now, None, None, 10).unwrap_err();
    assert_eq!(error.code(), "store.schema");
    assert!(error.to_string().contains("`default/main`"), "{error}");
}
