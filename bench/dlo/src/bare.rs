//! The reference: loops over bare rusqlite that do the same row operations on the same schema, with the same keys,
//! indexes and settings, and nothing else. Everything that they write was made before the clock starts.

use core::time::Duration;
use std::path::Path;
use std::time::Instant;

use dlo_core::NewEntry;
use dlo_ports::persisted;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::bed;

/// Entries that one claim takes.
const PAGE: i64 = 100;

/// Opens a file with the settings of the product's writer.
pub(crate) fn open(path: &Path) -> Connection {
    let mut conn = Connection::open(path).expect("the file opens");
    conn.set_prepared_statement_cache_capacity(128);
    conn.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4096;
         PRAGMA journal_size_limit = 67108864; PRAGMA foreign_keys = 0;",
    )
    .expect("the settings are taken");
    dlo_sqlite::migrate(&mut conn, bed::now()).expect("the schema is made");
    conn
}

/// A row set as the product writes it for one item.
pub(crate) struct Rows {
    key: String,
    envelope: [u8; 16],
    content_hash: [u8; 32],
    event_type: String,
    content_type: Option<String>,
    meta: String,
    form: &'static str,
    size: i64,
    sha256: Option<[u8; 32]>,
    payload: Vec<u8>,
    entry: [u8; 16],
    operation_key: String,
    destination: String,
}

/// Makes the rows of items.
pub(crate) fn rows_of(items: &[NewEntry]) -> Vec<Rows> {
    items.iter().enumerate().map(|(number, item)| rows(number, item)).collect()
}

fn rows(number: usize, item: &NewEntry) -> Rows {
    let envelope = &item.envelope;
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let entry = dlo_core::EntryId::new(bed::now(), random);
    Rows {
        key: envelope.default_enqueue_key().as_str().to_owned(),
        envelope: *envelope.id.as_bytes(),
        content_hash: envelope.content_hash(),
        event_type: envelope.event_type.clone(),
        content_type: envelope.content_type.clone(),
        meta: persisted::encode_envelope_meta(envelope),
        form: persisted::payload_form(&envelope.payload),
        size: envelope.payload.size() as i64,
        sha256: envelope.payload.sha256(),
        payload: persisted::payload_bytes(&envelope.payload).map(|bytes| bytes.to_vec()).unwrap_or_default(),
        entry: *entry.as_bytes(),
        operation_key: entry.operation_key().as_str().to_owned(),
        destination: item.destinations[0].as_str().to_owned(),
    }
}

const TOTAL: &str = "INSERT INTO dlo_total (tenant, destination, name, class, reason, value)
    VALUES ('default', ?1, ?2, '', '', ?3)
    ON CONFLICT (tenant, destination, name, class, reason) DO UPDATE SET value = value + excluded.value";

/// Saves rows in batches, one transaction each: key, envelope, entry, and once a batch the sequence and two totals.
pub(crate) fn enqueue(conn: &mut Connection, rows: &[Rows], batch: usize) -> Duration {
    let started = Instant::now();
    for rows in rows.chunks(batch) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction starts");
        let now = bed::now().as_micros();
        {
            let mut seq: i64 = tx
                .prepare_cached("UPDATE dlo_sequence SET next = next + ?1 WHERE name = 'entry' RETURNING next - ?1")
                .and_then(|mut statement| statement.query_row([rows.len() as i64], |row| row.get(0)))
                .expect("sequence");
            let mut key = tx
                .prepare_cached(
                    "INSERT INTO dlo_enqueue_key (tenant, producer, key, envelope, content_hash, first_seen)
                     VALUES ('default', 'default', ?1, ?2, ?3, ?4) ON CONFLICT (tenant, producer, key) DO NOTHING",
                )
                .expect("key");
            let mut envelope = tx
                .prepare_cached(
                    "INSERT INTO dlo_envelope (id, tenant, envelope, refs, event_type, content_type, meta_schema, meta,
                     payload_form, payload_size, payload_sha256, key_id, payload)
                     VALUES (?1, 'default', ?2, 1, ?3, ?4, 1, ?5, ?6, ?7, ?8, 'none', ?9)",
                )
                .expect("envelope");
            let mut entry = tx
                .prepare_cached(
                    "INSERT INTO dlo_entry (seq, tenant, entry, generation, destination, envelope_ref, operation_key,
                     created, updated, age_from, lane, due, status, version)
                     VALUES (?1, 'default', ?2, 0, ?3, ?1, ?4, ?5, ?5, ?5, 0, ?5, 'pending', 1)",
                )
                .expect("entry");
            for row in rows {
                key.execute(params![row.key, row.envelope, row.content_hash, now]).expect("key");
                envelope
                    .execute(params![
                        seq,
                        row.envelope,
                        row.event_type,
                        row.content_type,
                        row.meta,
                        row.form,
                        row.size,
                        row.sha256,
                        row.payload
                    ])
                    .expect("envelope");
                entry.execute(params![seq, row.entry, row.destination, row.operation_key, now]).expect("entry");
                seq += 1;
            }
            let mut total = tx.prepare_cached(TOTAL).expect("total");
            for name in ["live", "enqueued"] {
                total.execute(params![rows[0].destination, name, rows.len() as i64]).expect("total");
            }
        }
        tx.commit().expect("a commit works");
    }
    started.elapsed()
}

