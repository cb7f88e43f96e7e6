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

/// What happens by itself has happened by then, also on a busy machine. What is not to be waited for takes longer.
const SOON: std::time::Duration = std::time::Duration::from_secs(60);
