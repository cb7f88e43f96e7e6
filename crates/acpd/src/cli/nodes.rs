//! What can be typed to look after a fleet.

use super::Which;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

/// `acpd nodes`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Nodes {
    /// List the nodes of the fleet, with the sessions that each has
    #[command(after_help = "\
Any node lists all of them; [fleet] in the configuration makes a daemon a node of one.

Examples:
  acpd nodes list
  acpd nodes list --json | jq -r '.nodes[] | select(.reachable | not) | .name'")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The daemon.
        #[command(flatten)]
        which: Which,
    },
    /// Have a node take no new sessions, and wait until those that it has are over
    #[command(after_help = "\
It stays so over restarts, until acpd nodes undrain. What runs there goes on, and is reached as before; Ctrl-C ends the \
waiting alone. On another node it needs a token of that node in ACPD_TOKEN.

Examples:
  acpd nodes drain build-1
  acpd nodes drain build-1 --no-wait && acpd handover    before an upgrade that ends nothing")]
    Drain(Drain),
    /// Have a node take new sessions again
    #[command(after_help = "\
Examples:
  acpd nodes undrain build-1")]
    Undrain(NodeAct),
    /// Remove a node that is gone for good, with its sessions and their history in the archive
    #[command(after_help = "\
Only one that cannot be reached. What is to be kept is exported before (acpd sessions export ID). It needs a token in ACPD_TOKEN \
that is admin on that node, or sees all of its sessions there. A node that comes back all the same is in the fleet again.

Examples:
  acpd sessions list --json | jq -r '.sessions[] | select(.node == \"build-1\") | .sessionId'
  acpd nodes remove build-1")]
    Remove(NodeAct),
}

/// `acpd nodes drain`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Drain {
    /// Which one.
    #[command(flatten)]
    pub node: NodeAct,

    /// Do not wait
    #[arg(long)]
    pub no_wait: bool,
}

/// One node of a fleet.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct NodeAct {
    /// The node's name; without one the names of all are told
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}
