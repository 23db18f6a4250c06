//! An emitter of one's own, drained in the application's own process.
//!
//! `cargo run -p dlo --example own_emitter`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dlo::Outbox;
use dlo::core::{
    Class, Destination, DestinationSpec, Duplicates, EngineOptions, Failure, Outcome, Payload, Phase, Reason, Receipt,
};
use dlo::engine::Until;
use dlo::ports::{Emission, emitter::emit_each};

/// What our provider took.
type Taken = Arc<Mutex<Vec<String>>>;

/// Hands one emission to "our provider". It says what happened; what follows from that is decided by the outbox.
#[allow(clippy::unused_async)] // a real one waits for its provider
async fn emit(emission: Emission, taken: Taken) -> Outcome {
    if emission.envelope.event_type != "com.example.order.placed" {
        let reason = Reason::known("example.unknown_event");
        let text = "the provider takes placed orders only";
        return Outcome::Failed(Failure::custom(Class::Deterministic, reason, Phase::NotSent, text));
    }
    // The same key on every try, so that the provider can tell a repetition from a second order.
    let key = emission.operation_key.as_str();
    taken.lock().unwrap_or_else(PoisonError::into_inner).push(key.to_owned());
    Outcome::Delivered { receipt: Some(Receipt { kind: "example".into(), id: Some(key.into()) }) }
}

/// Saves two events, drains the outbox, and answers with what the provider took.
pub(crate) async fn run(file: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let taken = Taken::default();
    let provider = taken.clone();
    let outbox = Outbox::builder()
        .sqlite(file)
        .emitter("example", move |_: &Destination| {
            let provider = provider.clone();
            Ok(emit_each(move |emission| emit(emission, provider.clone())))
        })
        .destination(DestinationSpec::new("orders".parse()?, "example", Duplicates::Tolerated))
        .open()
        .await?;

    let placed = outbox.item("com.example.order.placed", Payload::json(r#"{"order": 1}"#)).to("orders".parse()?);
    let other = outbox.item("com.example.order.weighed", Payload::json(r#"{"order": 1}"#)).to("orders".parse()?);
    for answer in outbox.enqueue(vec![placed, other]).await? {
        println!("{answer:?}");
    }

    // An application that goes on would run `outbox.run_in_process(shutdown)` in a task of its own.
    let engine = outbox.engine(EngineOptions::new("example".parse()?))?;
    engine.run_until(Until::Empty, std::future::pending()).await?;
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(taken)
}

#[tokio::main]
#[allow(dead_code)] // the tests call `run`
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let taken = run(&folder.path().join("outbox.db")).await?;
    println!("the provider took {taken:?}; the other event is in quarantine");
    Ok(())
}