/// What a claim reads of a row.
struct Claimed {
    seq: i64,
    envelope_ref: i64,
    entry: [u8; 16],
    operation_key: String,
    created: i64,
    _meta: String,
    _payload: Vec<u8>,
}

/// Claims and settles until nothing is ready: for each page one transaction that claims and one that settles.
pub(crate) fn drain(conn: &mut Connection, destination: &str) -> Duration {
    let started = Instant::now();
    let mut token = [0_u8; 16];
    for page in 0_u64.. {
        token[8..].copy_from_slice(&page.to_be_bytes());
        let claimed = claim(conn, destination, token);
        if claimed.is_empty() {
            break;
        }
        settle(conn, destination, token, &claimed);
    }
    started.elapsed()
}

fn claim(conn: &mut Connection, destination: &str, token: [u8; 16]) -> Vec<Claimed> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction starts");
    let now = bed::now().as_micros();
    let claimed: Vec<Claimed> = tx
        .prepare_cached(
            "SELECT e.seq, e.envelope_ref, e.entry, e.operation_key, e.created, v.meta, v.payload
             FROM dlo_entry AS e JOIN dlo_envelope AS v ON v.id = e.envelope_ref
             WHERE e.tenant = 'default' AND e.destination = ?1 AND e.lane = 0 AND e.due <= ?2
                 AND e.claim_token IS NULL AND e.manual_review = 0
             ORDER BY e.due, e.seq LIMIT ?3",
        )
        .and_then(|mut statement| {
            let rows = statement.query_map(params![destination, now, PAGE], |row| {
                Ok(Claimed {
                    seq: row.get(0)?,
                    envelope_ref: row.get(1)?,
                    entry: row.get(2)?,
                    operation_key: row.get(3)?,
                    created: row.get(4)?,
                    _meta: row.get(5)?,
                    _payload: row.get(6)?,
                })
            })?;
            rows.collect()
        })
        .expect("select");
    if !claimed.is_empty() {
        let mut take = tx
            .prepare_cached(
                "UPDATE dlo_entry SET claim_token = ?2, version = version + 1, claims = claims + 1,
                 first_claimed = coalesce(first_claimed, ?3), updated = ?3 WHERE seq = ?1",
            )
            .expect("take");
        let mut members = Vec::with_capacity(claimed.len() * 8);
        for row in &claimed {
            take.execute(params![row.seq, token, now]).expect("take");
            members.extend(row.seq.to_be_bytes());
        }
        tx.prepare_cached(
            "INSERT INTO dlo_claim (token, tenant, destination, incarnation, claimed, deadline, sole_suspect, open,
             members) VALUES (?1, 'default', ?2, ?1, ?3, ?3, 0, ?4, ?5)",
        )
        .and_then(|mut insert| insert.execute(params![token, destination, now, claimed.len() as i64, members]))
        .expect("claim row");
    }
    tx.commit().expect("a commit works");
    claimed
}

fn settle(conn: &mut Connection, destination: &str, token: [u8; 16], claimed: &[Claimed]) {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction starts");
    let now = bed::now().as_micros();
    {
        let mut entry = tx
            .prepare_cached(
                "DELETE FROM dlo_entry WHERE tenant = 'default' AND entry = ?1 AND generation = 0 AND claim_token = ?2",
            )
            .expect("entry");
        let mut envelope = tx
            .prepare_cached(
                "DELETE FROM dlo_envelope WHERE id = ?1 AND refs <= 1
                 RETURNING envelope, event_type, content_type, payload_size, payload_sha256",
            )
            .expect("envelope");
        let mut history = tx
            .prepare_cached(
                "INSERT INTO dlo_history (tenant, entry, generation, seq, destination, state, operation_key, created,
                 ended, envelope, event_type, content_type, payload_size, payload_sha256, attempts, claims, failed,
                 crashed, deferred, interrupted, fence_token)
                 VALUES ('default', ?1, 0, ?2, ?3, 'delivered', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, 1, 0, 0, 0, 0, ?12)",
            )
            .expect("history");
        for row in claimed {
            assert_eq!(entry.execute(params![row.entry, token]).expect("entry"), 1);
            let mut rows = envelope.query([row.envelope_ref]).expect("envelope");
            let kept = rows.next().expect("envelope").expect("the envelope is there");
            let column = |index| rusqlite::types::ToSqlOutput::Borrowed(kept.get_ref(index).expect("a column"));
            history
                .execute(params![
                    row.entry,
                    row.seq,
                    destination,
                    row.operation_key,
                    row.created,
                    now,
                    column(0),
                    column(1),
                    column(2),
                    column(3),
                    column(4),
                    token
                ])
                .expect("history");
            drop(rows);
        }
        tx.prepare_cached("DELETE FROM dlo_claim WHERE token = ?1")
            .and_then(|mut delete| delete.execute([token]))
            .expect("claim row");
        let mut total = tx.prepare_cached(TOTAL).expect("total");
        for (name, by) in [("live", -(claimed.len() as i64)), ("delivered", claimed.len() as i64)] {
            total.execute(params![destination, name, by]).expect("total");
        }
    }
    tx.commit().expect("a commit works");
}
