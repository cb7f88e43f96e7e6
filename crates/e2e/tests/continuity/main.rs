//! Agents and turns outlive the daemon (contract 7.2, 7.3): what is killed with it, what goes on, and what the log says.

mod alone;
mod ends;
mod foreign_files;
mod gap;
mod kills;
mod odd_files;
mod session;
mod starts;
// The keepers that are kept are for this machine only.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod skew;
mod strangers;
mod terminals;
mod turns;
