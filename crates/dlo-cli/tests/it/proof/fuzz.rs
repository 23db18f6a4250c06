//! Broken input: thousands of damaged lines and files, and nothing but what is damaged is refused.

use std::collections::BTreeMap;

use serde_json::Value;

use super::numbers::Numbers;
use super::run::bounded;
use crate::place::{Place, event};

const DAMAGED: usize = 2_000;

/// Bytes that matter to a reader of JSON or TOML.
const SHARP: &[u8] = b"{}[]\":,\\/\0\x1b\t\r '=#.0e-+untf\xff\xc3\xed\xa0\x80";

/// Cuts, doubles, swaps and overwrites a few bytes.
fn damage(text: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=numbers.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = numbers.below(bytes.len());
        let to = at + numbers.below((bytes.len() - at).min(12) + 1);
        match numbers.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => {
                let part = bytes[at..to].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes[at..to].reverse(),
            4 => bytes.insert(at, SHARP[numbers.below(SHARP.len())]),
            5 => bytes[at] = (numbers.next() & 0xff) as u8,
            _ => bytes[at] = SHARP[numbers.below(SHARP.len())],
        }
    }
    bytes
}

/// A line with every kind of member.
fn full_line(number: usize) -> String {
    format!(
        "{{\"specversion\":\"1.0\",\"id\":\"d-{number}\",\"source\":\"/test/é\",\"type\":\"t\",\"subject\":\"s\",\
         \"time\":\"2026-11-30T12:00:00.5+01:00\",\"datacontenttype\":\"application/json\",\"dataschema\":\"urn:x\",\
         \"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\",\"sequencehint\":7,\
         \"expirytime\":\"2099-01-01T00:00:00Z\",\"dloagenttask\":\"t-1\",\"flag\":true,\"count\":-3,\"none\":null,\
         \"data\":{{\"n\":[1,2.5e3,\"\\u00fc\\ud83d\\ude00\"],\"b\":{{}}}}}}"
    )
}

#[test]
fn damaged_lines_lose_nothing_else_and_are_named_by_their_number() {
    let mut numbers = Numbers::announced("DLO_FUZZ_SEED");
    let place = Place::with_noop();
    let mut file = Vec::new();
    let mut whole: BTreeMap<u64, String> = BTreeMap::new();
    let mut expected: Vec<u64> = Vec::new();
    let mut number = 0;
    for count in 0..DAMAGED {
        let mut line = damage(full_line(count).as_bytes(), &mut numbers);
        line.retain(|byte| *byte != b'\n');
        number += 1;
        if !line.iter().all(u8::is_ascii_whitespace) {
            expected.push(number);
        }
        file.extend(line);
        file.push(b'\n');
        number += 1;
        let id = format!("w-{count}");
        file.extend(event(&id, "t", "1").into_bytes());
        expected.push(number);
        whole.insert(number, id);
    }
    std::fs::write(place.path("events.jsonl"), file).expect("a file");
    let ran = bounded(place.command(&["-o", "jsonl", "enqueue", "events.jsonl", "--each"])).ends(3);
    assert!(!ran.err.contains("cli.defect"), "{}", ran.err);
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let lines: Vec<u64> = rows.iter().map(|row| row["line"].as_u64().expect("a number")).collect();
    assert_eq!(lines, expected, "every line is answered once, in order, under its number");
    let mut refused = 0;
    for row in &rows {
        if whole.contains_key(&row["line"].as_u64().expect("a number")) {
            assert_eq!(row["result"], "created", "a whole line suffers from its neighbours: {row}");
        } else if row["result"] == "malformed" {
            refused += 1;
            assert!(row["code"].as_str().is_some_and(|code| code.contains('.')), "{row}");
            assert!(ran.err.contains(&format!("line {}: ", row["line"])), "{row}");
        }
    }
    assert!(refused > DAMAGED / 2, "most damage is seen: {refused}");
    bounded(place.command(&["doctor"])).ends(0);
    bounded(place.command(&["run", "--until-empty"])).ends(0);
    bounded(place.command(&["doctor"])).ends(0);
}

#[test]
fn a_damaged_configuration_is_refused_with_a_place_or_accepted() {
    const FILES: usize = 150;
    let mut numbers = Numbers::announced("DLO_FUZZ_SEED");
    let place = Place::empty();
    bounded(place.command(&["init"])).ends(0);
    // The commented example, with its comments taken off so that every value is there.
    let example: String =
        place.read("dlo.toml").lines().map(|line| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n").collect();
    let mut refused = 0;
    for _ in 0..FILES {
        std::fs::write(place.path("dlo.toml"), damage(example.as_bytes(), &mut numbers)).expect("a file");
        let ran = bounded(place.command(&["config", "check"]));
        assert!(matches!(ran.code, 0 | 2), "neither accepted nor refused: {ran:?}");
        assert!(!ran.err.contains("cli.defect"), "{}", ran.err);
        if ran.code == 2 {
            refused += 1;
            assert!(ran.err.contains("error[config."), "{}", ran.err);
        }
    }
    assert!(refused > FILES / 4, "damage is seen: {refused}");
}
