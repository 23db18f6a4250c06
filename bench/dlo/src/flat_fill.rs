//! Files with a past, made in bulk by SQL: the rows are those that the verbs would have written, totals included, and
//! the product's own check of invariants finds nothing to say about them.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::{bare, bed};

/// What is in a file.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pile {
    /// Ready entries of the destination that is claimed from.
    pub(crate) ready: usize,
    /// Delivered history of it.
    pub(crate) delivered: usize,
    /// Open dead letters of it, one attempt each.
    pub(crate) dead: usize,
    /// Entries of it that wait for a retry tomorrow.
    pub(crate) waiting: usize,
    /// Ready entries of another destination that a person holds.
    pub(crate) held: usize,
}

const REASON: &str = "emission.failed";

/// Makes a file.
pub(crate) fn fill(path: &Path, pile: &Pile) {
    bed::run(async {
        let store = bed::open(path);
        bed::apply(&store, vec![bed::destination(0, "noop"), bed::destination(1, "noop")]).await;
        bed::hold(&store, bed::name(1)).await;
    });
    let conn = bare::open(path);
    conn.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -524288;
         CREATE TEMP TABLE seed (seq INTEGER PRIMARY KEY, entry BLOB, operation_key TEXT, envelope BLOB, key TEXT);",
    )
    .expect("bulk settings are taken");
    let mut fill = Fill { conn, next: 1, now: bed::now().as_micros() };
    fill.seed(pile.delivered);
    fill.keys();
    fill.history();
    fill.seed(pile.dead);
    fill.keys();
    fill.envelopes();
    fill.attempts();
    fill.dead_letters();
    fill.seed(pile.waiting);
    fill.keys();
    fill.envelopes();
    fill.attempts();
    fill.waiting();
    for (destination, count) in [(1, pile.held), (0, pile.ready)] {
        fill.seed(count);
        fill.keys();
        fill.envelopes();
        fill.ready(destination);
    }
    fill.totals(pile);
    fill.conn
        .execute_batch("DROP TABLE seed; PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL;")
        .expect("the file is as the product keeps it");
}

struct Fill {
    conn: Connection,
    next: i64,
    now: i64,
}

impl Fill {
    fn run(&self, sql: &str, values: impl rusqlite::Params) {
        self.conn.execute(sql, values).unwrap_or_else(|error| panic!("{error}: {sql}"));
    }

    /// Ids of the next rows, growing with time as the product's do.
    fn seed(&mut self, count: usize) {
        self.run("DELETE FROM seed", []);
        let (first, count) = (self.next, count as i64);
        self.run(
            "WITH RECURSIVE n (seq) AS (SELECT ?1 WHERE ?2 > 0 UNION ALL SELECT seq + 1 FROM n WHERE seq + 1 < ?1 + ?2)
             INSERT INTO seed (seq, entry, envelope)
             SELECT seq, unhex(printf('%012x7000', ?3 + seq / 100) || hex(randomblob(8))),
                 unhex(printf('%012x7000', ?3 + seq / 100) || hex(randomblob(8))) FROM n",
            params![first, count, self.now / 1_000 - 86_400_000],
        );
        self.run(
            "UPDATE seed SET operation_key = 'ent_' || lower(hex(entry)), key = 'env_' || lower(hex(envelope))",
            [],
        );
        self.next += count;
    }

    fn keys(&self) {
        self.run(
            "INSERT INTO dlo_enqueue_key (tenant, producer, key, envelope, content_hash, first_seen)
             SELECT 'default', 'default', key, envelope, randomblob(32), ?1 FROM seed ORDER BY seq",
            [self.now],
        );
    }

