//! Proof: the real binary under kills, failing disks, odd clocks, strangers in its file and input of the world. What is
//! shown here is that nothing acknowledged is lost, and that nothing is done twice where that does harm.

mod clocks;
mod disk_full;
mod disk_io;
mod fuzz;
mod host;
mod kills;
mod ledger;
mod numbers;
mod real_input;
mod run;
mod signals;
mod strace;
mod sync;
mod takeover;
