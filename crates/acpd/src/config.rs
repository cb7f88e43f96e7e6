//! The configuration: one TOML file, `ACPD_*` variables over it, flags over both.
//!
//! Owned by the composition, which loads it once at start. Invariants: every key is optional (only an agent's
//! `command` and a token's `hash` have no default); an unknown key, a value out of range or a dangling
//! reference is an error that names the file, line and column or the variable; a loaded [`Config`] needs no
//! further checks. Not here: the built-in agent `example` (the composition adds it, unless the file
//! has an entry of that name) and anything that starts, opens or listens.

mod bytes;
mod error;
mod explain;
mod lists;
mod load;
mod names;
mod overlay;
mod sections;
mod wait;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, UnknownAgent};
pub use load::Sources;
pub use names::{NameError, check_agent_name, read_listen_address};
pub use sections::{
    Agent, Compat, Config, Durability, Files, Limits, PermissionMode, Scope, Sees, Server, Storage, Terminal,
    Timeouts, Token, TokenHash,
};
pub use wait::{Wait, WaitError};

/// The agent that is always configured and needs no account.
pub const EXAMPLE_AGENT: &str = "example";
