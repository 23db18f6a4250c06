//! The receiver's side of a webhook: check the signature over the raw body, then act once per `webhook-id`.
//!
//! `cargo run -p dlo --example receiver`
#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use dlo::core::Timestamp;
use dlo::webhook::{Secret, SignedHeaders, sign, verify};

/// How far the sender's clock may be from ours.
const TOLERANCE: Duration = Duration::from_mins(5);

/// A receiver: the secrets that it accepts (two while one is being replaced), and what it has done.
pub(crate) struct Receiver {
    secrets: Vec<Secret>,
    done: BTreeSet<String>,
}

impl Receiver {
    /// Status to answer with. `body` must be the bytes as they came: parsing and writing them again changes them.
    pub(crate) fn receive(&mut self, headers: &[(&str, &str)], body: &[u8], now: Timestamp) -> u16 {
        let find = |name: &str| headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
        let Ok(signed) = SignedHeaders::find(find) else { return 401 };
        if verify(&self.secrets, &signed, body, now, TOLERANCE).is_err() {
            return 401;
        }
        // At least once: the same id comes again when an answer was lost. In a real receiver this set is a table, and
        // the insert and the work are one transaction.
        if self.done.insert(signed.id.to_owned()) {
            println!("working on {}", signed.id);
        }
        204
    }
}

/// Sends a request, the same again, and one whose body was changed on the way; answers with the statuses and with how
/// often the work was done.
pub(crate) fn run() -> Result<(Vec<u16>, usize), Box<dyn Error>> {
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    let mut receiver = Receiver { secrets: vec![secret.clone()], done: BTreeSet::new() };
    let body = br#"{"order": 1}"#;
    let signature = sign(&[secret], "ent_1", 1_764_504_000, body);
    let headers = [("Webhook-Id", "ent_1"), ("Webhook-Timestamp", "1764504000"), ("Webhook-Signature", &*signature)];
    let now: Timestamp = "2025-11-30T12:00:05Z".parse()?;
    let statuses = vec![
        receiver.receive(&headers, body, now),
        receiver.receive(&headers, body, now),
        receiver.receive(&headers, br#"{"order": 2}"#, now),
    ];
    Ok((statuses, receiver.done.len()))
}

#[allow(dead_code)] // the tests call `run`
fn main() -> Result<(), Box<dyn Error>> {
    let (statuses, done) = run()?;
    println!("answered {statuses:?}, worked {done} time(s)");
    Ok(())
}
