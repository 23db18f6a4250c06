//! What reading verbs answer. No payload byte is in any of it (I-13).

use dlo_core::{
    Attempt, Class, Counters, DeadLetter, DeadLetterId, DeadLetterState, Destination, DestinationName, Entry, EntryKey,
    EntryState, EnvelopeId, Health, Incarnation, OperationKey, Reason, Receipt, RedriveId, Status, TenantId, Timestamp,
    WorkerId, dead_letter::PayloadSummary, entry::LastFailure, fingerprint::Fingerprint, text::ActText,
};

/// A page request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Continue after this cursor.
    pub after: Option<u64>,
    /// Rows, 1 to [`dlo_core::limits::MAX_PAGE`].
    pub limit: usize,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Rows.
    pub rows: Vec<T>,
    /// Cursor of the next page, if there is one.
    pub next: Option<u64>,
}

/// Which entries to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Tenant, or all.
    pub tenant: Option<TenantId>,
    /// Destination, or all.
    pub destination: Option<DestinationName>,
    /// State, or all.
    pub state: Option<EntryState>,
    /// CloudEvents `type`, exactly, or all.
    pub event_type: Option<String>,
    /// CloudEvents `id` as the producer gave it, exactly, or all. Sources may give the same one.
    pub source_event_id: Option<String>,
}

/// A row of an entry list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySummary {
    /// Key of the latest generation.
    pub key: EntryKey,
    /// Cursor.
    pub seq: u64,
    /// Destination.
    pub destination: DestinationName,
    /// Where it is.
    pub state: EntryState,
    /// Ready and due, but its destination is held.
    pub held: bool,
    /// Status, if S-03 has one for the state.
    pub status: Option<Status>,
    /// Start of the generation.
    pub created: Timestamp,
    /// When it may be tried, if it waits (state `waiting`).
    pub due: Option<Timestamp>,
    /// Attempts recorded over the lineage.
    pub attempts: u32,
    /// Latest failure's class and reason.
    pub last_failure: Option<(Class, Reason)>,
    /// CloudEvents `type`; `None` if it can't be read.
    pub event_type: Option<String>,
    /// CloudEvents `id`; `None` if the producer gave none or it can't be read.
    pub source_event_id: Option<String>,
}

/// What the envelope of an entry is, without payload bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeView {
    /// Id.
    pub id: EnvelopeId,
    /// CloudEvents `type`.
    pub event_type: String,
    /// CloudEvents `source`.
    pub source: Option<String>,
    /// CloudEvents `id`.
    pub source_event_id: Option<String>,
    /// CloudEvents `subject`.
    pub subject: Option<String>,
    /// CloudEvents `time`.
    pub occurred: Option<Timestamp>,
    /// Correlation id.
    pub correlation_id: Option<String>,
    /// Audit residue id.
    pub audit_residue_id: Option<String>,
    /// Payload summary.
    pub payload: PayloadSummary,
}

/// How one generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub generation: u32,
    /// How.
    pub state: EntryState,
    /// When.
    pub at: Timestamp,
    /// Proof of delivery, if there is one.
    pub receipt: Option<Receipt>,
    /// The dead letter, if it ended in quarantine.
    pub dead_letter: Option<DeadLetterId>,
    /// Counters at the end.
    pub counters: Counters,
}

/// Everything about one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryView {
    /// Latest generation.
    pub summary: EntrySummary,
    /// Operation key.
    pub operation_key: OperationKey,
    /// Its envelope; `None` when the body is gone by retention or can't be read. Of a delivered or cancelled entry a
    /// store need keep only the id, event type, source event id, correlation id and payload summary.
    ///
    /// Once delivered or cancelled, and without a dead letter in the lineage, a store may keep less of it: id, type, source
    /// event id, correlation id and payload summary.
    pub envelope: Option<EnvelopeView>,
    /// The live row, if the latest generation lives.
    pub live: Option<Entry>,
    /// Ended generations, oldest first.
    pub ended: Vec<Ended>,
    /// Attempts over the lineage, oldest first.
    pub attempts: Vec<Attempt>,
    /// Latest failure of the latest generation in full. Of a delivered or cancelled entry a store need not keep it here
    /// (nor in the summary): its attempts tell.
    pub last_failure: Option<LastFailure>,
}

/// Which dead letters to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Tenant, or all.
    pub tenant: Option<TenantId>,
    /// Destination, or all.
    pub destination: Option<DestinationName>,
    /// Class, or all.
    pub class: Option<Class>,
    /// Reason of the cause, or all.
    pub reason: Option<Reason>,
    /// State, or all.
    pub state: Option<DeadLetterState>,
    /// Hash of the fingerprint ([`Fingerprint::hash`]), or all.
    pub fingerprint: Option<[u8; 16]>,
}

