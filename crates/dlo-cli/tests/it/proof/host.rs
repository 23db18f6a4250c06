//! An application that writes to the same file while `dlo` enqueues and drains: neither gets in the other's way.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::ledger::{KINDS, accounts, check_requests, place_with_all_kinds};
use super::run::{bounded, ended};
use crate::endpoint::Endpoint;
use crate::place::{Place, event};

const EVENTS: usize = 600;
/// A transaction of the host that is longer than one wait of `dlo` for the lock.
const LONG: Duration = Duration::from_millis(400);
/// What the host does between two transactions. SQLite has no queue for its lock: whoever writes without any gap keeps
/// it from everybody.
const GAP: Duration = Duration::from_millis(1);
/// Short transactions of the host between two long ones.
const SHORT_ONES: i64 = 40;

/// Writes until it is told to stop; gives the number of rows that were committed.
fn host(place: &Place, stop: &AtomicBool) -> i64 {
    let mut conn = Connection::open(place.path("dlo.db")).expect("the database");
    conn.busy_timeout(Duration::from_secs(20)).expect("a timeout");
    conn.execute_batch("CREATE TABLE host_order (id INTEGER PRIMARY KEY, text TEXT NOT NULL)").expect("a table");
    let mut rows = 0;
    while !stop.load(Ordering::Relaxed) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("the lock");
        tx.execute("INSERT INTO host_order (id, text) VALUES (?1, ?2)", (rows, format!("order {rows}")))
            .expect("a row");
        if rows % SHORT_ONES == SHORT_ONES - 1 {
            let began = Instant::now();
            while began.elapsed() < LONG {
                tx.execute("UPDATE host_order SET text = text WHERE id = ?1", [rows]).expect("a row");
            }
        }
        tx.commit().expect("a commit");
        rows += 1;
        thread::sleep(GAP);
    }
    rows
}

/// Ends the host also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn start(place: &Place, args: &[&str]) -> Child {
    place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

#[test]
fn a_host_in_the_file_loses_no_row_and_dlo_meets_no_busy_file() {
    let endpoint = Endpoint::start();
    let place = place_with_all_kinds(&endpoint, "");
    let line = |number: usize| event(&format!("e-{number}"), &format!("{}.x", KINDS[number % 3].0), "1");
    place.write("events.jsonl", &(0..EVENTS).map(line).collect::<String>());
    let stop = AtomicBool::new(false);
    let rows = thread::scope(|scope| {
        let host = scope.spawn(|| host(&place, &stop));
        let stopping = Stop(&stop);
        let engine = start(&place, &["run"]);
        let enqueue = ended(start(&place, &["enqueue", "events.jsonl"]), "enqueue").ends(0);
        assert!(!enqueue.err.contains("busy"), "{}", enqueue.err);
        endpoint.wait_for(EVENTS);
        super::run::signal(engine.id(), "TERM");
        let ran = ended(engine, "run").ends(0);
        assert!(!ran.err.contains("store fails") && !ran.err.contains("busy"), "{}", ran.err);
        drop(stopping);
        host.join().expect("the host")
    });
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    let accounts = accounts(&place);
    assert!(accounts.states.len() == EVENTS && accounts.states.values().all(|state| state == "delivered"));
    check_requests(&endpoint, &accounts);
    let conn = Connection::open(place.path("dlo.db")).expect("the database");
    let intact: i64 = conn
        .query_row("SELECT count(*) FROM host_order WHERE text = 'order ' || id AND id < ?1", [rows], |row| row.get(0))
        .expect("a count");
    assert_eq!(intact, rows, "rows of the host");
    assert!(rows > SHORT_ONES, "the host had its turns: {rows}");
    let check: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(check, "ok");
}
