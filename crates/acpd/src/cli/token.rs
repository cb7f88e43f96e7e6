//! What can be typed to manage access to a daemon.

use super::run::permission_modes;
use crate::config::{Expiry, Mcp, PermissionMode, Scope, Sees, agent_name, root_path};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `acpd token`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Token {
    /// Make a token, print it once, and keep its hash in the configuration
    #[command(after_help = "\
A daemon of this machine that goes by the same file knows it at once; another one after acpd reload.

Examples:
  acpd token new ci --scope control
  acpd token new guest --scope observe --sees all --expires 30d
  acpd token new bot --scope control --agent opencode --root /srv/projects --mcp none
  ACPD_CONFIG=/etc/acpd/config.toml acpd token new ci --scope control    for the systemd unit")]
    New {
        /// What it is called
        #[arg(value_parser = agent_name)]
        name: String,
        /// What its bearer may do
        #[arg(long)]
        scope: Scope,
        /// Whose sessions its bearer sees
        #[arg(long, default_value = "own")]
        sees: Sees,
        /// Refuse it from then on: a span such as 30d, a date such as 2027-01-01 (midnight UTC), or never
        #[arg(long, value_name = "D|DATE", default_value = "never", hide_default_value = true)]
        expires: Expiry,
        /// What it is limited to.
        #[command(flatten)]
        limits: TokenLimits,
        /// Where it is kept.
        #[command(flatten)]
        place: TokenPlace,
    },
    /// Make a token anew under its name: the old one is refused, its sessions stay with the name
    #[command(after_help = "\
What is open under the old token ends. The new one is printed once.

Examples:
  acpd token rotate ci
  acpd token rotate ci --expires 90d")]
    Rotate {
        /// What it is called
        #[arg(value_parser = agent_name)]
        name: String,
        /// Refuse the new one from then on (30d, 2027-01-01, never); default: as the old one
        #[arg(long, value_name = "D|DATE")]
        expires: Option<Expiry>,
        /// Where it is kept.
        #[command(flatten)]
        place: TokenPlace,
    },
    /// Take a token out of the configuration: it is refused, and what it has open ends
    #[command(after_help = "\
Its sessions stay. When the last token goes, requests over TCP are rejected until there is one again.

Examples:
  acpd token revoke ci
  acpd token revoke ci --config /etc/acpd/config.toml")]
    Revoke {
        /// What it is called
        #[arg(value_parser = agent_name)]
        name: String,
        /// Where it is kept.
        #[command(flatten)]
        place: TokenPlace,
    },
    /// List the tokens that are known, without anything secret
    #[command(after_help = "\
When each was last used is asked of the daemon of this machine, if it goes by the same file.

Examples:
  acpd token list
  acpd token list --json | jq -r '.tokens[] | select(.expired).name'")]
    List {
        /// Where they are kept.
        #[command(flatten)]
        place: TokenPlace,
    },
}

/// What a token is limited to.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TokenLimits {
    /// With --scope control: only this agent; can be given again
    #[arg(long = "agent", value_name = "NAME", value_parser = agent_name)]
    pub agents: Vec<String>,

    /// With --scope control: only sessions that work in this directory or below; can be given again
    #[arg(long = "root", value_name = "DIR", value_parser = root_path)]
    pub roots: Vec<String>,

    /// With --scope control: only sessions in this permission mode; can be given again
    #[arg(long = "permission-mode", value_name = "MODE", value_parser = permission_modes(), hide_possible_values = true)]
    pub permission_modes: Vec<PermissionMode>,

    /// With --scope control: the MCP servers that it may bring
    #[arg(long, value_name = "any|http|none", default_value = "any", hide_possible_values = true)]
    pub mcp: Mcp,
}

/// The configuration that keeps tokens.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TokenPlace {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Use this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
