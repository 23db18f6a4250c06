//! Real payloads, byte for byte: what stands in the line is what the endpoint gets, in both modes.
//!
//! The payloads are those of the npm package `@octokit/webhooks-examples`, which `cargo xtask setup` fetches.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::run::bounded;
use crate::endpoint::{Endpoint, Request};
use crate::place::{Place, destination};

/// Folder of the package: the variable names it, else it is where the set-up puts it.
fn folder() -> PathBuf {
    let usual = || {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.join("target/test-data/node_modules/@octokit/webhooks-examples")
    };
    let folder = std::env::var_os("DLO_TEST_WEBHOOK_EXAMPLES").map_or_else(usual, PathBuf::from);
    assert!(folder.is_dir(), "{} is not there: `cargo xtask setup` fetches it", folder.display());
    folder
}

#[derive(serde::Deserialize)]
struct Hook {
    name: String,
    examples: Vec<Box<RawValue>>,
}

/// Event type and payload of every example, as it stands in the package.
fn examples() -> Vec<(String, String)> {
    let mut examples = Vec::new();
    for source in ["api.github.com", "ghes-35"] {
        let text = fs::read_to_string(folder().join(source).join("index.json")).expect("a file of the package");
        let hooks: Vec<Hook> = serde_json::from_str(&text).expect("a list of hooks");
        for hook in hooks {
            examples.extend(hook.examples.iter().map(|raw| (hook.name.clone(), raw.get().to_owned())));
        }
    }
    assert!(examples.len() > 300, "the package has hundreds of examples: {}", examples.len());
    examples
}

/// Where a payload stands in its line.
#[derive(Clone, Copy)]
enum Member {
    Data,
    Base64,
}

/// A line, and the bytes that must arrive.
struct Case {
    line: String,
    bytes: Vec<u8>,
    member: Member,
}

fn case(number: usize, event_type: &str, text: &str, member: Member) -> Case {
    let (name, value) = match member {
        Member::Data => ("data", text.to_owned()),
        Member::Base64 => ("data_base64", format!("\"{}\"", base64(text.as_bytes()))),
    };
    let line = format!(
        "{{\"specversion\":\"1.0\",\"id\":\"e-{number}\",\"source\":\"/github\",\"type\":\"github.{event_type}\",\
         \"datacontenttype\":\"application/json\",\"{name}\":{value}}}\n"
    );
    let bytes = match member {
        // Blanks around a value belong to the line.
        Member::Data => text.trim_matches([' ', '\t', '\r']),
        Member::Base64 => text,
    };
    Case { line, bytes: bytes.as_bytes().to_vec(), member }
}

/// RFC 4648 with padding; the test does not lean on the code under test.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0, |group, at| group << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// JSON that a reader might be tempted to write anew.
fn oddities() -> Vec<String> {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let long = format!("\"{}\"", "ü".repeat(100_000));
    [
        "null",
        "true",
        "0",
        "\"\"",
        "{}",
        "[ ]",
        "-0",
        "-0.0",
        "1E+2",
        "1.10",
        "1e400",
        "123456789012345678901234567890.123456789012345678901234567890",
        "18446744073709551616",
        " \t { \r \"a\" \t:\r [ 1 ,\t2 ]\r } \t",
        r#"{"b":1,"a":2,"b":3}"#,
        r#""\u00fc\u00DC\ud83d\ude00\/\b\f\n\r\t\\\"""#,
        r#"{"\u0061":"a","a\u0000b":"\u0000"}"#,
        "\"😀 é e\u{301} \u{2028}\u{feff}\u{7f}\"",
        r#"{"data":{"data_base64":"x"},"specversion":"9"}"#,
        deep.as_str(),
        long.as_str(),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (event_type, text) in examples() {
        // A line has no line ends: they are blanks between the tokens of the package's indented JSON.
        let one_line = text.replace('\n', " ");
        let odd_blanks = text.replace('\n', "\t\r");
        cases.push(case(cases.len(), &event_type, &one_line, Member::Data));
        cases.push(case(cases.len(), &event_type, &text, Member::Base64));
        if cases.len() % 7 == 0 {
            cases.push(case(cases.len(), &event_type, &odd_blanks, Member::Data));
        }
    }
    for text in oddities() {
        cases.push(case(cases.len(), "odd", &text, Member::Data));
        cases.push(case(cases.len(), "odd", &text, Member::Base64));
    }
    cases
}

/// The text of a member of a structured event as it stands there: `null` and blanks around it included.
fn structured(request: &Request, member: Member) -> &[u8] {
    let (name, end): (&[u8], &[u8]) = match member {
        Member::Data => (b",\"data\":", b"}"),
        Member::Base64 => (b",\"data_base64\":\"", b"\"}"),
    };
    let at = request.body.windows(name.len()).position(|window| window == name).expect("the member is there");
    request.body[at + name.len()..].strip_suffix(end).expect("it is the last member")
}

#[test]
fn payloads_arrive_byte_for_byte() {
    let endpoint = Endpoint::start();
    let of_mode = |mode: &str| {
        let settings = format!("{}, mode = \"{mode}\"", endpoint.settings(mode));
        destination(mode, "webhook", "tolerated", "github.*", &settings)
    };
    let place = Place::with(&format!("{}{}", of_mode("binary"), of_mode("structured")));
    let cases = cases();
    place.write("events.jsonl", &cases.iter().map(|case| case.line.as_str()).collect::<String>());
    let tally = place.json(&["enqueue", "events.jsonl"]);
    assert_eq!(tally["created"].as_u64(), Some(cases.len() as u64), "{tally}");
    bounded(place.command(&["run", "--until-empty"])).ends(0);

    let mut arrived: BTreeMap<(String, String), Vec<Request>> = BTreeMap::new();
    for request in endpoint.requests() {
        let id = match request.headers.get("ce-id") {
            Some(id) => id.clone(),
            None => serde_json::from_slice::<Named>(&request.body).expect("a CloudEvent").id,
        };
        arrived.entry((request.path.clone(), id)).or_default().push(request);
    }
    assert_eq!(arrived.len(), 2 * cases.len());
    for (number, case) in cases.iter().enumerate() {
        let get = |mode: &str| {
            let requests = &arrived[&(mode.to_owned(), format!("e-{number}"))];
            assert_eq!(requests.len(), 1, "nothing failed");
            &requests[0]
        };
        let shown = || String::from_utf8_lossy(&case.bytes[..case.bytes.len().min(200)]).into_owned();
        assert_eq!(get("binary").headers["content-type"], "application/json");
        assert!(get("binary").body == case.bytes, "binary, e-{number}: {}", shown());
        let inside = structured(get("structured"), case.member);
        let expected = match case.member {
            Member::Data => case.bytes.clone(),
            Member::Base64 => base64(&case.bytes).into_bytes(),
        };
        assert!(inside == expected, "structured, e-{number}: {}", shown());
    }
}

#[derive(serde::Deserialize)]
struct Named {
    id: String,
}
