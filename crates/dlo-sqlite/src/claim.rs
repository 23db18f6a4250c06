//! Claims: selection, pace, probe. The selection reads one partial index that holds only rows which may be claimed, so
//! that its cost does not depend on delivered, dead, waiting, held or claimed rows (I-16).

use core::cmp::Ordering;
use std::sync::Arc;

use dlo_core::{
    Destination, Entry, Health, Lane, Timestamp,
    dead_letter::Unreadable,
    entry::Claim,
    health::Admission,
    limits::{CLAIM_BYTES, MAX_PAGE, PROBE_WINDOW},
    observe::begin_probe,
    pace,
};
use dlo_ports::{
    StoreError, StoreErrorKind,
    store::{ClaimKind, ClaimPage, ClaimRequest, Claimed},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::{
    error::{Doing, bounded, invalid},
    fence::Held,
    memory::Page,
    payload,
    quarantine::quarantine_unreadable,
    rows::{ENTRY_COLUMNS, EntryReader},
    seqs::Seqs,
    turn::Turn,
};

const DOING: &str = "claim entries";

/// Claims.
pub(crate) fn claim(turn: &mut Turn<'_>, request: &ClaimRequest) -> Result<ClaimPage, StoreError> {
    bounded("limit of a claim", request.limit, 1, MAX_PAGE)?;
    let (tenant, destination) = (&request.tenant, &request.destination);
    turn.caches.catalog.refresh(turn.tx)?;
    let Some(known) = turn.caches.catalog.find(turn.tx, tenant, destination)?.cloned() else {
        return Err(invalid(format!("destination `{tenant}/{destination}` does not exist: apply it first")));
    };
    check_alive(turn, request)?;
    let mut health = turn.caches.health(turn.tx, tenant, destination)?;
    let mut selection = select(turn, request, &known, &health, request.limit)?;
    let (claimed, unreadable) = loop {
        match take(turn, request, &selection.seqs)? {
            Taken::Page(claimed, unreadable) => break (claimed, unreadable),
            Taken::TooLarge => {
                let fitting = fitting(turn, request)?;
                selection = select(turn, request, &known, &health, fitting)?;
            }
        }
    };
    let quarantined = quarantine_unreadable(turn, tenant, destination, &unreadable)?;
    if let Some(changed) = selection.health {
        health = turn.caches.save_health(turn.tx, tenant, destination, health.version, changed)?;
    }
    Ok(ClaimPage {
        now: turn.now,
        destination_version: known.version,
        health,
        claimed,
        quarantined,
        more: selection.more,
        paced_until: selection.paced_until,
    })
}

fn check_alive(turn: &Turn<'_>, request: &ClaimRequest) -> Result<(), StoreError> {
    let worker: Option<(i64, Option<i64>)> = turn
        .tx
        .prepare_cached("SELECT lease_until, ended FROM dlo_worker WHERE incarnation = ?1")
        .and_then(|mut statement| {
            statement.query_row([request.incarnation.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .doing(DOING)?;
    match worker {
        Some((lease_until, None)) if lease_until > turn.now.as_micros() => Ok(()),
        _ => Err(StoreError::new(
            StoreErrorKind::Fenced,
            format!("worker {} is not registered and alive: renew its lease or start it again", request.incarnation),
        )),
    }
}

/// What a claim takes, before it is taken.
#[derive(Default)]
struct Selection {
    seqs: Vec<i64>,
    more: bool,
    paced_until: Option<Timestamp>,
    /// Health to save, if pace or a probe changes it.
    health: Option<Health>,
}

/// A row of the ready index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    due: i64,
    seq: i64,
}

fn select(
    turn: &Turn<'_>,
    request: &ClaimRequest,
    destination: &Destination,
    health: &Health,
    limit: usize,
) -> Result<Selection, StoreError> {
    let due = |lane, limit| due_in(turn, request, lane, limit);
    match (health.admission(turn.now), request.kind) {
        (Admission::Open(_), ClaimKind::Normal) => {
            let retry = due(Lane::Retry, limit + 1)?;
            let pending = due(Lane::Pending, limit + 1)?;
            let found = retry.len() + pending.len();
            Ok(paced(turn.now, destination, health, found, limit, |limit| page_of(&retry, &pending, limit)))
        }
        (Admission::Open(_), ClaimKind::Suspect) => {
            let suspects = due(Lane::Suspect, 2)?;
            Ok(paced(turn.now, destination, health, suspects.len(), 1, |limit| {
                suspects.iter().take(limit).map(|candidate| candidate.seq).collect()
            }))
        }
        (Admission::Probe, ClaimKind::Probe) => probe(turn, request, destination, health),
        _ => Ok(Selection::default()),
    }
}

/// Asks the bucket, if there is one, and selects as many as it grants.
fn paced(
    now: Timestamp,
    destination: &Destination,
    health: &Health,
    due: usize,
    limit: usize,
    select: impl FnOnce(usize) -> Vec<i64>,
) -> Selection {
    let want = due.min(limit);
    let (granted, paced_until, health) = match destination.spec.pace {
        Some(pace) if want > 0 => {
            let grant = pace::take(pace, health.pace_at, now, want);
            let pace_at = Some(grant.pace_at);
            let changed = (health.pace_at != pace_at).then(|| Health { pace_at, ..health.clone() });
            (grant.granted, grant.next, changed)
        }
        _ => (want, None, None),
    };
    Selection { seqs: select(granted), more: granted == want && due > limit, paced_until, health }
}

/// Half for retries, the rest for pending ones, what is left for retries again; one alone goes to the earlier head.
fn page_of(retry: &[Candidate], pending: &[Candidate], limit: usize) -> Vec<i64> {
    let (of_retry, of_pending) = shares(retry, pending, limit);
    retry[..of_retry].iter().chain(&pending[..of_pending]).map(|candidate| candidate.seq).collect()
}

/// How many of each lane a page has. Neither is ever smaller under a larger limit.
fn shares(retry: &[Candidate], pending: &[Candidate], limit: usize) -> (usize, usize) {
    let for_retry = match limit {
        1 => usize::from(match (retry.first(), pending.first()) {
            (Some(retry), Some(pending)) => retry.cmp(pending) == Ordering::Less,
            (retry, _) => retry.is_some(),
        }),
        _ => limit / 2,
    };
    let of_pending = pending.len().min(limit - for_retry.min(retry.len()));
    (retry.len().min(limit - of_pending), of_pending)
}

/// The largest limit under which the bodies of a normal page are at most [`CLAIM_BYTES`], or 1. Only asked when a page was
/// too large: sizes of small bodies, which are the common case, cost no look.
fn fitting(turn: &Turn<'_>, request: &ClaimRequest) -> Result<usize, StoreError> {
    let retry = due_in(turn, request, Lane::Retry, request.limit)?;
    let pending = due_in(turn, request, Lane::Pending, request.limit)?;
    let (of_retry, of_pending) = (sizes(turn.tx, &retry)?, sizes(turn.tx, &pending)?);
    let most = request.limit.min(retry.len() + pending.len());
    let fits = |limit: &usize| {
        let (retries, pendings) = shares(&retry, &pending, *limit);
        of_retry[retries].saturating_add(of_pending[pendings]) <= CLAIM_BYTES
    };
    Ok((1..=most).rev().find(fits).unwrap_or(1))
}

/// Bytes of the first none, one, two … bodies together.
fn sizes(tx: &Connection, candidates: &[Candidate]) -> Result<Vec<usize>, StoreError> {
    let mut statement = tx.prepare_cached(include_str!("sql/claim_size.sql")).doing(DOING)?;
    let mut sums = Vec::with_capacity(candidates.len() + 1);
    let mut sum = 0_usize;
    sums.push(sum);
    for candidate in candidates {
        let size: u32 = statement.query_row([candidate.seq], |row| row.get(0)).doing(DOING)?;
        sum = sum.saturating_add(size as usize);
        sums.push(sum);
    }
    Ok(sums)
}

fn probe(
    turn: &Turn<'_>,
    request: &ClaimRequest,
    destination: &Destination,
    health: &Health,
) -> Result<Selection, StoreError> {
    let mut due = Vec::new();
    for lane in [Lane::Pending, Lane::Retry, Lane::Suspect] {
        due.extend(due_in(turn, request, lane, PROBE_WINDOW)?);
    }
    due.sort_unstable();
    due.truncate(PROBE_WINDOW);
    let mut chosen: Option<(i64, i64)> = None;
    for Candidate { seq, .. } in due {
        let failed: i64 = turn
            .tx
            .prepare_cached("SELECT failed - base_failed FROM dlo_entry WHERE seq = ?1")
            .and_then(|mut statement| statement.query_row([seq], |row| row.get(0)))
            .doing(DOING)?;
        // Ties go to the first by (due, seq).
        if chosen.is_none_or(|(fewest, _)| failed.max(0) < fewest) {
            chosen = Some((failed.max(0), seq));
        }
    }
    let Some((_, seq)) = chosen else { return Ok(Selection::default()) };
    let Some(probing) = begin_probe(health, &destination.spec.policy, turn.now) else {
        return Ok(Selection::default());
    };
    Ok(Selection { seqs: vec![seq], health: Some(probing), ..Selection::default() })
}

/// Due, unclaimed entries of a lane in the order of S-09: read from the index alone.
fn due_in(turn: &Turn<'_>, request: &ClaimRequest, lane: Lane, limit: usize) -> Result<Vec<Candidate>, StoreError> {
    let mut statement = turn.tx.prepare_cached(include_str!("sql/claim_due.sql")).doing(DOING)?;
    let rows = statement
        .query_map(
            params![
                request.tenant.as_str(),
                request.destination.as_str(),
                lane as i64,
                turn.now.as_micros(),
                limit as i64
            ],
            |row| Ok(Candidate { due: row.get(0)?, seq: row.get(1)? }),
        )
        .doing(DOING)?;
    rows.collect::<Result<_, _>>().doing(DOING)
}

/// Rows that can't be read, with what can't be read of them.
type UnreadableRows = Vec<(i64, Unreadable)>;

/// What became of a selection.
enum Taken {
    /// It is claimed; rows that can't be read are left for quarantine.
    Page(Vec<Claimed>, UnreadableRows),
    /// Its bodies are more than [`CLAIM_BYTES`]; nothing was claimed.
    TooLarge,
}

/// Claims the selected entries.
fn take(turn: &mut Turn<'_>, request: &ClaimRequest, seqs: &[i64]) -> Result<Taken, StoreError> {
    let claim = Claim {
        token: request.token,
        incarnation: request.incarnation,
        claimed: turn.now,
        deadline: turn.now.after(request.hold_for),
        send_mark: false,
        sole_suspect: request.kind == ClaimKind::Suspect,
    };
    let mut claimed = Vec::with_capacity(seqs.len());
    let mut unreadable = Vec::new();
    let mut page = Page::new(request.token, request.tenant.clone(), request.destination.clone());
    let (mut taken, mut members) = (Seqs::default(), Vec::with_capacity(seqs.len() * 8));
    let mut reader = EntryReader::default();
    let mut select = turn.tx.prepare_cached(include_str!("sql/claim_read.sql")).doing(DOING)?;
    let mut bytes = 0_usize;
    for seq in seqs {
        let (size, row) = read(&mut select, &mut reader, *seq)?;
        bytes = bytes.saturating_add(size);
        if bytes > CLAIM_BYTES && seqs.len() > 1 {
            return Ok(Taken::TooLarge);
        }
        match row {
            Ok((mut found, envelope_ref)) => {
                taken.add(*seq);
                members.extend(seq.to_be_bytes());
                stamp(&mut found.entry, claim);
                page.add(&found.entry.key, held(&found.entry, *seq, envelope_ref));
                claimed.push(found);
            }
            Err(problem) => unreadable.push((*seq, problem)),
        }
    }
    if !claimed.is_empty() {
        turn.tx
            .prepare_cached(include_str!("sql/claim_take.sql"))
            .and_then(|mut update| {
                update.execute(params![taken.as_json(), claim.token.as_bytes(), turn.now.as_micros()])
            })
            .doing(DOING)?;
        save_claim(turn.tx, request, &claim, claimed.len(), &members)?;
        turn.caches.claims.remember(page);
    }
    Ok(Taken::Page(claimed, unreadable))
}

/// What is remembered of a row that was just claimed.
fn held(entry: &Entry, seq: i64, envelope_ref: i64) -> Held {
    Held {
        seq,
        envelope_ref,
        claim: entry.claim.map(|claim| *claim.token.as_bytes()),
        send_mark: false,
        manual_review: false,
        failed: i64::from(entry.progress.counters.failed),
    }
}

/// What the update of `claim_take.sql` does to the row.
fn stamp(entry: &mut Entry, claim: Claim) {
    entry.progress.counters.claims = entry.progress.counters.claims.saturating_add(1);
    entry.first_claimed.get_or_insert(claim.claimed);
    entry.version += 1;
    entry.updated = claim.claimed;
    entry.claim = Some(claim);
}

/// An entry with its envelope and the rowid of that, or what can't be read.
type ReadRow = Result<(Claimed, i64), Unreadable>;

/// Reads a row, and the length of its body whether or not it can be read.
fn read(select: &mut CachedStatement<'_>, reader: &mut EntryReader, seq: i64) -> Result<(usize, ReadRow), StoreError> {
    let mut rows = select.query([seq]).doing(DOING)?;
    let Some(row) = rows.next().doing(DOING)? else { return Ok((0, Err(Unreadable::Entry))) };
    let size = row.get::<_, u32>(ENTRY_COLUMNS + payload::COLUMNS + 1).doing(DOING)? as usize;
    let entry = match reader.read(row) {
        Ok(entry) => entry,
        // The envelope's id is the one column that is not the entry's own.
        Err(crate::rows::Unreadable("envelope")) => return Ok((size, Err(Unreadable::Envelope))),
        Err(_) => return Ok((size, Err(Unreadable::Entry))),
    };
    let envelope_ref = row.get(ENTRY_COLUMNS + payload::COLUMNS).doing(DOING)?;
    let envelope = payload::read_envelope(row, ENTRY_COLUMNS, entry.envelope, entry.key.tenant.clone());
    Ok((size, envelope.map(|envelope| (Claimed { entry, envelope: Arc::new(envelope) }, envelope_ref))))
}

fn save_claim(
    tx: &Connection,
    request: &ClaimRequest,
    claim: &Claim,
    open: usize,
    members: &[u8],
) -> Result<(), StoreError> {
    tx.prepare_cached(include_str!("sql/claim_insert.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                claim.token.as_bytes(),
                request.tenant.as_str(),
                request.destination.as_str(),
                claim.incarnation.as_bytes(),
                claim.claimed.as_micros(),
                claim.deadline.as_micros(),
                claim.sole_suspect,
                open as i64,
                members,
            ])
        })
        .doing(DOING)?;
    Ok(())
}
