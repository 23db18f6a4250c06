//! Query plans: what a claim reads does not grow with what it can't take (I-16).

use rusqlite::Connection;

use crate::support::*;

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let values = vec![rusqlite::types::Null; statement.parameter_count()];
    statement
        .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

macro_rules! sql {
    ($name:literal) => {
        ($name, include_str!(concat!("../../src/sql/", $name, ".sql")))
    };
}

#[test]
fn hot_statements_seek() {
    let bench = Bench::new();
    let conn = bench.other();
    for (name, sql) in [
        sql!("claim_due"),
        sql!("claim_read"),
        sql!("claim_take"),
        sql!("due_next"),
        sql!("due_earliest"),
        sql!("history_insert"),
        sql!("entry_keep"),
        sql!("entry_release"),
        sql!("entries_drop"),
        sql!("envelopes_drop"),
        sql!("envelopes_count_off"),
        sql!("fence_live"),
        sql!("fence_ended"),
        sql!("dead_letter_insert"),
        sql!("overdue_fresh"),
        sql!("overdue_by_age"),
        sql!("overdue_by_deadline"),
        sql!("prune_history_look"),
        sql!("entry_by_origin"),
        sql!("destination_latest"),
    ] {
        for step in plan(&conn, sql) {
            // A list of sequence numbers that comes as a parameter is read from end to end.
            assert!(!step.contains("SCAN") || step.starts_with("SCAN json_each"), "{name}: {step}");
            assert!(!step.contains("TEMP B-TREE"), "{name}: {step}");
        }
    }
}

#[test]
fn a_claim_selects_from_the_index_alone() {
    let bench = Bench::new();
    let (_, sql) = sql!("claim_due");
    let steps = plan(&bench.other(), sql);
    let expected = "SEARCH dlo_entry USING COVERING INDEX dlo_entry_ready \
                    (tenant=? AND destination=? AND lane=? AND claim_token=? AND manual_review=? AND due<?)";
    assert_eq!(steps, [expected]);
}

#[test]
fn destinations_with_work_are_found_by_seeks() {
    let bench = Bench::new();
    let (_, sql) = sql!("due_next");
    let steps = plan(&bench.other(), sql);
    assert_eq!(steps.len(), 1);
    assert!(steps[0].contains("USING COVERING INDEX dlo_entry_ready"), "{steps:?}");
}
