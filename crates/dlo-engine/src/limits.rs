//! Fixed limits and intervals of the engine: name, value, reason. Configurable ones are in
//! [`EngineOptions`](dlo_core::EngineOptions) and [`DeliveryPolicy`](dlo_core::DeliveryPolicy).

use core::time::Duration;

/// Destinations that one look for work reads at a time; a bounded skip scan in the store.
pub const DISCOVERY_PAGE: usize = 256;
/// Least time between two looks for work, so that a storm of wake-ups costs one read each 2 ms.
pub const DISCOVERY_SPACING: Duration = Duration::from_millis(2);
/// Destinations that are drained at once; further ones wait until a lane has run dry. Bounds memory.
pub const MAX_LANES: usize = 1_024;
/// Destinations kept with their emitter, beside those that are being drained.
pub const MAX_CACHED_DESTINATIONS: usize = 4_096;
/// Time between two sweeps for lost claims and overdue entries.
pub const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Entries that a sweep reads at a time.
pub const SWEEP_PAGE: usize = 500;
/// Destinations whose overdue entries one sweep looks for; the next sweep goes on behind the last.
pub const SWEEP_DESTINATIONS: usize = 100;
/// Time between two looks for history and enqueue keys that may go.
pub const PRUNE_EVERY: Duration = Duration::from_secs(10);
/// Rows of each kind that one turn of pruning drops.
pub const PRUNE_ROWS: usize = 1_000;
/// A turn of pruning is followed by a pause this many times as long as the turn took, so that pruning takes a tenth of
/// the writer at the most.
pub const PRUNE_PAUSE_FACTOR: u32 = 9;
/// First wait after a store verb failed for a passing cause; each further wait is twice as long.
pub const STORE_RETRY_FIRST: Duration = Duration::from_millis(50);
/// Longest wait between two tries of a store verb.
pub const STORE_RETRY_LONGEST: Duration = Duration::from_secs(5);
/// A destination with rows that can't be read is left alone for this long before it is tried again.
pub const UNREADABLE_RETRY: Duration = Duration::from_secs(30);
/// A look for work is followed by a pause this many times as long as the look took, so that looks take a quarter of the
/// store's time at the most, however many commits wake them.
pub const DISCOVERY_PAUSE_FACTOR: u32 = 3;
/// Longest such pause: the most that a wake-up waits behind a long look.
pub const DISCOVERY_LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A lane that never runs dry looks for a suspect at each claim of this number.
pub const SUSPECT_TURN: u64 = 32;
/// Emitters are told a timeout that ends this much before the deadline (5 %, at most this), so that they can still say
/// whether the request was sent.
pub const LONGEST_HEADROOM: Duration = Duration::from_secs(1);
/// Longest wait for the last saves after the shutdown grace is over.
pub const LAST_SAVES: Duration = Duration::from_secs(5);
/// Destinations with their own metric series; further ones share the series `_other`.
pub const MAX_METRIC_DESTINATIONS: usize = 1_000;
/// Pairs of class and reason with their own dead-letter series for one destination; further ones share `_other`.
pub const MAX_METRIC_REASONS: usize = 64;
