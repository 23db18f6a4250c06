//! Verbs of a store. A verb is a transaction; its answer is given after the commit.
//!
//! The verbs are cut by authority (I-17): [`EnqueueStore`] for producers, [`DrainStore`] for workers, [`OfficeStore`]
//! for operators, [`ReadStore`] for whoever may look.

use core::time::Duration;
use std::sync::Arc;

use dlo_core::{
    AuditEvent, ClaimRef, DeadLetterDraft, DeadLetterId, Destination, DestinationName, DestinationSpec, Entry, EntryId,
    EntryKey, Envelope, EnvelopeId, Health, Incarnation, NewEntry, RedriveId, TenantId, Timestamp, Token,
    TransitionResult, WorkerId, decide::Transition, health::Admission, policy::DrainMode, text::ActText,
};

use crate::{BoxFuture, StoreError};

pub use crate::view::*;

/// Result of a verb.
pub type StoreResult<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Answer to one enqueue item. An item never raises: the others, and the caller's transaction, go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueAnswer {
    /// Saved; will be delivered at least once, or end in quarantine.
    Created {
        /// The envelope.
        envelope: EnvelopeId,
        /// One entry per destination, in the order of the destinations.
        entries: Vec<(EntryId, DestinationName)>,
    },
    /// The same key with the same content was saved before; nothing was added.
    Existing {
        /// The envelope that was saved first.
        envelope: EnvelopeId,
    },
    /// The same key was saved before with other content; nothing was added.
    Conflict {
        /// The envelope that was saved first.
        envelope: EnvelopeId,
    },
    /// Not saved.
    Refused(Refusal),
}

/// Why an enqueue item was not saved. Each has a stable code and a page in `docs/errors/`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The envelope breaks a bound.
    #[error(transparent)]
    Envelope(#[from] dlo_core::envelope::EnvelopeError),
    /// A named destination does not exist.
    #[error(
        "destination `{destination}` does not exist in tenant `{tenant}`: apply it first (`dlo destinations apply`)"
    )]
    UnknownDestination {
        /// Tenant.
        tenant: TenantId,
        /// Destination.
        destination: DestinationName,
    },
    /// No destination named, and no event-type rule takes it.
    #[error("no destination of tenant `{tenant}` takes this event type: name one, or add an `event_types` rule")]
    NoRoute {
        /// Tenant.
        tenant: TenantId,
    },
    /// More destinations than one item may have.
    #[error("{seen} destinations for one item: at most {limit} are allowed")]
    FanOut {
        /// How many were given.
        seen: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The destination's backlog is full.
    #[error("backlog of destination `{destination}` is full: {seen} entries wait and `backlog_limit` is {limit}")]
    BacklogFull {
        /// Destination.
        destination: DestinationName,
        /// Live entries.
        seen: u64,
        /// The limit.
        limit: u64,
    },
    /// `deliver_by` is not after now, or not after `not_before`.
    #[error("`deliver_by` {deliver_by} is not after {earliest}: nothing could be delivered in time")]
    DeadlinePassed {
        /// What was given.
        deliver_by: Timestamp,
        /// What it must be after.
        earliest: Timestamp,
    },
}

impl Refusal {
    /// Stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Envelope(_) => "enqueue.envelope_invalid",
            Self::UnknownDestination { .. } => "enqueue.unknown_destination",
            Self::NoRoute { .. } => "enqueue.no_route",
            Self::FanOut { .. } => "enqueue.fan_out",
            Self::BacklogFull { .. } => "enqueue.backlog_full",
            Self::DeadlinePassed { .. } => "enqueue.deadline_passed",
        }
    }

    /// All codes.
    pub const CODES: [&'static str; 6] = [
        "enqueue.envelope_invalid",
        "enqueue.unknown_destination",
        "enqueue.no_route",
        "enqueue.fan_out",
        "enqueue.backlog_full",
        "enqueue.deadline_passed",
    ];
}

/// Producers' verbs.
pub trait EnqueueStore: Send + Sync {
    /// Saves items; one answer each, in order. At most [`dlo_core::limits::MAX_ENQUEUE_BATCH`] items.
    fn enqueue(&self, items: Vec<NewEntry>) -> StoreResult<'_, Vec<EnqueueAnswer>>;
}

