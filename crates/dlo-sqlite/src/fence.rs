//! Fences: whether a change by a worker, or by maintenance, may be made (I-04, I-05).

use dlo_core::{ClaimRef, DestinationName, EntryKey, Fence, Timestamp, TransitionResult};
use dlo_ports::StoreError;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::error::Doing;

const DOING: &str = "check a fence";

/// Verbs that end a claim or a wait, as a row remembers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Settle,
    Release,
}

impl Verb {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Release => "release",
        }
    }
}

/// A live row whose fence holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) seq: i64,
    pub(crate) envelope_ref: i64,
    pub(crate) claim: Option<[u8; 16]>,
    pub(crate) send_mark: bool,
    pub(crate) manual_review: bool,
    pub(crate) failed: i64,
}

/// What a fence says about a row.
#[derive(Debug)]
pub(crate) enum Judged {
    /// It holds.
    Holds(Held),
    /// The answer without a change.
    Answer(TransitionResult),
}

/// Judges the fences of one call.
pub(crate) struct Judge<'c> {
    conn: &'c Connection,
    live: CachedStatement<'c>,
    /// The verb that may find that it was done before.
    verb: Option<Verb>,
    /// Where the entries must go, if it matters.
    destination: Option<&'c DestinationName>,
}

impl<'c> Judge<'c> {
    pub(crate) fn prepare(
        conn: &'c Connection,
        verb: Option<Verb>,
        destination: Option<&'c DestinationName>,
    ) -> Result<Self, StoreError> {
        let live = conn.prepare_cached(include_str!("sql/fence_live.sql")).doing(DOING)?;
        Ok(Self { conn, live, verb, destination })
    }

    /// Judges a fence.
    pub(crate) fn judge(&mut self, claim: &ClaimRef) -> Result<Judged, StoreError> {
        let answer = |result| Ok(Judged::Answer(result));
        let Some(live) = self.live_row(&claim.key)? else {
            return answer(self.ended(claim)?);
        };
        let asked = i64::from(claim.key.generation);
        if !live.goes_there || asked > live.generation {
            return answer(TransitionResult::Missing);
        }
        if asked < live.generation {
            return answer(self.ended_generation(claim)?.unwrap_or(TransitionResult::Terminal));
        }
        if live.same_verb && live.memory.is(claim.fence) {
            return answer(TransitionResult::Applied);
        }
        let holds = match claim.fence {
            Fence::Claim(token) => live.held.claim == Some(*token.as_bytes()),
            Fence::Version(version) | Fence::Maintenance(version) => live.version == version as i64,
        };
        if holds { Ok(Judged::Holds(live.held)) } else { answer(no_claim(claim.fence)) }
    }

    fn live_row(&mut self, key: &EntryKey) -> Result<Option<LiveRow>, StoreError> {
        let read = |row: &Row<'_>| {
            Ok(LiveRow {
                held: Held {
                    seq: row.get(0)?,
                    envelope_ref: row.get(1)?,
                    claim: row.get(4)?,
                    send_mark: row.get(5)?,
                    manual_review: row.get(6)?,
                    failed: row.get(7)?,
                },
                generation: row.get(2)?,
                version: row.get(3)?,
                goes_there: row.get(8)?,
                same_verb: row.get(9)?,
                memory: Memory { token: row.get(10)?, version: row.get(11)? },
            })
        };
        let (destination, verb) = (self.destination.map(DestinationName::as_str), self.verb.map(Verb::as_str));
        self.live
            .query_row(params![key.tenant.as_str(), key.entry.as_bytes(), destination, verb], read)
            .optional()
            .doing(DOING)
    }

    /// Answer for an entry without a live generation.
    fn ended(&self, claim: &ClaimRef) -> Result<TransitionResult, StoreError> {
        let key = &claim.key;
        let latest: Option<(i64, String)> = self
            .conn
            .prepare_cached(include_str!("sql/fence_latest_ended.sql"))
            .and_then(|mut statement| {
                statement
                    .query_row(params![key.tenant.as_str(), key.entry.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .doing(DOING)?;
        let Some((latest, destination)) = latest else { return Ok(TransitionResult::Missing) };
        let goes_there = self.destination.is_none_or(|asked| asked.as_str() == destination);
        if !goes_there || i64::from(key.generation) > latest {
            return Ok(TransitionResult::Missing);
        }
        Ok(self.ended_generation(claim)?.unwrap_or(TransitionResult::Terminal))
    }

    /// Answer for a generation that has a row among the ended.
    fn ended_generation(&self, claim: &ClaimRef) -> Result<Option<TransitionResult>, StoreError> {
        let key = &claim.key;
        let memory = self
            .conn
            .prepare_cached(include_str!("sql/fence_ended.sql"))
            .and_then(|mut statement| {
                statement
                    .query_row(params![key.tenant.as_str(), key.entry.as_bytes(), key.generation], |row| {
                        Ok(Memory { token: row.get(0)?, version: row.get(1)? })
                    })
                    .optional()
            })
            .doing(DOING)?;
        Ok(memory.map(|memory| {
            let repeated = self.verb == Some(Verb::Settle) && memory.is(claim.fence);
            if repeated { TransitionResult::Applied } else { TransitionResult::Terminal }
        }))
    }
}

/// Answer for a live row whose fence is broken, or that has no claim although one is needed.
pub(crate) const fn no_claim(fence: Fence) -> TransitionResult {
    match fence {
        Fence::Claim(_) => TransitionResult::StaleClaim,
        Fence::Version(_) | Fence::Maintenance(_) => TransitionResult::ConcurrencyLost,
    }
}

/// The two columns of a fence: one of them is set. Maintenance is told from a plain-mode worker by the sign.
pub(crate) fn columns(fence: Fence) -> (Option<[u8; 16]>, Option<i64>) {
    match fence {
        Fence::Claim(token) => (Some(*token.as_bytes()), None),
        Fence::Version(version) => (None, Some(version as i64)),
        Fence::Maintenance(version) => (None, Some(-(version as i64))),
    }
}

/// A remembered fence.
struct Memory {
    token: Option<[u8; 16]>,
    version: Option<i64>,
}

impl Memory {
    fn is(&self, fence: Fence) -> bool {
        (self.token, self.version) == columns(fence)
    }
}

struct LiveRow {
    held: Held,
    generation: i64,
    version: i64,
    goes_there: bool,
    same_verb: bool,
    memory: Memory,
}

/// Counts entries off their claims, and drops claims that hold nothing any more.
#[derive(Default)]
pub(crate) struct ClaimEnds(std::collections::BTreeMap<[u8; 16], i64>);

impl ClaimEnds {
    /// One entry of that claim is settled or given back.
    pub(crate) fn add(&mut self, token: [u8; 16]) {
        *self.0.entry(token).or_default() += 1;
    }

    /// Saves the counts.
    pub(crate) fn save(self, conn: &Connection) -> Result<(), StoreError> {
        for (token, count) in self.0 {
            let dropped = conn
                .prepare_cached("DELETE FROM dlo_claim WHERE token = ?1 AND open <= ?2")
                .and_then(|mut statement| statement.execute(params![token, count]))
                .doing("end a claim")?;
            if dropped == 0 {
                conn.prepare_cached("UPDATE dlo_claim SET open = open - ?2 WHERE token = ?1")
                    .and_then(|mut statement| statement.execute(params![token, count]))
                    .doing("end a claim")?;
            }
        }
        Ok(())
    }
}

/// Times that verbs stamp.
pub(crate) fn micros(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_micros)
}
