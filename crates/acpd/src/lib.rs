//! The `acpd` binary: command line, configuration, composition, signals and exit codes.
//!
//! Theory of operation: [`run_process`] takes off the two subcommands that have to be small (the keeper) or
//! independent (the example agent), parses the rest, loads the configuration and runs one command: a daemon; or, on a
//! single-threaded runtime, a client of one, or an embedded host with one client, the editor on stdio or the person at
//! the terminal.
//!
//! Invariant: exit codes are decided in one place. Boundary: what hosts agents lives in the other crates; this one
//! turns words, files and variables into their settings and turns what happened into text for a person.

mod absent;
mod address;
mod agent_specs;
mod checks;
mod clean;
pub mod cli;
mod client;
mod commands;
mod completing;
pub mod config;
mod config_file;
mod daemon;
mod daemon_address;
mod daemon_config;
mod editor;
mod exit;
mod flag_names;
mod fleet;
mod form;
mod front;
mod hooks;
mod hosting;
mod image;
mod installing;
mod kept_config;
mod keyboard;
mod known_agents;
mod local_host;
mod log_format;
mod log_writer;
mod logging;
mod migrating;
mod moment;
mod nearest;
mod own_terminal;
mod passed;
mod process;
mod progress;
mod runtime;
#[cfg(test)]
mod schema_file;
mod signals;
mod state_dir;
mod state_files;
mod stored;
mod streams;
mod verdict;
pub mod view;
mod waiting;

pub use process::run_process;
