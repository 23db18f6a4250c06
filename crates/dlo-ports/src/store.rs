//! Verbs of a store. A verb is a transaction; its answer is given after the commit.
//!
//! The verbs are cut by authority (I-17): [`EnqueueStore`] for producers, [`DrainStore`] for workers, [`OfficeStore`]
//! for operators, [`ReadStore`] for whoever may look.
//!
//! # Rules that every store keeps
//!
//! The conformance suite checks each of them, and the model store is built of nothing else.
//!
//! - **Time.** A verb reads the database's clock once; everything that it stamps or judges uses that one time. The
//!   clock may go back: a time is *reached* when it is `<= now`, and nothing else is assumed. A lease or deadline that
//!   is reached is over.
//! - **Bounds.** A batch or page outside its bounds is `Invalid` and changes nothing: batches of workers and acts have
//!   at most [`dlo_core::limits::MAX_PAGE`] items, limits are 1 to it (prune: 1 to 1,000). Empty batches do nothing.
//! - **Rows.** A generation has one row with one sequence number, given in save order, so a redriven entry gets a new
//!   one; dead letters, audit events and the ledger have a sequence each. Row versions start at 1 and grow by exactly
//!   1 with every change; so do destination versions. A new destination has health version 0, and every saved change
//!   of health adds 1.
//! - **Fences** (I-04, I-05). [`Fence::Claim`] holds while that token holds the row, whether or not its lease or
//!   deadline is over (trap D16): as long as nobody ended the claim, its worker may still settle it.
//!   [`Fence::Version`] and [`Fence::Maintenance`] hold while the row has that version. A broken fence changes nothing and is answered
//!   * [`TransitionResult::Missing`] when the tenant has no such entry or generation, or it is another destination's;
//!   * [`TransitionResult::Terminal`] when the generation has ended, or was left for a later one;
//!   * [`TransitionResult::StaleClaim`] (claim) or [`TransitionResult::ConcurrencyLost`] (version) otherwise.
//!
//!   *Repeats.* A row, live or ended, remembers which verb (settle or release) ended its latest claim or wait, under
//!   which fence. The same verb under the same fence is `Applied` again and changes nothing; ended by an operator, a
//!   row answers `Terminal`.
//! - **Attempts** are kept for a lineage; of each generation the first and the newest, together at most
//!   [`dlo_core::limits::MAX_ATTEMPTS_KEPT`].
//! - **Live** means: the latest generation has not ended. Manual review is live, and is left out of every selection.
//! - **Lists** go newest first by sequence; `after` means `seq < after`; `next` is the sequence of the last row, and is
//!   there exactly when there are further rows. A filter that takes few rows of many does not make a store read on and
//!   on: after a bounded number of rows (at least 10,000) the page may end early, even without a row, and `next` is the
//!   sequence of the last row that was looked at. So a caller goes on until there is no `next`.

use core::time::Duration;
use std::sync::Arc;

#[cfg(doc)]
use dlo_core::Fence;
use dlo_core::{
    AuditEvent, ClaimRef, DeadLetterId, Destination, DestinationName, DestinationSpec, Entry, EntryId, EntryKey,
    Envelope, Health, Incarnation, NewEntry, RedriveId, TenantId, Timestamp, Token, TransitionResult, WorkerId,
    decide::Transition, health::Admission, policy::DrainMode,
};

use crate::{BoxFuture, StoreError};

pub use crate::{act::*, enqueue::*, view::*};

