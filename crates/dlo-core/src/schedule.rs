//! schedule: being written.
