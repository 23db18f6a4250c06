//! route: being written.
