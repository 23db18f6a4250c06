//! Every fixed limit of the product: name, value, reason. Configurable ones live in [`policy`](crate::policy).

/// Longest tenant, destination or producer name, in bytes. Keeps index keys narrow.
pub const MAX_NAME_BYTES: usize = 64;
/// Longest operation key or worker name, in bytes. 255 is the longest idempotency key that common providers take.
pub const MAX_KEY_BYTES: usize = 255;
/// Longest enqueue key, in bytes: a CloudEvents source and id together.
pub const MAX_ENQUEUE_KEY_BYTES: usize = 1_024;
/// Longest single text attribute of an envelope, in bytes (CloudEvents asks intermediaries for 64 KiB an event).
pub const MAX_ATTRIBUTE_BYTES: usize = 2_048;
/// Most headers, or agent-context attributes, of one envelope.
pub const MAX_HEADERS: usize = 64;
/// Largest payload by default, in bytes (16 MiB).
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1_024 * 1_024;
/// Longest error text that is stored, in bytes (4 KiB); longer text is cut on a character boundary.
pub const MAX_ERROR_TEXT_BYTES: usize = 4_096;
/// Longest reason or provider code, in bytes.
pub const MAX_CODE_BYTES: usize = 128;
/// Most destinations of one enqueue item (fan-out).
pub const MAX_FAN_OUT: usize = 64;
/// Most items of one enqueue batch.
pub const MAX_ENQUEUE_BATCH: usize = 10_000;
/// Most rows of any page, claim or list.
pub const MAX_PAGE: usize = 1_000;
/// Most payload bytes of one claim (32 MiB, two of the largest payloads): every claimed body is in memory until it is
/// settled, so a page of a thousand large ones would end the process, and the next one would claim them again. One entry
/// alone is claimed whatever its size.
pub const CLAIM_BYTES: usize = 32 * 1_024 * 1_024;
/// Most dead letters of one explicit-id redrive; larger releases need a plan.
pub const MAX_REDRIVE_ITEMS: usize = 100;
/// Among how many due entries a probe looks for the one with the fewest failed attempts.
pub const PROBE_WINDOW: usize = 64;
/// Most attempts that are kept in full for one generation; the first and the newest are kept, the middle is dropped.
pub const MAX_ATTEMPTS_KEPT: usize = 100;
/// Longest reason or note of an operator act, in bytes.
pub const MAX_ACT_TEXT_BYTES: usize = 2_048;
