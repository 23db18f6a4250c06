//! The model store passes the suite that every store passes: as one engine of many, and as the only one.

mod harness;
mod many_engines;
mod one_engine;
mod oracle;