/// A worker process that starts.
#[derive(Clone, Debug)]
pub struct WorkerStart {
    /// Name.
    pub worker: WorkerId,
    /// This start of it.
    pub incarnation: Incarnation,
    /// How it claims.
    pub mode: DrainMode,
    /// Its lease.
    pub lease: Duration,
    /// Process id, for people.
    pub pid: u32,
}

/// Which destinations an engine looks after (S-08); empty lists mean all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Tenants.
    pub tenants: Vec<TenantId>,
    /// Destinations.
    pub destinations: Vec<DestinationName>,
}

impl Scope {
    /// Whether it takes this destination.
    pub fn takes(&self, tenant: &TenantId, destination: &DestinationName) -> bool {
        (self.tenants.is_empty() || self.tenants.contains(tenant))
            && (self.destinations.is_empty() || self.destinations.contains(destination))
    }
}

/// A destination that has unclaimed live entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDestination {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Current version of it.
    pub version: u64,
    /// Earliest due time over its lanes.
    pub next_due: Timestamp,
    /// Whether, and how, it may be claimed from.
    pub admission: Admission,
}

/// A page of destinations with work, and the store's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePage {
    /// The database's time.
    pub now: Timestamp,
    /// In order of (tenant, destination).
    pub destinations: Vec<DueDestination>,
    /// Whether there are more after the last.
    pub more: bool,
}

/// What to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// Up to `limit` from the retry lane (at most half, more if the pending lane has fewer) and the pending lane.
    Normal,
    /// At most one entry of the suspect lane, flagged as the sole suspect. Takes pace like any claim.
    Suspect,
    /// Among the first [`dlo_core::limits::PROBE_WINDOW`] due entries of all lanes, the one with the fewest failed
    /// attempts in its generation (ties by due, seq). Refused unless the destination is due for a probe.
    Probe,
}

/// A claim on one destination.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Who claims; must be registered and alive.
    pub incarnation: Incarnation,
    /// Fence of the page; fresh for every request.
    pub token: Token,
    /// Hard deadline of the claim, from now; [`Duration::MAX`] for a lease without end.
    pub hold_for: Duration,
    /// At most this many, 1 to [`dlo_core::limits::MAX_PAGE`].
    pub limit: usize,
    /// What to claim.
    pub kind: ClaimKind,
}

/// A claimed entry with its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The entry as it is now, claim included; `version` is the one after the claim.
    pub entry: Entry,
    /// What it carries.
    pub envelope: Arc<Envelope>,
}

/// What a claim got.
#[derive(Clone, Debug)]
pub struct ClaimPage {
    /// The database's time.
    pub now: Timestamp,
    /// The destination as it stands, so that a change of version is seen at once.
    pub destination_version: u64,
    /// Health after the claim (pace taken, probe begun).
    pub health: Health,
    /// The entries, in order.
    pub claimed: Vec<Claimed>,
    /// Rows that could not be read: quarantined in the same transaction, each by itself (trap D10).
    pub quarantined: Vec<EntryKey>,
    /// Whether more is due now and was left because of `limit` (not because of pace).
    pub more: bool,
    /// When pace lets the next entry go, if pace stopped this claim.
    pub paced_until: Option<Timestamp>,
}

/// One transition to save.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Entry and fence.
    pub claim: ClaimRef,
    /// What `decide` said.
    pub transition: Transition,
}

/// Transitions of one destination, with what `observe` said about it.
#[derive(Clone, Debug)]
pub struct SettleRequest {
    /// Tenant.
    pub tenant: TenantId,
    /// Destination.
    pub destination: DestinationName,
    /// Transitions.
    pub settlements: Vec<Settlement>,
    /// New health, to be saved if the stored version is still this one.
    pub health: Option<HealthChange>,
}

/// Compare-and-set of health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthChange {
    /// Version that it was computed from.
    pub expected: u64,
    /// New content; the store sets its version to `expected + 1`.
    pub health: Health,
}

