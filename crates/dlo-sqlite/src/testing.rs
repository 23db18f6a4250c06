//! A file in memory, its verbs, and a clock in hand: what unit tests of verbs stand on.
#![allow(clippy::unwrap_used, reason = "tests")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use dlo_core::{
    Actor, AuditEvent, AuditId, AuthenticationStrength, ClaimRef, Class, DeadLetter, DeadLetterId, DeliveryPolicy,
    DestinationName, DestinationSpec, Duplicates, EntryId, Envelope, EnvelopeId, Failure, Fence, Incarnation, NewEntry,
    Outcome, Payload, PayloadForm, Phase, Reason, Receipt, RedriveId, TenantId, Timestamp, Token, TransitionResult,
    decide::{Context, Event, decide},
    policy::{Alternative, DrainMode, Jitter},
};
use dlo_ports::{
    StoreError,
    store::{
        ActResult, Applied, ClaimKind, ClaimRequest, Claimed, DeadLetterFilter, EnqueueAnswer, EntryAct, HoldAct,
        PageRequest, RedriveResult, SettleRequest, Settlement, Violation, WorkerStart,
    },
};
use rusqlite::{Connection, Params};

use crate::{
    batch::Batch,
    catalog, check, claim, enqueue, office, read, settle,
    turn::{Caches, Random, Turn},
    worker,
};

/// Destination of most tests: one failure dead-letters, duplicates are tolerated.
pub(crate) const MAIN: &str = "main";
/// A destination whose duplicates are harmful.
pub(crate) const HARMFUL: &str = "harmful";
/// A destination whose failures are set aside for a person.
pub(crate) const REVIEWED: &str = "reviewed";
/// Pages of everything.
pub(crate) const ALL: PageRequest = PageRequest { after: None, limit: 1_000 };

pub(crate) struct World {
    pub(crate) conn: Connection,
    pub(crate) now: Timestamp,
    caches: Caches,
    random: Random,
    ids: u64,
    incarnation: Incarnation,
}

pub(crate) fn name(text: &str) -> DestinationName {
    text.parse().unwrap()
}

pub(crate) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) fn spec(destination: &str) -> DestinationSpec {
    DestinationSpec {
        tenant: tenant(),
        name: name(destination),
        emitter: "noop".to_owned(),
        settings: "{}".to_owned(),
        duplicates: Duplicates::Tolerated,
        policy: DeliveryPolicy { max_retry_attempts: 2, jitter: Jitter::None, ..DeliveryPolicy::default() },
        pace: None,
        event_types: Vec::new(),
        owner: None,
        region: None,
    }
}

pub(crate) fn delivered() -> Outcome {
    Outcome::Delivered { receipt: Some(Receipt { kind: "provider".into(), id: Some("r-1".into()) }) }
}

fn failure(class: Class, reason: &'static str, phase: Phase) -> Failure {
    Failure::custom(class, Reason::known(reason), phase, "composed text")
}

/// Not taken, for a passing cause.
pub(crate) fn busy() -> Outcome {
    Outcome::RetryableFailure(failure(Class::Transient, "test.busy", Phase::Answered))
}

/// Refused for ever.
pub(crate) fn refused() -> Outcome {
    Outcome::Failed(failure(Class::Deterministic, "test.refused", Phase::Answered))
}

/// Sent, and no answer.
pub(crate) fn unanswered() -> Outcome {
    Outcome::Ambiguous(failure(Class::Ambiguous, "test.no_answer", Phase::Sent))
}

