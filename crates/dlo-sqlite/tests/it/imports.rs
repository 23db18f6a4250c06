//! What was imported from one place lives once.

use dlo_core::NewEntry;
use dlo_ports::store::{EnqueueAnswer, EnqueueStore};

use crate::support::*;

fn imported(number: usize, origin: &str, destination: &str) -> NewEntry {
    NewEntry { origin: Some(origin.into()), ..NewEntry::new(envelope(number)).to(name(destination)) }
}

#[tokio::test]
async fn the_same_place_twice_in_one_batch_is_saved_once() {
    let bench = Bench::new();
    bench.apply(&spec("audits"));
    let items = vec![
        imported(1, "queue:7", "orders"),
        imported(2, "queue:7", "orders"),
        imported(3, "queue:8", "orders"),
        imported(4, "queue:7", "audits"),
    ];
    let answers = bench.store.enqueue(items).await.unwrap();
    assert!(matches!(answers[0], EnqueueAnswer::Created { .. }));
    assert_eq!(answers[1], EnqueueAnswer::Existing { envelope: envelope(1).id });
    assert!(matches!(answers[2], EnqueueAnswer::Created { .. }));
    assert!(matches!(answers[3], EnqueueAnswer::Created { .. }), "another destination has its own");
    assert_eq!((bench.count("dlo_entry"), bench.count("dlo_envelope"), bench.count("dlo_enqueue_key")), (3, 3, 3));
    let later = bench.store.enqueue(vec![imported(5, "queue:7", "orders")]).await.unwrap();
    assert_eq!(later, [EnqueueAnswer::Existing { envelope: envelope(1).id }]);
}