/// Answer to a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleAnswer {
    /// One result each, in order.
    pub results: Vec<TransitionResult>,
    /// Health as it is stored now: equal to the change (with its new version) if that was applied.
    pub health: Health,
    /// Whether the health change was applied (true when there was none).
    pub health_applied: bool,
}

/// What to prune in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRequest {
    /// Delivered and cancelled history that ended longer ago than this goes, unless its lineage has a dead letter.
    pub history: Duration,
    /// Enqueue keys first seen longer ago than this go.
    pub enqueue_keys: Duration,
    /// At most this many rows of each kind, 1 to 1,000.
    pub limit: usize,
}

/// What was pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// History rows.
    pub history: u64,
    /// Enqueue keys.
    pub enqueue_keys: u64,
    /// Whether a limit was met, so that there may be more.
    pub more: bool,
}

/// Called after a commit that may have made work ready. Must not block.
pub type ChangeHook = Arc<dyn Fn() + Send + Sync>;

/// Workers' verbs. Leases and due times are stamped and judged by the database's clock (I-06).
pub trait DrainStore: Send + Sync {
    /// Registers a worker. Fails with `Fenced` when the store admits no further engine, or (plain mode) while another's
    /// live claim exists. Claims of incarnations that can't be alive any more become lost at once.
    fn start_worker(&self, start: WorkerStart) -> StoreResult<'_, Timestamp>;

    /// Renews the lease of a process. `Fenced` if the incarnation has ended.
    fn heartbeat(&self, incarnation: Incarnation, lease: Duration) -> StoreResult<'_, Timestamp>;

    /// Ends a worker; its open claims become lost at once.
    fn stop_worker(&self, incarnation: Incarnation) -> StoreResult<'_, ()>;

    /// Destinations with unclaimed live entries, after a key, in order, at most `limit`. A bounded skip scan.
    fn due_destinations(
        &self,
        scope: Scope,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, DuePage>;

    /// A destination with its health.
    fn destination(
        &self,
        tenant: TenantId,
        destination: DestinationName,
    ) -> StoreResult<'_, Option<(Destination, Health)>>;

    /// Claims. Holds are predicates of the claim: a held destination gives an empty page.
    fn claim(&self, request: ClaimRequest) -> StoreResult<'_, ClaimPage>;

    /// Sets send marks: durable before the answer, so before the first byte.
    fn mark_sent(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>>;

    /// Saves transitions, their dead letters and attempts, and the destination's health. Repeatable.
    fn settle(&self, request: SettleRequest) -> StoreResult<'_, SettleAnswer>;

    /// Gives claims back uncharged (`interrupted` + 1): the entries are as before the claim.
    fn release(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>>;

    /// Claimed entries whose worker is gone or whose hard deadline has passed, at most `limit`, with their claims.
    fn lost_claims(&self, limit: usize) -> StoreResult<'_, Vec<Entry>>;

    /// Unclaimed live entries of a destination past `max_age` or `deliver_by`, at most `limit`. Manual review is left.
    fn overdue(
        &self,
        tenant: TenantId,
        destination: DestinationName,
        max_age: Duration,
        limit: usize,
    ) -> StoreResult<'_, Vec<Entry>>;

    /// Drops old history and enqueue keys.
    fn prune(&self, request: PruneRequest) -> StoreResult<'_, Pruned>;

    /// Asks to be told of changes, of this process at once and of others soon.
    fn on_change(&self, hook: ChangeHook);
}

/// How a destination changed when it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which.
    pub destination: DestinationName,
    /// Its version now.
    pub version: u64,
    /// What happened.
    pub change: AppliedChange,
}

/// See [`Applied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedChange {
    /// New.
    Created,
    /// Another version.
    Updated,
    /// As it was.
    Unchanged,
}

/// What became of one item of an operator's act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActResult {
    /// Done.
    Done,
    /// It was so already.
    Unchanged,
    /// There is no such thing.
    Missing,
    /// Not allowed in the state that it is in.
    WrongState(&'static str),
}

/// An act on destinations' holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldAct {
    /// Hold until a person releases it.
    Hold {
        /// Why.
        reason: ActText,
    },
    /// End every hold, by a person or by evidence.
    Release,
    /// One try now.
    Probe,
}

