//! invariant: being written.