/// Result of a verb.
pub type StoreResult<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Producers' verbs.
pub trait EnqueueStore: Send + Sync {
    /// Saves items; one answer each, in order. At most [`dlo_core::limits::MAX_ENQUEUE_BATCH`] items.
    ///
    /// Each item is checked in this order, and the first that fails is its answer; nothing else of it is saved:
    /// 1. the envelope's bounds; 2. the number of named destinations (fan-out);
    /// 3. the enqueue key within (tenant, producer): seen before, it is `Existing` with the same content hash and
    ///    `Conflict` with another (trap D18); the envelope id is no key of its own;
    /// 4. destinations: the named ones, each once, in the order given; none named: all of the tenant whose
    ///    `event_types` take it, in name order (none: `NoRoute`; more than the fan-out limit: `FanOut`);
    /// 5. `deliver_by` must be after the later of now and `not_before`;
    /// 6. live entries of each destination, those of this batch included, must be fewer than `backlog_limit`.
    ///
    /// A new entry stands in the pending lane, due at the later of now and `not_before`; without an operation key it
    /// gets its own id as text.
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
    /// Up to `limit` from the retry lane (at most half, rounded down; more if the pending lane has fewer) and the
    /// pending lane; for one alone, the head that was due first. Lanes are read by (due, seq) (S-09); retries come
    /// first in the page. Only while the destination is open.
    Normal,
    /// At most one entry of the suspect lane, by (due, seq), flagged as the sole suspect. Takes pace like any claim.
    /// Only while the destination is open.
    Suspect,
    /// Among the first [`dlo_core::limits::PROBE_WINDOW`] due entries of all lanes by (due, seq), the one with the
    /// fewest failed attempts in its generation (ties by due, seq). Only while the destination is due for a probe;
    /// takes the probe ([`dlo_core::observe::begin_probe`]) if there is an entry, and no pace. Never says `more`.
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
    /// Whether more is due now and was left because of `limit` or of [`dlo_core::limits::CLAIM_BYTES`] (not because of
    /// pace).
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
    /// live claim exists. Claims of incarnations that can't be alive any more become lost at once. The answer is the
    /// database's time. The same start again renews the lease; `Fenced` if it has ended.
    ///
    /// A live claim is one that is not lost. While a plain-mode worker is alive, no other starts; one whose lease is over
    /// ends when another starts.
    fn start_worker(&self, start: WorkerStart) -> StoreResult<'_, Timestamp>;

    /// Renews the lease of a process, even when it is over. `Fenced` if the incarnation has ended or never started.
    /// The answer is the database's time.
    fn heartbeat(&self, incarnation: Incarnation, lease: Duration) -> StoreResult<'_, Timestamp>;

    /// Ends a worker; its open claims become lost at once. Ending what has ended, or never started, does nothing.
    fn stop_worker(&self, incarnation: Incarnation) -> StoreResult<'_, ()>;

    /// Destinations with unclaimed live entries (due or not, held or not; manual review is left), after a key, in order
    /// of (tenant, name), at most `limit`. A bounded skip scan.
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

    /// Claims. Holds are predicates of the claim: a destination that is not open (or not due for a probe, if that is
    /// asked for) gives an empty page and changes nothing. `Fenced` if the incarnation is not registered, has ended, or
    /// its lease is over; `Invalid` if there is no such destination.
    ///
    /// Pace is taken first, for the smaller of `limit` and what is due; what it grants is the limit of the selection.
    /// A new time of the bucket is a change of health.
    ///
    /// If the payloads of the page are more than [`dlo_core::limits::CLAIM_BYTES`] together, the claim is instead what it
    /// would be under the largest `limit` for which they are not, or under 1: lanes keep their shares, no pace is taken
    /// for what is left, and the page says `more`. Bodies that can't be read count like others.
    ///
    /// A claim adds 1 to `claims`, sets `first_claimed` if nothing has,
    /// and leaves lane, due time and status as they were. A claimed entry is never claimed, even when its claim is
    /// over: it goes through [`Self::lost_claims`] first.
    fn claim(&self, request: ClaimRequest) -> StoreResult<'_, ClaimPage>;

