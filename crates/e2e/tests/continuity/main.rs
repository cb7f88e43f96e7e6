//! Agents and turns outlive the daemon (contract 7.2, 7.3): what is killed with it, what goes on, and what the log says.

mod gap;
mod kills;
mod session;
mod terminals;
mod turns;