impl World {
    /// A fresh file with the three destinations and a worker.
    pub(crate) fn new() -> Self {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("migrations/0001_spine.sql")).unwrap();
        let counter = AtomicU64::new(1);
        let random: Random = Arc::new(move |bytes: &mut [u8]| {
            let count = counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            bytes.fill(0);
            let end = bytes.len() - count.len();
            bytes[end..].copy_from_slice(&count);
        });
        let now = Timestamp::from_micros(1_764_504_000_000_000);
        let incarnation = Incarnation::from_bytes([9; 16]);
        let mut world = Self { conn, now, caches: Caches::default(), random, ids: 0, incarnation };
        let harmful = DestinationSpec { duplicates: Duplicates::Harmful, ..spec(HARMFUL) };
        let mut reviewed = spec(REVIEWED);
        reviewed.policy.max_retry_attempts = 1;
        reviewed.policy.dead_letter_on_max_retry_attempts = false;
        reviewed.policy.alternative = Some(Alternative::ManualReview);
        world.apply(vec![spec(MAIN), harmful, reviewed]).unwrap();
        let start = WorkerStart {
            worker: "worker".parse().unwrap(),
            incarnation,
            mode: DrainMode::Claim,
            lease: Duration::from_secs(1_000_000),
            pid: 1,
        };
        world.turn(|turn| worker::start(turn, &start)).unwrap();
        world
    }

    /// Runs a verb in a transaction of its own; one that fails has changed nothing.
    pub(crate) fn turn<T>(
        &mut self,
        run: impl FnOnce(&mut Turn<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let tx = self.conn.transaction().unwrap();
        let answer = run(&mut Turn { tx: &tx, now: self.now, random: &*self.random, caches: &mut self.caches });
        match answer {
            Ok(answer) => {
                tx.commit().unwrap();
                Ok(answer)
            }
            Err(error) => {
                drop(tx);
                self.caches.clear();
                Err(error)
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn bytes16(&mut self) -> [u8; 16] {
        let mut bytes = [0x77; 16];
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes
    }

    pub(crate) fn advance(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    pub(crate) fn audit(&mut self, act: &'static str) -> AuditEvent {
        AuditEvent {
            id: AuditId::from_bytes(self.bytes16()),
            tenant: tenant(),
            actor: Actor { name: "local:operator".to_owned(), strength: AuthenticationStrength::Asserted },
            act,
            target: "target".to_owned(),
            reason: Some("because".into()),
            detail: BTreeMap::from([("count", "1".to_owned())]),
        }
    }

    pub(crate) fn apply(&mut self, specs: Vec<DestinationSpec>) -> Result<Vec<Applied>, StoreError> {
        let audit = self.audit("destination.apply");
        self.turn(|turn| office::apply_destinations(turn.tx, turn.now, &specs, &audit))
    }

    pub(crate) fn hold_act(&mut self, destination: &str, act: &HoldAct) -> ActResult {
        let audit = self.audit("destination.act");
        self.turn(|turn| office::act_on_destinations(turn.tx, turn.now, &tenant(), &[name(destination)], act, &audit))
            .unwrap()
            .remove(0)
    }

    pub(crate) fn act(&mut self, entry: EntryId, act: EntryAct) -> ActResult {
        let audit = self.audit("entry.act");
        self.turn(|turn| office::act_on_entries(turn.tx, turn.now, &tenant(), &[(entry, act)], &audit))
            .unwrap()
            .remove(0)
    }

    pub(crate) fn redrive(&mut self, items: &[DeadLetterId]) -> Result<Vec<RedriveResult>, StoreError> {
        let (audit, redrive) = (self.audit("redrive"), RedriveId::from_bytes(self.bytes16()));
        self.turn(|turn| office::redrive(turn.tx, turn.now, &tenant(), redrive, items, &audit))
    }

    /// Enqueues one entry.
    pub(crate) fn save(&mut self, destination: &str) -> EntryId {
        let item = self.item(destination);
        self.save_item(item)
    }

    pub(crate) fn item(&mut self, destination: &str) -> NewEntry {
        let id = EnvelopeId::from_bytes(self.bytes16());
        let payload = Payload::Bytes { bytes: Bytes::from_static(b"{\"do-not-show\":1}"), form: PayloadForm::Json };
        let envelope = Envelope {
            source: Some("/test".to_owned()),
            source_event_id: Some(format!("event-{}", self.ids)),
            correlation_id: Some("corr".to_owned()),
            content_type: Some("application/json".to_owned()),
            ..Envelope::new(id, tenant(), "test.happened", payload)
        };
        NewEntry::new(envelope).to(name(destination))
    }

    pub(crate) fn save_item(&mut self, item: NewEntry) -> EntryId {
        match self.save_items(&[item]).remove(0) {
            EnqueueAnswer::Created { entries, .. } => entries[0].0,
            other => panic!("not created: {other:?}"),
        }
    }

    /// Enqueues a batch.
    pub(crate) fn save_items(&mut self, items: &[NewEntry]) -> Vec<EnqueueAnswer> {
        let batch = Batch::new(items);
        self.turn(|turn| enqueue::enqueue(turn, &batch)).unwrap()
    }

    pub(crate) fn claim(&mut self, destination: &str) -> Vec<Claimed> {
        let request = ClaimRequest {
            tenant: tenant(),
            destination: name(destination),
            incarnation: self.incarnation,
            token: Token::from_bytes(self.bytes16()),
            hold_for: Duration::from_hours(1),
            limit: 100,
            kind: ClaimKind::Normal,
        };
        self.turn(|turn| claim::claim(turn, &request)).unwrap().claimed
    }

    pub(crate) fn settle(&mut self, claimed: &Claimed, outcome: Outcome) {
        let destination = catalog::latest(&self.conn, &tenant(), &claimed.entry.destination).unwrap().unwrap();
        let mut random = [7; 18];
        random[2..10].copy_from_slice(&self.next().to_be_bytes());
        let context =
            Context { destination: &destination, last_success: None, now: self.now, started: self.now, random };
        let transition = decide(&claimed.entry, &Event::Emitted(outcome), &context);
        let fence = Fence::Claim(claimed.entry.claim.unwrap().token);
        let claim = ClaimRef { key: claimed.entry.key.clone(), fence };
        let request = SettleRequest {
            tenant: tenant(),
            destination: claimed.entry.destination.clone(),
            settlements: vec![Settlement { claim, transition }],
            health: None,
        };
        let answer = self.turn(|turn| settle::settle(turn, &request)).unwrap();
        assert_eq!(answer.results, [TransitionResult::Applied]);
    }

    /// Enqueues, claims and settles one entry; nothing else may be due at the destination.
    pub(crate) fn ended(&mut self, destination: &str, outcome: Outcome) -> EntryId {
        let entry = self.save(destination);
        let claimed = self.claim(destination);
        assert_eq!(claimed.len(), 1, "nothing else is due");
        self.settle(&claimed[0], outcome);
        entry
    }

    /// Fails one entry into quarantine.
    pub(crate) fn dead(&mut self, destination: &str) -> DeadLetter {
        let entry = self.ended(destination, refused());
        self.dead_letter_of(entry)
    }

    pub(crate) fn dead_letter_of(&self, entry: EntryId) -> DeadLetter {
        let all = read::dead_letters(&self.conn, &DeadLetterFilter::default(), ALL).unwrap().rows;
        all.into_iter().find(|row| row.key.entry == entry).unwrap()
    }

    pub(crate) fn check(&self) -> Vec<Violation> {
        check::check(&self.conn, 1_000).unwrap()
    }

    /// Damages the file behind the verbs' back.
    pub(crate) fn tamper(&self, sql: &str, params: impl Params) {
        assert!(self.conn.execute(sql, params).unwrap() > 0, "tampered with nothing: {sql}");
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}
