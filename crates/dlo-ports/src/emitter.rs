//! Emitters: code that hands emissions to a provider.

use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use dlo_core::{DestinationName, EntryId, Envelope, OperationKey, Outcome, TenantId, Timestamp};

use crate::BoxFuture;

/// One emission: an envelope with all that a provider call needs.
#[derive(Clone, Debug)]
pub struct Emission {
    /// Entry; with the tenant, the stable id of this delivery.
    pub entry: EntryId,
    /// Owner.
    pub tenant: TenantId,
    /// Where it goes.
    pub destination: DestinationName,
    /// Generation: 0, or the number of the redrive.
    pub generation: u32,
    /// Key for the provider; the same on every try (I-11).
    pub operation_key: OperationKey,
    /// Number of this attempt over the lineage, from 1.
    pub attempt: u32,
    /// By when the outcome is needed, by the engine's clock.
    pub deadline: Timestamp,
    /// The same as a span from now.
    pub timeout: Duration,
    /// What to emit.
    pub envelope: Arc<Envelope>,
}

/// The answer for one emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Which.
    pub entry: EntryId,
    /// What became of it.
    pub outcome: Outcome,
}

/// Hands emissions to a provider.
///
/// An emission that gets no answer in the returned list counts as `emission.no_answer` (class unknown). A panic is
/// caught by the engine and counts as `emission.panic` (class unknown).
pub trait Emitter: Send + Sync {
    /// How many emissions one call takes at most (default 1).
    fn batch_limit(&self) -> usize {
        1
    }

    /// Emits. Dropping the future is how the engine enforces the deadline.
    fn emit(&self, batch: Vec<Emission>) -> BoxFuture<'_, Vec<Emitted>>;
}

/// An emitter from a function that takes one emission.
pub fn emit_each<F, R>(function: F) -> Arc<dyn Emitter>
where
    F: Fn(Emission) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    Arc::new(EmitEach(function))
}

struct EmitEach<F>(F);

impl<F, R> Emitter for EmitEach<F>
where
    F: Fn(Emission) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send + 'static,
{
    fn emit(&self, batch: Vec<Emission>) -> BoxFuture<'_, Vec<Emitted>> {
        Box::pin(async move {
            let mut emitted = Vec::with_capacity(batch.len());
            for emission in batch {
                let entry = emission.entry;
                emitted.push(Emitted { entry, outcome: (self.0)(emission).await });
            }
            emitted
        })
    }
}

/// The emitter that delivers to nowhere: kind `noop`, for measuring and for trying out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noop;

impl Noop {
    /// Kind name of this emitter in a destination.
    pub const KIND: &'static str = "noop";
}

impl Emitter for Noop {
    fn batch_limit(&self) -> usize {
        dlo_core::limits::MAX_PAGE
    }

    fn emit(&self, batch: Vec<Emission>) -> BoxFuture<'_, Vec<Emitted>> {
        let emitted = batch
            .iter()
            .map(|emission| Emitted { entry: emission.entry, outcome: Outcome::Delivered { receipt: None } })
            .collect();
        Box::pin(core::future::ready(emitted))
    }
}
