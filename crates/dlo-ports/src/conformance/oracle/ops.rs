//! Random operations. Everything that a sequence refers to is chosen by number among what is there, so that a
//! shortened sequence still means something.

use core::time::Duration;

use proptest::{collection::vec, option, prelude::*};

use super::super::ManualClock;
use crate::store::ClaimKind;

/// One item to enqueue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Which of [`super::world::TARGETS`].
    pub(super) target: usize,
    /// A key that other items may have too, or the default key.
    pub(super) key: Option<u8>,
    /// Which content.
    pub(super) content: u8,
    /// Seconds from now.
    pub(super) not_before: Option<i64>,
    /// Seconds from now.
    pub(super) deliver_by: Option<i64>,
}

/// How an emission ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Delivered,
    Pending,
    Deferred,
    DeferredFor(u16),
    Transient,
    Refused,
    Unanswered,
    Unknown,
    Credential,
    Resource,
    ProviderDeadLettered,
}

/// What a settle does about health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observe {
    Not,
    Now,
    /// With a version that has passed.
    Stale,
}

/// An act on an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Cancel,
    RetryNow(i64),
    GiveUp,
}

/// An act on a destination.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hold {
    Begin,
    Release,
    Probe,
}

/// One operation. Numbers named `which` choose among the things of their kind, the newest first.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Enqueue(Vec<Item>),
    Claim {
        target: usize,
        limit: usize,
        kind: ClaimKind,
        hold_for: u16,
    },
    /// Claims what the destination admits now, and settles all of it with one outcome.
    Drain {
        target: usize,
        limit: usize,
        end: End,
    },
    /// Claims what the destination admits now; then the worker dies, another starts, and what was lost is settled.
    Crash {
        target: usize,
        limit: usize,
    },
    /// Settles the claims of one claim page that are chosen by `which`, by claim token or by version.
    Settle {
        which: Vec<usize>,
        ends: Vec<End>,
        by_version: bool,
        observe: Observe,
    },
    /// Sends an earlier settle again.
    SettleAgain {
        which: usize,
    },
    Release {
        which: usize,
        by_version: bool,
        twice: bool,
    },
    Mark {
        which: usize,
        by_version: bool,
    },
    SweepLost {
        limit: usize,
    },
    SweepOverdue {
        target: usize,
    },
    Start {
        plain: bool,
    },
    Heartbeat {
        lease: u16,
    },
    Stop,
    Wait {
        seconds: u32,
    },
    StepBack {
        seconds: u16,
    },
    Hold {
        target: usize,
        hold: Hold,
    },
    Apply {
        target: usize,
        variant: u8,
    },
    Act {
        which: usize,
        act: Act,
    },
    Redrive {
        which: Vec<usize>,
        missing: bool,
    },
    Prune {
        history: u32,
        enqueue_keys: u32,
        limit: usize,
    },
    Damage {
        which: usize,
    },
    Reopen,
    List {
        limit: usize,
    },
}

impl Op {
    /// Moves the clock, if that is what the operation does: once for both sides.
    pub(super) fn move_clock(&self, clock: &ManualClock) {
        match self {
            Self::Wait { seconds } => clock.advance(Duration::from_secs(u64::from(*seconds))),
            Self::StepBack { seconds } => clock.step_back(Duration::from_secs(u64::from(*seconds))),
            _ => {}
        }
    }
}

/// Sequences of 1 to `length` operations.
pub(super) fn sequence(length: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..=length)
}

const TARGETS: usize = super::world::TARGETS.len();
/// The first targets are one destination each.
const DESTINATIONS: usize = 3;

