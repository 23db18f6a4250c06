//! The examples do what their texts say.

#[path = "../../examples/own_emitter.rs"]
mod own_emitter;
#[path = "../../examples/receiver.rs"]
mod receiver;
#[path = "../../examples/shared_file.rs"]
mod shared_file;

use dlo::Outbox;
use dlo::ports::store::{DeadLetterFilter, PageRequest};

const PAGE: PageRequest = PageRequest { after: None, limit: 10 };

#[tokio::test]
async fn an_own_emitter_delivers_what_it_takes_and_the_rest_is_in_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("outbox.db");
    let taken = own_emitter::run(&file).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert!(taken[0].starts_with("ent_"), "the operation key: {taken:?}");
    let outbox = Outbox::builder().sqlite(&file).open().await.unwrap();
    let dead = outbox.reader().dead_letters(DeadLetterFilter::default(), PAGE).await.unwrap().rows;
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].reason.as_str(), "example.unknown_event");
    assert_eq!(dead[0].event_type.as_deref(), Some("com.example.order.weighed"));
}

#[tokio::test]
async fn an_application_saves_its_change_and_the_entry_together_or_neither() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(shared_file::run(&folder.path().join("application.db")).await.unwrap(), (1, 1, 1));
}

#[test]
fn a_receiver_accepts_what_was_signed_and_works_once() {
    assert_eq!(receiver::run().unwrap(), (vec![204, 204, 401], 1));
}