    /// Sets send marks: durable before the answer, so before the first byte.
    ///
    /// A mark set under a claim token is a change of the row, so that maintenance which read the row without it loses
    /// its fence (I-10); under a row version (plain mode, where nobody else works) the version stays, so that the fence
    /// does. Setting it again is `Applied` and changes nothing.
    fn mark_sent(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>>;

    /// Saves transitions, their dead letters and attempts, and the destination's health. Repeatable.
    ///
    /// Each transition stands for itself: a broken fence stops neither the others nor the health change, which is
    /// saved exactly if its expected version is the stored one. `Wait` and `ManualReview` end the claim and keep the
    /// row (manual review: status Failed, lane and due time as they were); the others end the generation. Rows without
    /// a claim are settled under their version (overdue ones). `Invalid` if there is no such destination.
    fn settle(&self, request: SettleRequest) -> StoreResult<'_, SettleAnswer>;

    /// Gives claims back uncharged (`interrupted` + 1): lane, due time and status are as before the claim.
    ///
    /// A claim with a send mark is not given back: `StaleClaim`, nothing changed. It is settled, or becomes lost and is
    /// then judged by its mark (I-10).
    fn release(&self, claims: Vec<ClaimRef>) -> StoreResult<'_, Vec<TransitionResult>>;

    /// Claimed entries whose worker is gone or whose hard deadline has passed, at most `limit`, with their claims: the
    /// incarnation has ended, its lease is over, or the claim's deadline is reached. By sequence. In plain mode a lease
    /// has no end: what a plain-mode worker holds is lost only when its incarnation has ended.
    ///
    /// Claims of `except` are left out, whatever became of its lease: a process that is alive knows what it has in
    /// hand, and settles it or gives it back itself.
    ///
    /// Maintenance settles them under the row version that it read ([`Fence::Maintenance`]), so that a late worker is
    /// told `StaleClaim` or `ConcurrencyLost`, and that a worker which was quicker makes maintenance lose (I-05).
    fn lost_claims(&self, except: Option<Incarnation>, limit: usize) -> StoreResult<'_, Vec<Entry>>;

    /// Unclaimed live entries of a destination past `max_age` or `deliver_by`, at most `limit`. Manual review is left.
    /// Past means that [`Entry::expires`] is reached. In no promised order.
    fn overdue(
        &self,
        tenant: TenantId,
        destination: DestinationName,
        max_age: Duration,
        limit: usize,
    ) -> StoreResult<'_, Vec<Entry>>;

    /// Drops old history in the order in which it ended, and old enqueue keys in the order in which they were saved.
    /// An envelope goes with the last entry that carries it. A store may drop workers that ended long ago. Totals
    /// stay, and so does everything of a lineage that has a dead letter, whatever became of that (I-14).
    fn prune(&self, request: PruneRequest) -> StoreResult<'_, Pruned>;

    /// Asks to be told of changes, of this process at once and of others soon.
    fn on_change(&self, hook: ChangeHook);
}

/// Operators' verbs. Each takes its audit event and saves it in the same transaction (I-12).
pub trait OfficeStore: Send + Sync {
    /// Creates and updates destinations, in order. All or none. The same content again is `Unchanged`. Health is kept.
    /// Whether the content is valid is judged before.
    fn apply_destinations(&self, specs: Vec<DestinationSpec>, audit: AuditEvent) -> StoreResult<'_, Vec<Applied>>;

    /// Holds, releases or probes destinations; results in order. What the acts do to health is said by
    /// [`Health::hold_by_person`], [`Health::release`] and [`Health::request_probe`]; nothing to do is `Unchanged`, a
    /// probe of what nothing holds is `WrongState("open")`.
    fn act_on_destinations(
        &self,
        tenant: TenantId,
        destinations: Vec<DestinationName>,
        act: HoldAct,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>>;

    /// Acts on live entries; results in order. At most [`dlo_core::limits::MAX_PAGE`]. `WrongState` names the state
    /// that the entry is in ([`dlo_core::EntryState::as_str`]).
    fn act_on_entries(
        &self,
        tenant: TenantId,
        acts: Vec<(EntryId, EntryAct)>,
        audit: AuditEvent,
    ) -> StoreResult<'_, Vec<ActResult>>;

    /// Redrives dead letters by id: generation + 1 of the same entry, same operation key, counters kept and baselined.
    /// Insert-if-absent: an item that is not open any more is refused (I-15). Every item gets a ledger row. At most
    /// [`dlo_core::limits::MAX_REDRIVE_ITEMS`] items.
    ///
    /// Refusals are [`dlo_core::dead_letter::redrive_refusal`]'s. A new generation ([`Entry::next_generation`]) is due
    /// at the later of now and `not_before`; it is not measured against `backlog_limit`.
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
