//! Randomness of ids out of the operating system.

use std::sync::{Arc, Mutex, PoisonError};

use crate::turn::Random;

/// Bytes that are fetched at once: one call for about 400 ids.
const BLOCK: usize = 4_096;

/// The operating system's randomness, fetched in blocks.
pub fn system_random() -> Random {
    let block = Mutex::new((vec![0_u8; BLOCK], BLOCK));
    Arc::new(move |bytes: &mut [u8]| {
        if bytes.len() > BLOCK {
            return fetch(bytes);
        }
        let mut guard = block.lock().unwrap_or_else(PoisonError::into_inner);
        let (block, used) = &mut *guard;
        if *used + bytes.len() > BLOCK {
            fetch(block);
            *used = 0;
        }
        bytes.copy_from_slice(&block[*used..*used + bytes.len()]);
        *used += bytes.len();
    })
}

fn fetch(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("an operating system that runs this has a source of randomness");
}
