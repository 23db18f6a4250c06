//! Fences: whether a change by a worker, or by maintenance, may be made (I-04, I-05).

use dlo_core::{ClaimRef, DestinationName, EntryKey, Fence, Timestamp, TransitionResult};
use dlo_ports::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Doing;

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

/// Judges a fence. `verb` is the one that may find that it was done before; `destination` must be the entry's.
pub(crate) fn judge(
    conn: &Connection,
    claim: &ClaimRef,
    verb: Option<Verb>,
    destination: Option<&DestinationName>,
) -> Result<Judged, StoreError> {
    let Some(live) = live_row(conn, &claim.key)? else {
        return Ok(Judged::Answer(ended(conn, claim, verb, destination)?));
    };
    let answer = |result| Ok(Judged::Answer(result));
    if destination.is_some_and(|destination| destination.as_str() != live.destination) {
        return answer(TransitionResult::Missing);
    }
    let asked = i64::from(claim.key.generation);
    if asked > live.generation {
        return answer(TransitionResult::Missing);
    }
    if asked < live.generation {
        return Ok(Judged::Answer(ended_generation(conn, claim, verb)?.unwrap_or(TransitionResult::Terminal)));
    }
    let remembered = Memory { token: live.last_token, version: live.last_version };
    if verb.is_some_and(|verb| live.last_verb.as_deref() == Some(verb.as_str())) && remembered.is(claim.fence) {
        return answer(TransitionResult::Applied);
    }
    let (holds, broken) = match claim.fence {
        Fence::Claim(token) => (live.held.claim == Some(*token.as_bytes()), TransitionResult::StaleClaim),
        Fence::Version(version) => (live.version == version as i64, TransitionResult::ConcurrencyLost),
    };
    if holds { Ok(Judged::Holds(live.held)) } else { answer(broken) }
}

/// Answer for a row that has no claim although one is needed.
pub(crate) const fn no_claim(fence: Fence) -> TransitionResult {
    match fence {
        Fence::Claim(_) => TransitionResult::StaleClaim,
        Fence::Version(_) => TransitionResult::ConcurrencyLost,
    }
}

/// The two columns of a fence: one of them is set.
pub(crate) fn columns(fence: Fence) -> (Option<[u8; 16]>, Option<i64>) {
    match fence {
        Fence::Claim(token) => (Some(*token.as_bytes()), None),
        Fence::Version(version) => (None, Some(version as i64)),
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
    destination: String,
    version: i64,
    last_verb: Option<String>,
    last_token: Option<[u8; 16]>,
    last_version: Option<i64>,
}

fn live_row(conn: &Connection, key: &EntryKey) -> Result<Option<LiveRow>, StoreError> {
    let read = |row: &Row<'_>| {
        Ok(LiveRow {
            held: Held {
                seq: row.get(0)?,
                claim: row.get(4)?,
                send_mark: row.get(5)?,
                manual_review: row.get(6)?,
                failed: row.get(7)?,
            },
            generation: row.get(1)?,
            destination: row.get(2)?,
            version: row.get(3)?,
            last_verb: row.get(8)?,
            last_token: row.get(9)?,
            last_version: row.get(10)?,
        })
    };
    conn.prepare_cached(include_str!("sql/fence_live.sql"))
        .and_then(|mut statement| {
            statement.query_row(params![key.tenant.as_str(), key.entry.as_bytes()], read).optional()
        })
        .doing("check a fence")
}

/// Answer for an entry without a live generation.
fn ended(
    conn: &Connection,
    claim: &ClaimRef,
    verb: Option<Verb>,
    destination: Option<&DestinationName>,
) -> Result<TransitionResult, StoreError> {
    let key = &claim.key;
    let latest: Option<(Option<i64>, Option<String>)> = conn
        .prepare_cached(include_str!("sql/fence_latest_ended.sql"))
        .and_then(|mut statement| {
            statement
                .query_row(params![key.tenant.as_str(), key.entry.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .doing("check a fence")?;
    let Some((Some(latest), of)) = latest else { return Ok(TransitionResult::Missing) };
    if i64::from(key.generation) > latest
        || destination.is_some_and(|destination| Some(destination.as_str()) != of.as_deref())
    {
        return Ok(TransitionResult::Missing);
    }
    Ok(ended_generation(conn, claim, verb)?.unwrap_or(TransitionResult::Terminal))
}

/// Answer for a generation that has a row among the ended.
fn ended_generation(
    conn: &Connection,
    claim: &ClaimRef,
    verb: Option<Verb>,
) -> Result<Option<TransitionResult>, StoreError> {
    let key = &claim.key;
    let memory = conn
        .prepare_cached(include_str!("sql/fence_ended.sql"))
        .and_then(|mut statement| {
            statement
                .query_row(params![key.tenant.as_str(), key.entry.as_bytes(), key.generation], |row| {
                    Ok(Memory { token: row.get(0)?, version: row.get(1)? })
                })
                .optional()
        })
        .doing("check a fence")?;
    Ok(memory.map(|memory| {
        let repeated = verb == Some(Verb::Settle) && memory.is(claim.fence);
        if repeated { TransitionResult::Applied } else { TransitionResult::Terminal }
    }))
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
