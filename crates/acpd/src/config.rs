//! The configuration: one TOML file, `ACPD_*` variables over it, flags over both.
//!
//! Owned by the composition, which loads it once at start. Invariants: every key is optional (only an agent's
//! `command` and a token's `hash` have no default); an unknown key, a value out of range or a dangling
//! reference is an error that names the file, line and column or the variable; a loaded [`Config`] needs no
//! further checks. Not here: the built-in agent `example` (the composition adds it, unless the file
//! has an entry of that name) and anything that starts, opens or listens.

mod amounts;
mod check;
mod client;
#[cfg(test)]
mod described;
pub(crate) mod edit;
mod error;
mod explain;
mod fleet;
mod hooks;
mod limited;
mod load;
mod moment;
mod origin;
mod overlay;
#[cfg(test)]
mod reference;
mod sections;
mod values;

#[cfg(test)]
mod tests;

pub use acpd_host::PermissionMode;
pub use amounts::{Wait, age, byte_count};
pub use client::Client;
pub(crate) use edit::EditError;
pub use error::{ConfigError, UnknownAgent};
pub use fleet::{Fleet, PeerCa};
pub use hooks::{Hook, HookEvent, HookTarget, HookUrl};
pub use limited::{Mcp, lines as limit_lines, root_path, word_of as word_of_mcp};
pub use load::Sources;
pub use moment::Expiry;
pub(crate) use moment::written;
pub use origin::Origins;
pub use sections::{
    Agent, Compat, Config, Continuity, Durability, Files, Limits, OnStop, Scope, Sees, Server, Storage,
    Terminal, Timeouts, Token, TokenHash, Variables, word,
};
pub use values::{agent_name, listen_address};

/// The agent that is always configured and needs no account.
pub const EXAMPLE_AGENT: &str = "example";
