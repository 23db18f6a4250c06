//! SIGKILL of the real binary at random moments, producer and engine at the same time.
//!
//! `DLO_KILLS` sets how often (100), `DLO_KILLS_SEED` repeats a run as far as the machine repeats itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::ledger::{KINDS, accounts, check_requests, created, place_with_all_kinds, saved};
use super::numbers::Numbers;
use super::run::{bounded, say};
use crate::endpoint::{Endpoint, Request};
use crate::place::{Place, event};

/// Kills by default: producer and engine together.
const KILLS: usize = 100;
/// How long a process lives before it is killed, in milliseconds: from the opening of the file to many transactions.
const LIFE: std::ops::Range<u64> = 15..260;
/// Events of a usual write to the producer, and of a large one: more than its chunk.
const BURST: (usize, usize) = (30, 520);
/// Engine kills between two looks of the doctor, beside running processes.
const DOCTOR_EVERY: usize = 12;

fn kills() -> usize {
    std::env::var("DLO_KILLS").map_or(KILLS, |text| text.parse().expect("DLO_KILLS is a number"))
}

fn life(numbers: &mut Numbers) -> Duration {
    Duration::from_millis(LIFE.start + numbers.next() % (LIFE.end - LIFE.start))
}

/// Kills after a while; the end of the process ends what reads its output.
fn kill_after(mut child: Child, life: Duration) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(life);
        child.kill().expect("it is a child");
        child.wait().expect("it is a child");
    })
}

/// The receiver: takes most, and refuses, fails or cuts the rest. What is harmful is taken or cut, because a refusal may
/// rightly be tried again.
fn answer(numbers: &mut Numbers, request: &Request) -> u16 {
    match (request.path.as_str(), numbers.below(12)) {
        (_, 0) => 0,
        ("harmful", _) => 204,
        (_, 1) => 503,
        (_, 2) => 500,
        _ => 204,
    }
}

/// Feeds events to one `dlo enqueue` after another, and keeps what was acknowledged.
struct Feeder<'a> {
    place: &'a Place,
    numbers: Numbers,
    given: usize,
    /// Given and not acknowledged, in order.
    open: VecDeque<usize>,
    acknowledged: BTreeSet<usize>,
    entries: BTreeSet<String>,
}

fn kind_of(number: usize) -> &'static str {
    KINDS[number % KINDS.len()].0
}

fn line_of(number: usize) -> String {
    event(&format!("e-{number}"), &format!("{}.x", kind_of(number)), "{\"n\":1}")
}

impl Feeder<'_> {
    fn spawn(&self) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
        let mut command = self.place.command(&["-o", "jsonl", "enqueue", "-", "--each"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        (child, input, output)
    }

    /// One process, killed after a while.
    fn live(&mut self) {
        let (child, mut input, mut output) = self.spawn();
        let killer = kill_after(child, life(&mut self.numbers));
        let mut line = 0;
        loop {
            let burst = self.burst();
            if !self.exchange(&burst, &mut input, &mut output, &mut line) {
                break;
            }
        }
        killer.join().expect("the killer");
    }

    /// What is still open first, then new events.
    fn burst(&mut self) -> Vec<usize> {
        let size = if self.numbers.once_in(12) { BURST.1 } else { 1 + self.numbers.below(BURST.0) };
        while self.open.len() < size {
            self.open.push_back(self.given);
            self.given += 1;
        }
        self.open.iter().take(size).copied().collect()
    }

    /// Writes a burst and reads its answers; false when the process is gone.
    fn exchange(
        &mut self,
        burst: &[usize],
        input: &mut ChildStdin,
        output: &mut Lines<BufReader<ChildStdout>>,
        line: &mut u64,
    ) -> bool {
        thread::scope(|scope| {
            scope.spawn(|| {
                let text: String = burst.iter().map(|number| line_of(*number)).collect();
                // A process that was killed reads no more.
                let _ = input.write_all(text.as_bytes());
            });
            burst.iter().all(|number| {
                // A line that the kill cut short is no answer.
                let Some(row) = output.next().and_then(Result::ok).and_then(|text| saved(&text)) else { return false };
                *line += 1;
                assert_eq!(row["line"].as_u64(), Some(*line), "answers come in the order of the lines");
                self.acknowledged.insert(*number);
                self.entries.extend(created(&row));
                assert_eq!(self.open.pop_front(), Some(*number));
                true
            })
        })
    }

    /// The rest, without a kill.
    fn finish(&mut self) {
        let (child, mut input, mut output) = self.spawn();
        let rest: Vec<usize> = self.open.iter().copied().collect();
        assert!(self.exchange(&rest, &mut input, &mut output, &mut 0), "every event is acknowledged in the end");
        drop(input);
        super::run::ended(child, "enqueue").ends(0);
    }
}

fn drain_and_kill(place: &Place, numbers: &mut Numbers, lives: usize) {
    for number in 1..=lives {
        // Both drain modes take over from each other.
        let mode: &[&str] = if numbers.once_in(3) { &["run", "--plain"] } else { &["run"] };
        let mut command = place.command(mode);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
        kill_after(child, life(numbers)).join().expect("the killer");
        if number % DOCTOR_EVERY == 0 {
            bounded(place.command(&["doctor"])).ends(0);
        }
    }
}

#[test]
fn kills_lose_nothing_and_repeat_nothing_harmful() {
    let mut seeds = Numbers::announced("DLO_KILLS_SEED");
    let endpoint = Endpoint::start();
    let mut answers = Numbers::new(seeds.next());
    endpoint.answers_by(move |request| answer(&mut answers, request));
    let place = place_with_all_kinds(&endpoint, "");
    let mut feeder = Feeder {
        place: &place,
        numbers: Numbers::new(seeds.next()),
        given: 0,
        open: VecDeque::new(),
        acknowledged: BTreeSet::new(),
        entries: BTreeSet::new(),
    };
    let mut numbers = Numbers::new(seeds.next());
    let kills = kills();
    let fed = AtomicUsize::new(0);
    thread::scope(|scope| {
        let drain = scope.spawn(|| drain_and_kill(&place, &mut numbers, kills.div_ceil(2)));
        while fed.fetch_add(1, Ordering::Relaxed) < kills / 2 || !drain.is_finished() {
            feeder.live();
        }
        drain.join().expect("the drain");
    });
    feeder.finish();
    bounded(place.command(&["run", "--until-empty"])).ends(0);

    let accounts = accounts(&place);
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..feeder.given {
        assert!(feeder.acknowledged.contains(&number));
        *expected.entry(kind_of(number).to_owned()).or_default() += 1;
    }
    assert_eq!(accounts.by_destination, expected, "each event is one entry");
    let lost: Vec<_> = feeder.entries.iter().filter(|entry| !accounts.states.contains_key(*entry)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let duplicates = check_requests(&endpoint, &accounts);
    let quarantined = accounts.states.values().filter(|state| *state == "dead_lettered").count();
    say(&format!(
        "{} kills: {} events acknowledged, {} requests, {quarantined} unanswered sends quarantined, duplicates {duplicates:?}",
        fed.load(Ordering::Relaxed) + kills.div_ceil(2),
        feeder.given,
        endpoint.requests().len(),
    ));
}