fn item() -> impl Strategy<Value = Item> {
    let key = option::weighted(0.2, 0_u8..4);
    let not_before = option::weighted(0.15, -60_i64..7_200);
    let deliver_by = option::weighted(0.15, -10_i64..20_000);
    let target = prop_oneof![4 => 0..DESTINATIONS, 1 => DESTINATIONS..TARGETS];
    (target, key, 0_u8..2, not_before, deliver_by).prop_map(|(target, key, content, not_before, deliver_by)| Item {
        target,
        key,
        content,
        not_before,
        deliver_by,
    })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Delivered),
        1 => Just(End::Pending),
        1 => Just(End::Deferred),
        1 => (0_u16..600).prop_map(End::DeferredFor),
        6 => Just(End::Transient),
        2 => Just(End::Refused),
        2 => Just(End::Unanswered),
        1 => Just(End::Unknown),
        1 => Just(End::Credential),
        1 => Just(End::Resource),
        1 => Just(End::ProviderDeadLettered),
    ]
}

fn kind() -> impl Strategy<Value = ClaimKind> {
    prop_oneof![6 => Just(ClaimKind::Normal), 2 => Just(ClaimKind::Suspect), 3 => Just(ClaimKind::Probe)]
}

fn observed() -> impl Strategy<Value = Observe> {
    prop_oneof![1 => Just(Observe::Not), 5 => Just(Observe::Now), 1 => Just(Observe::Stale)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![1 => Just(Act::Cancel), 4 => (-60_i64..600).prop_map(Act::RetryNow), 1 => Just(Act::GiveUp)]
}

fn hold() -> impl Strategy<Value = Hold> {
    prop_oneof![2 => Just(Hold::Begin), 4 => Just(Hold::Release), 3 => Just(Hold::Probe)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => vec(item(), 1..6).prop_map(Op::Enqueue),
        14 => (0..DESTINATIONS, 1_usize..6, end()).prop_map(|(target, limit, end)| Op::Drain { target, limit, end }),
        5 => (0..DESTINATIONS, 1_usize..3).prop_map(|(target, limit)| Op::Crash { target, limit }),
        8 => (0..TARGETS, 1_usize..6, kind(), 1_u16..900)
            .prop_map(|(target, limit, kind, hold_for)| Op::Claim { target, limit, kind, hold_for }),
        8 => (vec(0_usize..8, 1..5), vec(end(), 5), prop::bool::weighted(0.25), observed())
            .prop_map(|(which, ends, by_version, observe)| Op::Settle { which, ends, by_version, observe }),
        2 => (0_usize..8).prop_map(|which| Op::SettleAgain { which }),
        3 => (0_usize..8, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(which, by_version, twice)| Op::Release { which, by_version, twice }),
        5 => (0_usize..8, prop::bool::weighted(0.2)).prop_map(|(which, by_version)| Op::Mark { which, by_version }),
        4 => (1_usize..5).prop_map(|limit| Op::SweepLost { limit }),
        2 => (0..TARGETS).prop_map(|target| Op::SweepOverdue { target }),
        3 => prop::bool::weighted(0.1).prop_map(|plain| Op::Start { plain }),
        2 => (0_u16..2_000).prop_map(|lease| Op::Heartbeat { lease }),
        1 => Just(Op::Stop),
        8 => prop_oneof![0_u32..90, 0_u32..4_000, 0_u32..200_000].prop_map(|seconds| Op::Wait { seconds }),
        1 => (0_u16..600).prop_map(|seconds| Op::StepBack { seconds }),
        4 => (0..TARGETS, hold()).prop_map(|(target, hold)| Op::Hold { target, hold }),
        2 => (0..TARGETS, 0_u8..6).prop_map(|(target, variant)| Op::Apply { target, variant }),
        7 => (0_usize..12, act()).prop_map(|(which, act)| Op::Act { which, act }),
        8 => (vec(0_usize..6, 1..4), prop::bool::weighted(0.2))
            .prop_map(|(which, missing)| Op::Redrive { which, missing }),
        2 => (0_u32..200_000, 0_u32..400_000, 1_usize..5)
            .prop_map(|(history, enqueue_keys, limit)| Op::Prune { history, enqueue_keys, limit }),
        2 => (0_usize..4).prop_map(|which| Op::Damage { which }),
        1 => Just(Op::Reopen),
        2 => (1_usize..6).prop_map(|limit| Op::List { limit }),
    ]
}