/// A dead letter with its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterView {
    /// The record.
    pub dead_letter: DeadLetter,
    /// Envelope without payload bytes, if it can be read.
    pub envelope: Option<EnvelopeView>,
    /// Attempts over the lineage, oldest first.
    pub attempts: Vec<Attempt>,
}

/// Dead letters with one fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Fingerprint and template.
    pub fingerprint: Fingerprint,
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Class.
    pub class: Class,
    /// Reason.
    pub reason: Reason,
    /// Members.
    pub count: u64,
    /// Members that are open.
    pub open: u64,
    /// First opened.
    pub first: Timestamp,
    /// Last opened.
    pub last: Timestamp,
}

/// Live entries of a destination by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Due and unclaimed (held ones included).
    pub ready: u64,
    /// Due later.
    pub waiting: u64,
    /// Under a lease.
    pub claimed: u64,
    /// Set aside for a person.
    pub manual_review: u64,
    /// Open dead letters.
    pub dead_letters_open: u64,
}

/// A destination as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationView {
    /// Configuration and version.
    pub destination: Destination,
    /// Health.
    pub health: Health,
    /// Depth.
    pub depth: Depth,
}

/// A worker as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Name.
    pub worker: WorkerId,
    /// Start of it.
    pub incarnation: Incarnation,
    /// Process id that it gave.
    pub pid: u32,
    /// When it started.
    pub started: Timestamp,
    /// Lease end by its latest heartbeat.
    pub lease_until: Timestamp,
    /// When it ended, if it said so or was ended.
    pub ended: Option<Timestamp>,
    /// Entries that it holds.
    pub claims: u64,
}

/// An audit event as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditView {
    /// Cursor.
    pub seq: u64,
    /// When, by the database's clock.
    pub at: Timestamp,
    /// Its id.
    pub id: dlo_core::AuditId,
    /// Tenant.
    pub tenant: TenantId,
    /// Actor's name.
    pub actor: String,
    /// `asserted` or `authenticated`.
    pub strength: String,
    /// Act.
    pub act: String,
    /// Target.
    pub target: String,
    /// Reason.
    pub reason: Option<ActText>,
    /// Detail as a JSON object.
    pub detail_json: String,
}

/// A row of the redrive ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Cursor.
    pub seq: u64,
    /// Redrive.
    pub redrive: RedriveId,
    /// Dead letter that was asked for.
    pub dead_letter: DeadLetterId,
    /// `redriven`, `refused` or `missing`.
    pub result: String,
    /// Why it was refused, as a code.
    pub code: Option<String>,
    /// The new generation, if it was redriven.
    pub key: Option<EntryKey>,
    /// When.
    pub at: Timestamp,
    /// Audit event of the act.
    pub audit: dlo_core::AuditId,
}

/// Totals of dead letters by destination, class and reason: `dead_letters_total`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetterTotal {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Class.
    pub class: Class,
    /// Reason.
    pub reason: Reason,
    /// How many since the database was made.
    pub total: u64,
}

/// Figures of one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationStats {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Depth now.
    pub depth: Depth,
    /// When the oldest due entry became due.
    pub oldest_due: Option<Timestamp>,
    /// Held by a person or by evidence.
    pub held: bool,
    /// Entries enqueued since the database was made, redrives included.
    pub enqueued_total: u64,
    /// Delivered since the database was made.
    pub delivered_total: u64,
    /// Cancelled since the database was made.
    pub cancelled_total: u64,
    /// Failed attempts charged since the database was made.
    pub failed_attempts_total: u64,
}

/// Figures of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The database's time.
    pub now: Timestamp,
    /// By destination, in order.
    pub destinations: Vec<DestinationStats>,
    /// Dead letters by destination, class and reason.
    pub dead_letters: Vec<DeadLetterTotal>,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the invariant, for example `I-03`.
    pub invariant: &'static str,
    /// What breaks it: ids and states, never content.
    pub what: String,
}

/// What a store is and promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDescription {
    /// `sqlite`, `postgres`, `model`.
    pub kind: &'static str,
    /// Where it is.
    pub location: String,
    /// Version of its engine.
    pub engine_version: String,
    /// Schema version.
    pub schema_version: u64,
    /// What a commit promises, in sentences.
    pub promises: Vec<String>,
    /// What could make it promise less, in sentences.
    pub warnings: Vec<String>,
}
