//! What can be typed to install agents, to look after them, and to remove them.

use crate::config::byte_count;
use acpd_catalog::{AgentName, Kind, Version};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

fn name(text: &str) -> Result<AgentName, acpd_catalog::NameError> {
    AgentName::try_from(text.to_owned())
}

fn version(text: &str) -> Result<Version, acpd_catalog::NameError> {
    Version::try_from(text.to_owned())
}

/// The configuration that gets entries, and the state directory that agents are installed in.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct AgentPlace {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Use this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE", display_order = 90)]
    pub config: Option<PathBuf>,

    /// Use this state directory, below which agents are installed, instead of ~/.local/state/acpd
    #[arg(long, value_name = "DIR", display_order = 91)]
    pub state_dir: Option<PathBuf>,
}

/// What may run when an agent is installed, and how much is fetched.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Installing {
    /// Run the install scripts of its packages, and build those that have to be built, without asking
    #[arg(long, conflicts_with = "no_scripts")]
    pub allow_scripts: bool,

    /// Leave the install scripts of its packages out; many agents work without
    #[arg(long)]
    pub no_scripts: bool,

    /// Take archives of up to so many bytes, and four times as many unpacked
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "512 MiB")]
    pub max_size: u64,

    /// Do not start it: for an agent that has to be set up before it starts
    #[arg(long)]
    pub no_check: bool,
}

/// `acpd agents add`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
It is installed once, below agents/NAME/VERSION in the state directory, started as acpd agents check \
does, and gets an entry in the configuration, which a running daemon is told. Nothing is fetched when a \
session starts, and nothing updates by itself. Without --registry the agents that acpd knows by name are \
had as packages of npm and PyPI. An agent that does not start leaves nothing behind.
Of several kinds the first that this machine can have is taken: binary, npx (needs npm), uvx (needs uv, or \
python3).
Exit codes: 0 it is there and starts, 1 it cannot be installed or does not start, 2 it has an entry of your own, \
or install scripts that nothing allowed, 4 there is no such agent, 6 it wants a login before it starts.

Examples:
  acpd agents add opencode
  acpd agents add claude --version 0.100.0 --no-scripts
  acpd agents add goose --registry https://agents.example.org/registry.json
  acpd agents add mine --registry agent.json --kind binary")]
pub struct Add {
    /// The agent: a name that acpd knows, or its id in the registry
    #[arg(value_parser = name)]
    pub name: AgentName,

    /// Look for it in this registry: a file, or an https:// address, in the format of the ACP registry
    #[arg(long, value_name = "FILE|URL")]
    pub registry: Option<String>,

    /// Install this version instead of the newest
    #[arg(long, value_name = "V", value_parser = version)]
    pub version: Option<Version>,

    /// Take this kind of it
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::word)).try_map(|word| word.parse::<Kind>()))]
    pub kind: Option<Kind>,

    /// Take the place of an entry that was written by hand, or install a version anew
    #[arg(long)]
    pub replace: bool,

    /// What may run, and how much may come.
    #[command(flatten)]
    pub installing: Installing,

    /// Where it goes.
    #[command(flatten)]
    pub place: AgentPlace,
}

/// `acpd agents outdated`
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(after_help = "\
npm, PyPI or the registry that an agent was added from is asked; nothing is changed.
Exit codes: 0 all were asked, 1 some could not be.

Examples:
  acpd agents outdated
  acpd agents outdated --json | jq -r '.agents[] | select(.outdated).name'")]
pub struct Outdated {
    /// Where they are.
    #[command(flatten)]
    pub place: AgentPlace,
}

/// `acpd agents update`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
The newer version is installed beside the old one and started; then the entry names it, and the daemon is \
told. Sessions that run go on with the old one, which is removed once none does. A version that does not \
start leaves the old one in place. Install scripts are asked about anew.
Exit codes: 0 all are up to date, 1 one could not be updated, 2 one has install scripts that nothing \
allowed, 4 there is no such agent.

Examples:
  acpd agents update
  acpd agents update opencode --allow-scripts")]
pub struct Update {
    /// The agents; all that were added when there is none
    #[arg(value_parser = name)]
    pub names: Vec<AgentName>,

    /// What may run, and how much may come.
    #[command(flatten)]
    pub installing: Installing,

    /// Where they are.
    #[command(flatten)]
    pub place: AgentPlace,
}

/// `acpd agents remove`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Its entry goes from the configuration, and its directory from the state directory. Its sessions stay, and can be \
read. It is refused while one runs.
Exit codes: 0 it is gone, 1 sessions run or it was not confirmed, 2 its entry is one of your own, something else needs it, \
or there is no terminal to confirm it on and no --yes, 4 it was not added.

Examples:
  acpd agents remove opencode
  acpd agents remove opencode --yes")]
pub struct Remove {
    /// The agent
    #[arg(value_parser = name)]
    pub name: AgentName,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    /// Where it is.
    #[command(flatten)]
    pub place: AgentPlace,
}
