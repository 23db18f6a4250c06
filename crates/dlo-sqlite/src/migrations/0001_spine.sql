-- The spine: entries, envelopes, claims, history, quarantine, destinations, audit.
--
-- Times are microseconds since the Unix epoch (UTC), ids are 16-byte UUIDs, enums are the stable names or numbers of
-- dlo-core. Tenant leads every unique key by which a row is looked up. Rowids are database sequences: order and
-- cursors, never identity.
--
-- The three tables that every enqueue writes have no CHECK: they cost a sixth of it, and whoever reads a row checks every
-- column of it anyway (trap D10).

-- names: destination_stamp (grows with every change of dlo_destination), history_pruned (prune has looked at ended_seq
-- up to here).
CREATE TABLE dlo_meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO dlo_meta (name, value) VALUES ('destination_stamp', 0), ('history_pruned', 0);

-- Next values of the database sequences; one row per sequence, moved once per transaction.
CREATE TABLE dlo_sequence (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO dlo_sequence (name, next) VALUES ('entry', 1);

-- Every version of every destination ever applied. `schema` is the version of the JSON in `spec`.
CREATE TABLE dlo_destination (
    tenant  TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    schema  INTEGER NOT NULL,
    spec    TEXT NOT NULL,
    applied INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;

-- Whoever keeps parsed destinations looks at one number to know whether they still hold.
CREATE TRIGGER dlo_destination_inserted AFTER INSERT ON dlo_destination
    BEGIN UPDATE dlo_meta SET value = value + 1 WHERE name = 'destination_stamp'; END;

-- Holds, breaker, probe, ramp and pace. A destination without a row is healthy.
CREATE TABLE dlo_health (
    tenant      TEXT NOT NULL,
    destination TEXT NOT NULL,
    version     INTEGER NOT NULL,
    schema      INTEGER NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (tenant, destination)
) STRICT, WITHOUT ROWID;

-- Totals, moved once per transaction and destination. SQLite has one writer at a time, so nobody waits for these rows.
-- names: live, manual_review, enqueued, delivered, cancelled, failed_attempts, dead_letters, dead_letters_open,
-- review_retried
-- (class and reason are '' except for dead_letters).
CREATE TABLE dlo_total (
    tenant      TEXT NOT NULL,
    destination TEXT NOT NULL,
    name        TEXT NOT NULL,
    class       TEXT NOT NULL DEFAULT '',
    reason      TEXT NOT NULL DEFAULT '',
    value       INTEGER NOT NULL,
    PRIMARY KEY (tenant, destination, name, class, reason)
) STRICT, WITHOUT ROWID;

-- Dedupes enqueue; kept for a stated window. `id` is the order of saving, by which the oldest are dropped.
CREATE TABLE dlo_enqueue_key (
    id           INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    producer     TEXT NOT NULL,
    key          TEXT NOT NULL,
    envelope     BLOB NOT NULL,
    content_hash BLOB NOT NULL,
    first_seen   INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX dlo_enqueue_key_once ON dlo_enqueue_key (tenant, producer, key);

-- What entries carry. `id` is the sequence of the first entry of the fan-out; `refs` counts the live entries and dead
-- letters that still need the body. `key_id` names the codec key of `payload`: 'none' is plain.
CREATE TABLE dlo_envelope (
    id               INTEGER PRIMARY KEY,
    tenant           TEXT NOT NULL,
    envelope         BLOB NOT NULL,
    refs             INTEGER NOT NULL,
    event_type       TEXT NOT NULL,
    source_event_id  TEXT,
    correlation_id   TEXT,
    audit_residue_id TEXT,
    content_type     TEXT,
    meta_schema      INTEGER NOT NULL,
    meta             TEXT NOT NULL,
    payload_form     TEXT NOT NULL,
    payload_size     INTEGER NOT NULL,
    payload_sha256   BLOB,
    key_id           TEXT NOT NULL,
    payload          BLOB
) STRICT;

-- Live entries only: few and narrow. A claimed row names its claim; everything else about the claim is in dlo_claim.
CREATE TABLE dlo_entry (
    seq             INTEGER PRIMARY KEY,
    tenant          TEXT NOT NULL,
    entry           BLOB NOT NULL,
    generation      INTEGER NOT NULL,
    destination     TEXT NOT NULL,
    envelope_ref    INTEGER NOT NULL,
    operation_key   TEXT NOT NULL,
    created         INTEGER NOT NULL,
    updated         INTEGER NOT NULL,
    not_before      INTEGER,
    deliver_by      INTEGER,
    -- The later of created and not_before: where max_age starts.
    age_from        INTEGER NOT NULL,
    lane            INTEGER NOT NULL,
    due             INTEGER NOT NULL,
    status          TEXT NOT NULL,
    manual_review   INTEGER NOT NULL DEFAULT 0,
    version         INTEGER NOT NULL,
    claims          INTEGER NOT NULL DEFAULT 0,
    failed          INTEGER NOT NULL DEFAULT 0,
    crashed         INTEGER NOT NULL DEFAULT 0,
    deferred        INTEGER NOT NULL DEFAULT 0,
    interrupted     INTEGER NOT NULL DEFAULT 0,
    base_claims      INTEGER NOT NULL DEFAULT 0,
    base_failed      INTEGER NOT NULL DEFAULT 0,
    base_crashed     INTEGER NOT NULL DEFAULT 0,
    base_deferred    INTEGER NOT NULL DEFAULT 0,
    base_interrupted INTEGER NOT NULL DEFAULT 0,
    attempts        INTEGER NOT NULL DEFAULT 0,
    first_claimed   INTEGER,
    first_failed    INTEGER,
    last_failed     INTEGER,
    last_class      TEXT,
    last_reason     TEXT,
    last_provider_code TEXT,
    last_text       TEXT,
    unanswered      INTEGER NOT NULL DEFAULT 0,
    origin          TEXT,
    claim_token     BLOB,
    send_mark       INTEGER NOT NULL DEFAULT 0,
    -- What ended the latest claim or wait, `settle` or `release`, and its fence (a token or a version, which is negative
    -- if maintenance came under it): the same verb under the same fence answers Applied again.
    last_verb       TEXT,
    last_token      BLOB,
    last_version    INTEGER
) STRICT;

CREATE UNIQUE INDEX dlo_entry_key ON dlo_entry (tenant, entry);

-- The claim reads only this: a held, waiting or claimed row is never looked at (I-16). The two columns of the condition
-- stand in it so that a selection needs no look at the table.
CREATE INDEX dlo_entry_ready ON dlo_entry (tenant, destination, lane, claim_token, manual_review, due)
    WHERE claim_token IS NULL AND manual_review = 0;

-- The sweep by age. Never-tried rows need no index of their own: they are due where max_age starts, or before.
CREATE INDEX dlo_entry_age ON dlo_entry (tenant, destination, age_from)
    WHERE (lane <> 0 OR due > age_from) AND manual_review = 0;
CREATE INDEX dlo_entry_deliver_by ON dlo_entry (tenant, destination, deliver_by)
    WHERE deliver_by IS NOT NULL AND manual_review = 0;
CREATE INDEX dlo_entry_manual_review ON dlo_entry (tenant, destination) WHERE manual_review = 1;
CREATE UNIQUE INDEX dlo_entry_origin ON dlo_entry (tenant, origin, destination) WHERE origin IS NOT NULL;

-- One row per claimed page, not per entry. `members` holds the sequences as 8-byte big-endian numbers; `open` counts
-- those that have not been settled or released.
CREATE TABLE dlo_claim (
    token        BLOB PRIMARY KEY CHECK (length(token) = 16),
    tenant       TEXT NOT NULL,
    destination  TEXT NOT NULL,
    incarnation  BLOB NOT NULL CHECK (length(incarnation) = 16),
    claimed      INTEGER NOT NULL,
    deadline     INTEGER NOT NULL,
    sole_suspect INTEGER NOT NULL CHECK (sole_suspect IN (0, 1)),
    open         INTEGER NOT NULL,
    members      BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dlo_worker (
    -- Order of starting.
    id          INTEGER PRIMARY KEY,
    incarnation BLOB NOT NULL UNIQUE CHECK (length(incarnation) = 16),
    worker      TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    mode        TEXT NOT NULL,
    started     INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    ended       INTEGER
) STRICT;

-- Ended generations that are not in quarantine: delivered, cancelled.
CREATE TABLE dlo_history (
    -- Order of ending: the sweep of retention takes the oldest.
    ended_seq       INTEGER PRIMARY KEY,
    tenant          TEXT NOT NULL,
    entry           BLOB NOT NULL,
    generation      INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    destination     TEXT NOT NULL,
    state           TEXT NOT NULL,
    operation_key   TEXT NOT NULL,
    created         INTEGER NOT NULL,
    ended           INTEGER NOT NULL,
    envelope        BLOB NOT NULL,
    event_type      TEXT NOT NULL,
    source_event_id TEXT,
    correlation_id  TEXT,
    content_type    TEXT,
    payload_size    INTEGER NOT NULL,
    payload_sha256  BLOB,
    receipt_kind    TEXT,
    receipt_id      TEXT,
    attempts        INTEGER NOT NULL,
    claims          INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    crashed         INTEGER NOT NULL,
    deferred        INTEGER NOT NULL,
    interrupted     INTEGER NOT NULL,
    fence_token     BLOB,
    fence_version   INTEGER
) STRICT;

CREATE UNIQUE INDEX dlo_history_key ON dlo_history (tenant, entry, generation);
-- Lists of entries go by the sequence of the generation.
CREATE INDEX dlo_history_seq ON dlo_history (seq);

-- Every attempt that did not simply succeed at once.
CREATE TABLE dlo_attempt (
    tenant        TEXT NOT NULL,
    entry         BLOB NOT NULL,
    number        INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    started       INTEGER NOT NULL,
    finished      INTEGER NOT NULL,
    outcome       TEXT NOT NULL,
    class         TEXT,
    reason        TEXT,
    rule          TEXT,
    phase         TEXT NOT NULL,
    http_status   INTEGER,
    provider_code TEXT,
    text          TEXT NOT NULL,
    charged       INTEGER NOT NULL CHECK (charged IN (0, 1)),
    token         BLOB,
    destination_version INTEGER NOT NULL,
    PRIMARY KEY (tenant, entry, number)
) STRICT, WITHOUT ROWID;

-- Quarantine.
CREATE TABLE dlo_dead_letter (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant          TEXT NOT NULL,
    id              BLOB NOT NULL CHECK (length(id) = 16),
    entry           BLOB NOT NULL,
    generation      INTEGER NOT NULL,
    entry_seq       INTEGER NOT NULL,
    destination     TEXT NOT NULL,
    destination_version INTEGER NOT NULL,
    envelope_ref    INTEGER NOT NULL,
    operation_key   TEXT NOT NULL,
    class           TEXT NOT NULL,
    reason          TEXT NOT NULL,
    code            TEXT NOT NULL,
    message         TEXT NOT NULL,
    rule            TEXT,
    last_class      TEXT,
    last_reason     TEXT,
    last_provider_code TEXT,
    last_text       TEXT,
    created         INTEGER NOT NULL,
    not_before      INTEGER,
    deliver_by      INTEGER,
    first_claimed   INTEGER,
    first_failed    INTEGER,
    last_failed     INTEGER,
    opened          INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    claims          INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    crashed         INTEGER NOT NULL,
    deferred        INTEGER NOT NULL,
    interrupted     INTEGER NOT NULL,
    unanswered      INTEGER NOT NULL CHECK (unanswered IN (0, 1)),
    fingerprint_version INTEGER NOT NULL,
    fingerprint     BLOB NOT NULL CHECK (length(fingerprint) = 16),
    template        TEXT NOT NULL,
    profile         TEXT NOT NULL DEFAULT 'native',
    state           TEXT NOT NULL,
    origin          TEXT,
    fence_token     BLOB,
    fence_version   INTEGER
) STRICT;

CREATE UNIQUE INDEX dlo_dead_letter_id ON dlo_dead_letter (tenant, id);
CREATE UNIQUE INDEX dlo_dead_letter_key ON dlo_dead_letter (tenant, entry, generation);
CREATE INDEX dlo_dead_letter_group ON dlo_dead_letter (tenant, destination, fingerprint);
-- Lists of entries: a dead letter that was redriven is not the latest generation of its entry.
CREATE INDEX dlo_dead_letter_entry_seq ON dlo_dead_letter (entry_seq) WHERE state <> 'redriven';

-- Audit events of operators' acts: insert-only.
CREATE TABLE dlo_audit_event (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    id       BLOB NOT NULL CHECK (length(id) = 16),
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    strength TEXT NOT NULL,
    act      TEXT NOT NULL,
    target   TEXT NOT NULL,
    reason   TEXT,
    detail   TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX dlo_audit_event_id ON dlo_audit_event (tenant, id);
CREATE TRIGGER dlo_audit_event_no_update BEFORE UPDATE ON dlo_audit_event
    BEGIN SELECT RAISE(ABORT, 'dlo_audit_event is insert-only'); END;
CREATE TRIGGER dlo_audit_event_no_delete BEFORE DELETE ON dlo_audit_event
    BEGIN SELECT RAISE(ABORT, 'dlo_audit_event is insert-only'); END;

-- The ledger of redrives: one row an item, refused and missing ones too; insert-only. The unique index is what makes
-- a release insert-if-absent (I-15).
CREATE TABLE dlo_redrive_item (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    redrive     BLOB NOT NULL CHECK (length(redrive) = 16),
    dead_letter BLOB NOT NULL CHECK (length(dead_letter) = 16),
    result      TEXT NOT NULL,
    code        TEXT,
    entry       BLOB,
    generation  INTEGER,
    at          INTEGER NOT NULL,
    audit       BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX dlo_redrive_item_once ON dlo_redrive_item (tenant, dead_letter) WHERE result = 'redriven';
CREATE TRIGGER dlo_redrive_item_no_update BEFORE UPDATE ON dlo_redrive_item
    BEGIN SELECT RAISE(ABORT, 'dlo_redrive_item is insert-only'); END;
CREATE TRIGGER dlo_redrive_item_no_delete BEFORE DELETE ON dlo_redrive_item
    BEGIN SELECT RAISE(ABORT, 'dlo_redrive_item is insert-only'); END;
