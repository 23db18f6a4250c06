//! Damaged input: whatever stands in a file or line, it is read or refused with its place, and what it holds is not
//! repeated (I-13).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use dlo::cloudevents::{Intake, parse_line};
use dlo::config::{Config, ConfigError, Overrides};
use dlo::core::TenantId;

const TIMES: usize = 2_000;

/// Splitmix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// Bytes that matter to a reader of JSON or TOML.
const SHARP: &[u8] = b"{}[]\":,\\/\0\x1b\t\r\n '=#.0e-+untf\xff\xc3\xed\xa0\x80";

fn damage(text: &str, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=numbers.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = numbers.below(bytes.len());
        let to = at + numbers.below((bytes.len() - at).min(16) + 1);
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => {
                let part = bytes[at..to].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes[at..to].reverse(),
            4 => bytes.insert(at, SHARP[numbers.below(SHARP.len())]),
            _ => bytes[at] = (numbers.below(256)) as u8,
        }
    }
    bytes
}

fn load(path: &Path, bytes: &[u8]) -> Result<Config, ConfigError> {
    std::fs::write(path, bytes).unwrap();
    Config::load(Some(path), &|_| None, &Overrides::default())
}

/// The example with every value in force, and a destination.
fn full_example() -> String {
    let values = Config::default_toml().lines().map(|line| match line.strip_prefix('#') {
        Some(value) if !value.starts_with(' ') => value,
        _ => line,
    });
    let mut text: String = values.map(|line| format!("{line}\n")).collect();
    text.push_str(
        "[[destinations]]\nname = \"mail\"\nemitter = \"noop\"\nduplicates = \"tolerated\"\nevent_types = [\"a.*\"]\n\
         settings = { a = [1, true, \"x\"] }\npace = { per_minute = 60 }\n[destinations.policy]\npage = 20\n",
    );
    text
}

#[test]
fn a_damaged_file_is_read_or_refused_with_places_inside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.toml");
    let (example, mut numbers) = (full_example(), Numbers(7));
    load(&path, example.as_bytes()).unwrap();
    let mut refused = 0;
    for _ in 0..TIMES {
        let bytes = damage(&example, &mut numbers);
        let loaded = catch_unwind(AssertUnwindSafe(|| load(&path, &bytes)));
        let loaded = loaded.unwrap_or_else(|_| panic!("panicked at {:?}", String::from_utf8_lossy(&bytes)));
        let Err(ConfigError::Invalid { problems }) = loaded else { continue };
        refused += 1;
        let lines = bytes.split(|byte| *byte == b'\n').count();
        for problem in problems {
            let place = problem.place.rsplit_once("dlo.toml:").map(|(_, place)| place.to_owned());
            let Some((line, column)) = place.as_deref().and_then(|place| place.split_once(':')) else { continue };
            let (line, column): (usize, usize) = (line.parse().unwrap(), column.parse().unwrap());
            assert!((1..=lines).contains(&line) && column >= 1, "{problem} in a file of {lines} lines");
        }
    }
    // Much of it falls into comments.
    assert!(refused > TIMES / 4, "damage is seen: {refused}");
}

#[test]
fn a_key_that_nobody_knows_is_named_in_the_line_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.toml");
    let example = full_example();
    let lines: Vec<&str> = example.lines().collect();
    for at in 0..=lines.len() {
        let mut changed = lines.clone();
        changed.insert(at, "nobody_knows = 1");
        let Err(ConfigError::Invalid { problems }) = load(&path, changed.join("\n").as_bytes()) else {
            panic!("accepted in line {}", at + 1)
        };
        let place = format!("dlo.toml:{}:1", at + 1);
        assert!(
            problems.len() == 1 && problems[0].place.ends_with(&place) && problems[0].key.ends_with("nobody_knows"),
            "expected {place}: {problems:?}"
        );
    }
}

#[test]
fn a_damaged_line_is_read_or_refused_without_a_panic() {
    const LINE: &str = r#"{"specversion":"1.0","id":"1","source":"/a/é","type":"t","subject":"s","time":"2026-11-30T12:00:00.5+01:00","datacontenttype":"application/json","dataschema":"urn:x","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","sequencehint":7,"expirytime":"2099-01-01T00:00:00Z","dloagenttask":"t-1","flag":true,"count":-3,"none":null,"data":{"n":[1,2.5e3,"\u00fc\ud83d\ude00"],"b":{}}}"#;
    let intake = Intake { tenant_from_event: true, ..Intake::new(TenantId::default_tenant()) };
    let (env, mut numbers) = (dlo::ProcessEnv::new(dlo::Registry::empty()), Numbers(11));
    parse_line(LINE.as_bytes(), &intake, &env).unwrap();
    let mut refused = 0;
    for _ in 0..TIMES {
        let bytes = damage(LINE, &mut numbers);
        let parsed = catch_unwind(AssertUnwindSafe(|| parse_line(&bytes, &intake, &env)));
        let parsed = parsed.unwrap_or_else(|_| panic!("panicked at {:?}", String::from_utf8_lossy(&bytes)));
        let Ok(item) = parsed else {
            refused += 1;
            continue;
        };
        // What is taken can be saved: its content has a hash, and its bounds hold.
        item.envelope.validate().unwrap();
        item.envelope.content_hash();
    }
    assert!(refused > TIMES / 2, "damage is seen: {refused}");
}
