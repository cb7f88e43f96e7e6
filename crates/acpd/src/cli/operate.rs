//! What can be typed to look after a daemon.

use super::Which;
use clap::Args;
use std::path::PathBuf;

pub(super) const STATUS: &str = "\
Exit codes: 0 a daemon runs, 4 there is none.

Examples:
  acpd status
  acpd status --connect https://acpd.example.org
  acpd status --json | jq .sessions";

pub(super) const STOP: &str = "\
Its sessions end in order and can be taken up again. Ctrl-C meanwhile has what has not ended killed; \
once more leaves, and the daemon goes on stopping. One that a service manager restarts is stopped by \
that: systemctl stop acpd.
Exit codes: 0 it has ended, 4 there was none.

Examples:
  acpd stop
  acpd stop --state-dir /var/lib/acpd";

pub(super) const HANDOVER: &str = "\
For an upgrade: the file that the daemon was started from is asked first whether it could start (acpd serve \
--check); if not, the daemon goes on and the reason is told. Then it takes the daemon's place, as the same \
process with the same arguments and on the same sockets: clients that call meanwhile wait, and are not \
refused. With [continuity] keep sessions go on, also in the middle of a turn; else they end in order, as at a \
restart, and can be taken up again. SIGUSR2 does the same.
Exit codes: 0 the new one answers, 1 it would not start or did not, 4 there is no daemon.

Examples:
  acpd handover
  acpd handover --json | jq -r .to";

pub(super) const RELOAD: &str = "\
Tokens, agents, limits and what is kept are read anew, as with SIGHUP; addresses, TLS, [terminal] and \
the rest of [storage] take a restart. A mistake in the file is told, and everything stays as it was.
Exit codes: 0 the new configuration is in force, 2 it is wrong, 4 there is no daemon.

Examples:
  acpd reload
  acpd reload --connect https://acpd.example.org --token-file admin.token";

/// `acpd status`, `acpd stop`, `acpd handover` and `acpd reload`: something that is done with a daemon.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Operate {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd open`
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = "\
The browser is let in by a code that is good once, for a minute; what it is given for it is good for 12 \
hours, or until the daemon ends. With --connect URL the page asks for a token. Where there is no \
display, the address is printed.
Exit codes: 0 it is open or printed, 4 there is no daemon, or no such session.

Examples:
  acpd open
  acpd open 5f0c9e                             one session
  acpd open --print                            the address, for a browser elsewhere")]
pub struct Open {
    /// The session to show: its id, or an end or beginning of it that no other one has
    #[arg(value_name = "ID")]
    pub id: Option<String>,

    /// Print the address, and start no browser
    #[arg(long)]
    pub print: bool,

    /// Print the address as JSON, and start no browser
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd doctor`
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = "\
It looks at the configuration, agents, limits, the state directory with its log, the systemd unit \
and the daemon, and changes nothing.
Exit codes: 0 all is well, 1 something is not, with what to do about it.

Examples:
  acpd doctor
  acpd doctor --start                          start each agent, too, as acpd agents check does
  acpd doctor --json | jq -r '.checks[] | select(.ok | not).remedy'")]
pub struct Doctor {
    /// Start every agent, ask it what it is, and stop it
    #[arg(long)]
    pub start: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd migrate`
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = "\
Whatever needs the sessions does this by itself, before anything else. This does it alone, with as much free space as the database has.
What was copied counts when it is run again. While another process uses the database, nothing is done: exit code 1.
The database is kept as acpd.db.migrated for 30 days. One of which something could not be read is kept as acpd.db.damaged.
Exit codes: 0 sessions are files, 1 they are not, and why.

Examples:
  acpd migrate
  acpd migrate --state-dir /var/lib/acpd
  acpd migrate --json | jq .lost")]
pub struct Migrate {
    /// Remove the database that was migrated, now or before
    #[arg(long)]
    pub remove_old: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE", display_order = 90)]
    pub config: Option<PathBuf>,

    /// The state directory, instead of ~/.local/state/acpd
    #[arg(long, value_name = "DIR", display_order = 91)]
    pub state_dir: Option<PathBuf>,
}
