//! classify: being written.
