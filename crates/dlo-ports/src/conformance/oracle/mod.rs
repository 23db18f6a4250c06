//! The model oracle: random operations on a store and on the model must give the same answers and the same state.
//!
//! A store calls [`check`] with a way to open itself and a way to open the model (`dlo-sim`). Both run under one
//! clock, get the same input, and are compared: every answer, and every few operations everything that can be
//! read. Ids that a store makes itself are compared by the order in which they were made. What the ports leave open is
//! not compared: orders that are not promised, and what a store need not keep of a delivered or cancelled entry.
//!
//! Sequences are generated from a fixed seed, so a failure replays; it is shrunk to few operations before it is shown.

mod dump;
mod names;
mod ops;
mod side;
mod world;

use core::cell::RefCell;
use std::sync::Arc;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::{Harness, ManualClock};
use ops::Op;
use side::Side;

/// How a store is opened: fresh, with that clock.
pub type Open<'a> = &'a dyn Fn(Arc<ManualClock>) -> Box<dyn Harness>;

/// What a run must have met to be worth something: words of answers and states.
const MARKS: &[&str] = &[
    "Applied",
    "StaleClaim",
    "Terminal",
    "ConcurrencyLost",
    "Missing",
    "Existing",
    "Conflict",
    "BacklogFull",
    "DeadlinePassed",
    "Fenced",
    "lane: Suspect",
    "send_mark: true",
    "sole_suspect: true",
    "manual_review: true",
    "generation: 1",
    "unanswered: true",
    "paced_until: Some",
    "quarantined: [EntryKey",
    "health_applied: false",
    "failed_probes: 1",
    "ramp: Some",
    "more: true",
    "Redriven {",
    "Refused(Unanswered",
    "Refused(NotOpen",
    "WrongState(\"claimed\")",
    "state: Cancelled",
    "is stored: false",
    "outbox.max_age_exceeded",
    "outbox.max_retry_attempts_exceeded",
    "outbox.outcome_ambiguous",
    "outbox.worker_lost",
    "outbox.dead_lettered_by_operator",
    "outbox.entry_unreadable",
];

/// Runs `cases` random sequences of at most `length` operations against a store and the model, from one seed.
///
/// Answers which of the things that a run should meet were not met by any sequence; a long run leaves none.
///
/// # Panics
///
/// With the shortest sequence found, and where the two differ first, if they do not agree.
pub fn check(cases: u32, length: usize, seed: [u8; 32], store: Open<'_>, model: Open<'_>) -> Vec<&'static str> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let unmet = RefCell::new(MARKS.to_vec());
    let outcome = runner.run(&ops::sequence(length), |ops| {
        compare(&ops, store, model, &mut unmet.borrow_mut()).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => unmet.into_inner(),
        Err(TestError::Fail(why, ops)) => panic!("store and model differ: {why}\nafter {ops:#?}"),
        Err(TestError::Abort(why)) => panic!("no sequence could be made: {why}"),
    }
}

/// Runs one sequence on both; `Err` tells the first difference.
fn compare(ops: &[Op], store: Open<'_>, model: Open<'_>, unmet: &mut Vec<&'static str>) -> Result<(), String> {
    let clock = ManualClock::new();
    let mut store = Side::new(store(clock.clone()), clock.clone());
    let mut model = Side::new(model(clock.clone()), clock.clone());
    if store.single_engine() != model.single_engine() {
        return Err("open the model with as many engines as the store admits".into());
    }
    store.prepare();
    model.prepare();
    for (index, op) in ops.iter().enumerate() {
        op.move_clock(&clock);
        let (answer, expected) = (store.step(op), model.step(op));
        difference(&format!("answer to operation {index} ({op:?})"), &answer, &expected)?;
        unmet.retain(|mark| !expected.contains(mark));
        // Everything is read now and then, and at the end: a shortened sequence ends where the difference is.
        if index % 8 == 7 || index + 1 == ops.len() {
            let state = model.dump();
            difference(&format!("state after operation {index} ({op:?})"), &store.dump(), &state)?;
            unmet.retain(|mark| !state.contains(mark));
        }
    }
    Ok(())
}

/// Tells the first line that differs, from a little before the place.
fn difference(what: &str, seen: &str, expected: &str) -> Result<(), String> {
    if seen == expected {
        return Ok(());
    }
    let (mut seen, mut expected) = (seen.lines(), expected.lines());
    loop {
        match (seen.next(), expected.next()) {
            (Some(seen), Some(expected)) if seen == expected => {}
            (seen, expected) => {
                let (seen, expected) = (seen.unwrap_or("nothing"), expected.unwrap_or("nothing"));
                let same = seen.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
                let (start, around) = (expected.chars().take(160).collect::<String>(), same.saturating_sub(200));
                let cut = |line: &str| line.chars().skip(around).take(500).collect::<String>();
                return Err(format!("{what}\n  {start} ...\n  store: {}\n  model: {}", cut(seen), cut(expected)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_different_line_is_told() {
        assert_eq!(difference("x", "a\nb", "a\nb"), Ok(()));
        let told = difference("x", "a\nb\nc", "a\nd\nc").expect_err("they differ");
        assert!(told.contains("store: b") && told.contains("model: d"), "{told}");
        let told = difference("x", "a", "a\nb").expect_err("they differ");
        assert!(told.contains("store: nothing"), "{told}");
    }
}
