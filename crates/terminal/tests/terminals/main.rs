//! Terminals with real commands, through real keepers.

#[path = "../support/bench.rs"]
mod bench;
mod ending;
mod feeding;
mod kept;
mod killing;
mod output;
mod owning;
mod pty;
mod starting;
mod timeouts;