/// An act on live entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAct {
    /// Ends it: not delivered, not dead-lettered. Not while claimed.
    Cancel,
    /// Due at that time at the latest. Out of manual review it starts a new generation.
    RetryNow {
        /// When.
        due: Timestamp,
    },
    /// Out of manual review into quarantine.
    DeadLetter(Box<DeadLetterDraft>),
}

/// Result of one item of a redrive; each has a ledger row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedriveResult {
    /// A new generation is ready.
    Redriven {
        /// Its key.
        key: EntryKey,
    },
    /// Refused; the dead letter is as it was.
    Refused(dlo_core::dead_letter::RedriveRefusal),
    /// There is no such dead letter.
    Missing,
}

/// Operators' verbs. Each takes its audit event and saves it in the same transaction (I-12).
pub trait OfficeStore: Send + Sync {
    /// Creates and updates destinations. All or none.
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>>;

    /// Holds, releases or probes destinations; results in order.
    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>>;

    /// Acts on live entries; results in order. At most [`dlo_core::limits::MAX_PAGE`].
    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>>;

    /// Redrives dead letters by id: generation + 1 of the same entry, same operation key, counters kept and baselined.
    /// Insert-if-absent: an item that is not open any more is refused (I-15). Every item gets a ledger row.
    fn redrive(
        &self,
        tenant: TenantId,
        redrive: RedriveId,
        items: Vec<DeadLetterId>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<RedriveResult>>;
}

/// Reading verbs. Lists are keyset-paged by sequence, newest first where it says so, at most
/// [`dlo_core::limits::MAX_PAGE`] rows.
pub trait ReadStore: Send + Sync {
    /// One entry with all generations, attempts and dead letters; one snapshot (I-18).
    fn entry(&self, tenant: TenantId, entry: EntryId) -> StoreResult<'_, Option<EntryView>>;

    /// Entries, newest first.
    fn entries(&self, filter: EntryFilter, page: PageRequest) -> StoreResult<'_, Page<EntrySummary>>;

    /// One dead letter with its attempts.
    fn dead_letter(&self, tenant: TenantId, id: DeadLetterId) -> StoreResult<'_, Option<DeadLetterView>>;

    /// Dead letters, newest first.
    fn dead_letters(&self, filter: DeadLetterFilter, page: PageRequest) -> StoreResult<'_, Page<dlo_core::DeadLetter>>;

    /// Groups of dead letters by fingerprint, most numerous first, at most `limit`.
    fn groups(&self, filter: DeadLetterFilter, limit: usize) -> StoreResult<'_, Vec<Group>>;

    /// Destinations with health and depth, in order of (tenant, name).
    fn destinations(
        &self,
        tenant: Option<TenantId>,
        after: Option<(TenantId, DestinationName)>,
        limit: usize,
    ) -> StoreResult<'_, Vec<DestinationView>>;

    /// Workers that are or were registered, newest first.
    fn workers(&self, limit: usize) -> StoreResult<'_, Vec<WorkerView>>;

    /// Audit events, newest first.
    fn audit_events(&self, tenant: Option<TenantId>, page: PageRequest) -> StoreResult<'_, Page<AuditView>>;

    /// The ledger of redrives, newest first.
    fn redrive_ledger(&self, tenant: TenantId, page: PageRequest) -> StoreResult<'_, Page<LedgerRow>>;

    /// Depth, age and totals of every destination.
    fn stats(&self) -> StoreResult<'_, Stats>;

    /// Checks the invariants that a database alone can show; at most `limit` violations.
    fn check(&self, limit: usize) -> StoreResult<'_, Vec<Violation>>;

    /// What this store is and what its commit promises.
    fn describe(&self) -> StoreResult<'_, StoreDescription>;
}

/// A whole store.
pub trait Store: EnqueueStore + DrainStore + OfficeStore + ReadStore {}

impl<S: EnqueueStore + DrainStore + OfficeStore + ReadStore> Store for S {}
