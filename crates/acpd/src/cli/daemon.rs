//! What can be typed to talk to a daemon.

use crate::config::agent_name;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The daemon, and the caller's token for it.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Connect {
    /// Talk to the daemon at this URL (http://HOST:PORT, https://HOST:PORT, unix:PATH); default: $ACPD_CONNECT,
    /// connect in [client], else the one that serves the state directory
    #[arg(long, value_name = "URL", display_order = 80)]
    pub connect: Option<String>,

    /// Read the token for the daemon from this file; default: $ACPD_TOKEN, or token_file
    /// in [client]
    #[arg(long, value_name = "FILE", display_order = 81)]
    pub token_file: Option<PathBuf>,

    /// Trust the certificates in this PEM file; default: those in $ACPD_CA, or of ca in
    /// [client], else the system's
    #[arg(long, value_name = "FILE", display_order = 82)]
    pub ca: Option<PathBuf>,
}

/// A daemon, by URL or by the state directory that it serves.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Which {
    /// By URL.
    #[command(flatten)]
    pub connect: Connect,

    /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE", display_order = 90)]
    pub config: Option<PathBuf>,

    /// Talk to the daemon that serves this directory instead of ~/.local/state/acpd
    #[arg(long, value_name = "DIR", display_order = 91)]
    pub state_dir: Option<PathBuf>,
}

/// One session of a daemon.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct One {
    /// The session's id, or its end or beginning if no other has that
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub id: String,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd sessions`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Sessions {
    /// List sessions, the latest change first
    #[command(after_help = "\
Examples:
  acpd sessions list --live                    what runs or waits right now
  acpd sessions list --agent opencode --json | jq -r '.sessions[].sessionId'")]
    List(List),
    /// Show one session, and how it ended
    #[command(after_help = "\
Examples:
  acpd sessions show 5f0c9e                    the end of an id is enough, or its beginning
  acpd sessions show 5f0c9e --json | jq .terminationInfo")]
    Show(One),
    /// Print the events of a session, one per line; times are UTC
    #[command(after_help = "\
With --follow it goes on until the session ends, and comes back by itself when the connection is
lost or the daemon restarts: every event is printed exactly once.

Examples:
  acpd sessions events 5f0c9e --follow
  acpd sessions events 5f0c9e --after 120 --json | jq .kind")]
    Events(Events),
    /// Stop using a session: its turn is cancelled and its agent ends; it stays listed and can be taken up again
    Close(One),
    /// End a session for good, whatever its agent does
    Terminate(One),
    /// Close a session if it is live, and remove it with its history
    Delete(One),
}

/// `acpd sessions list`
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct List {
    /// Only those of this agent
    #[arg(short, long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,

    /// Only those that work in this directory
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Only those that have ended
    #[arg(long)]
    pub ended: bool,

    /// Only those that have not ended
    #[arg(long, conflicts_with = "ended")]
    pub live: bool,

    /// At most so many; default: all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,

    /// Print JSON: {"sessions": [...]}
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd sessions events`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Events {
    /// Go on with what happens, until the session ends
    #[arg(short, long)]
    pub follow: bool,

    /// Only events behind this number
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub after: u64,

    /// Which one, and how.
    #[command(flatten)]
    pub one: One,
}

/// `acpd top`
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = "\
Once a second, until q or Ctrl-C; once, when stdout is not a terminal.

Examples:
  acpd top
  acpd top --once --json | jq '.sessions | length'")]
pub struct Top {
    /// Print one table and leave
    #[arg(long)]
    pub once: bool,

    /// Print one JSON object and leave
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}