    fn history(&self) {
        self.run(
            "INSERT INTO dlo_history (tenant, entry, generation, seq, destination, state, operation_key, created, ended,
                 envelope, event_type, content_type, payload_size, payload_sha256, attempts, claims, failed, crashed,
                 deferred, interrupted, fence_token)
             SELECT 'default', entry, 0, seq, 'orders-0', 'delivered', operation_key, ?1, ?1, envelope, 'order.placed',
                 'application/json', 300, randomblob(32), 1, 1, 0, 0, 0, 0, randomblob(16) FROM seed ORDER BY seq",
            [self.now],
        );
    }

    fn envelopes(&self) {
        let item = bed::item(1, &bed::name(0));
        let (payload, sha256) = (bed::payload(1), item.envelope.payload.sha256());
        let meta = dlo_ports::persisted::encode_envelope_meta(&item.envelope);
        self.run(
            "INSERT INTO dlo_envelope (id, tenant, envelope, refs, event_type, content_type, meta_schema, meta,
                 payload_form, payload_size, payload_sha256, key_id, payload)
             SELECT seq, 'default', envelope, 1, 'order.placed', 'application/json', 1, ?1, 'json', ?2, ?3, 'none', ?4
             FROM seed ORDER BY seq",
            params![meta, payload.len() as i64, sha256, &payload[..]],
        );
    }

    fn attempts(&self) {
        self.run(
            "INSERT INTO dlo_attempt (tenant, entry, number, generation, started, finished, outcome, class, reason, phase,
                 text, charged, destination_version)
             SELECT 'default', entry, 1, 0, ?1, ?1, 'failed', 'transient', ?2, 'answered', 'refused', 1, 1
             FROM seed ORDER BY seq",
            params![self.now, REASON],
        );
    }

    fn dead_letters(&self) {
        self.run(
            "INSERT INTO dlo_dead_letter (tenant, id, entry, generation, entry_seq, destination, destination_version,
                 envelope_ref, operation_key, class, reason, code, message, last_class, last_reason, last_text, created,
                 first_claimed, first_failed, last_failed, opened, attempts, claims, failed, crashed, deferred,
                 interrupted, unanswered, fingerprint_version, fingerprint, template, state)
             SELECT 'default', unhex(printf('%012x7000', ?1 / 1000) || hex(randomblob(8))), entry, 0, seq, 'orders-0', 1, seq,
                 operation_key, 'transient', ?2, ?2, 'refused', 'transient', ?2, 'refused', ?1, ?1, ?1, ?1, ?1, 1, 1, 1, 0,
                 0, 0, 0, 1, zeroblob(16), 'refused', 'open' FROM seed ORDER BY seq",
            params![self.now, REASON],
        );
    }

    fn waiting(&self) {
        self.run(
            "INSERT INTO dlo_entry (seq, tenant, entry, generation, destination, envelope_ref, operation_key, created,
                 updated, age_from, lane, due, status, version, claims, failed, attempts, first_claimed, first_failed,
                 last_failed, last_class, last_reason, last_text)
             SELECT seq, 'default', entry, 0, 'orders-0', seq, operation_key, ?1, ?1, ?1, 1, ?2, 'retryable_failure', 3, 1,
                 1, 1, ?1, ?1, ?1, 'transient', ?3, 'refused' FROM seed ORDER BY seq",
            params![self.now, self.now + 86_400_000_000, REASON],
        );
    }

    fn ready(&self, destination: usize) {
        self.run(
            "INSERT INTO dlo_entry (seq, tenant, entry, generation, destination, envelope_ref, operation_key, created,
                 updated, age_from, lane, due, status, version)
             SELECT seq, 'default', entry, 0, ?2, seq, operation_key, ?1, ?1, ?1, 0, ?1, 'pending', 1
             FROM seed ORDER BY seq",
            params![self.now, bed::name(destination).as_str()],
        );
    }

    fn totals(&self, pile: &Pile) {
        self.run("UPDATE dlo_sequence SET next = ?1 WHERE name = 'entry'", [self.next]);
        let live = pile.ready + pile.waiting;
        for (destination, name, class, reason, value) in [
            (0, "live", "", "", live),
            (0, "enqueued", "", "", live + pile.delivered + pile.dead),
            (0, "delivered", "", "", pile.delivered),
            (0, "failed_attempts", "", "", pile.dead + pile.waiting),
            (0, "dead_letters", "transient", REASON, pile.dead),
            (0, "dead_letters_open", "", "", pile.dead),
            (1, "live", "", "", pile.held),
            (1, "enqueued", "", "", pile.held),
        ] {
            if value > 0 {
                self.run(
                    "INSERT INTO dlo_total (tenant, destination, name, class, reason, value)
                     VALUES ('default', ?1, ?2, ?3, ?4, ?5)",
                    params![bed::name(destination).as_str(), name, class, reason, value as i64],
                );
            }
        }
    }
}
