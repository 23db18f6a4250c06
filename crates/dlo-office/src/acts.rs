//! Names of acts, as they stand in audit events. Stable: people and tools search for them.

/// Destinations were created or changed; the target names them.
pub const APPLY: &str = "destination.apply";
/// Destinations were held by a person.
pub const HOLD: &str = "destination.hold";
/// Holds of destinations were ended by a person.
pub const RELEASE: &str = "destination.release";
/// One try at held destinations was asked for.
pub const PROBE: &str = "destination.probe";
/// Live entries were ended without delivery.
pub const CANCEL: &str = "entry.cancel";
/// Live entries were made due.
pub const RETRY_NOW: &str = "entry.retry_now";
/// Entries in manual review were put into quarantine.
pub const DEAD_LETTER: &str = "entry.dead_letter";
/// Dead letters were asked to be redriven by id; the ledger says what became of each.
pub const REDRIVE: &str = "dead_letter.redrive";

/// All names.
pub const ALL: [&str; 8] = [APPLY, HOLD, RELEASE, PROBE, CANCEL, RETRY_NOW, DEAD_LETTER, REDRIVE];

/// Most items of one act, in one transaction with one audit event that names each of them. An act on more is cut into
/// transactions of this size.
pub const ITEMS_PER_EVENT: usize = 100;
/// Most items of one call.
pub const MAX_ITEMS: usize = 10_000;
/// Fastest pace of [`crate::Office::retry_now`], in entries per minute.
pub const MAX_RETRIES_PER_MINUTE: u32 = 600_000;
