//! The command line: what can be typed, its help, and nothing of what it does.
//!
//! The composition parses with [`Cli::parse_args`] and runs the command; the hidden `keeper` is taken off
//! before. Invariants: a usage error exits with 2 and says what to type; only commands that exist are offered.

mod chat;
mod completions;
mod config;
mod daemon;
mod installed;
mod nodes;
mod operate;
#[cfg(test)]
mod reference;
mod run;
mod sessions;
#[cfg(test)]
mod tests;
mod token;

pub use chat::{Attach, Chat};
pub(crate) use completions::VARIABLE;
pub use completions::{Completions, Shell};
pub use config::ConfigCommand;
pub use daemon::{Connect, Events, List, One, Search, Sessions, State, Top, Which};
pub use installed::{Add, AgentPlace, Installing, Outdated, Remove, Update};
pub use nodes::{Drain, NodeAct, Nodes};
pub use operate::{Doctor, Migrate, Open, Operate};
pub use run::{CommandLine, OptionValue, Prompt, Run, RunFormat, SessionChoice};
pub use sessions::{Answer, Export, Fork, Import, Prune, SessionPrompt, Several};
pub use token::{Token, TokenLimits, TokenPlace};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ColorChoice, Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::config::{agent_name, listen_address};

/// Hosts coding agents that speak the Agent Client Protocol (ACP).
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(
    name = "acpd",
    bin_name = "acpd",
    version,
    propagate_version = false,
    max_term_width = 100,
    after_help = "\
Examples:
  acpd run \"hello\"                          one prompt to the built-in example agent
  acpd run --agent opencode \"fix the tests\" one prompt to an agent that is installed
  acpd chat                                 many prompts, on a terminal
  acpd stdio --agent opencode               an agent for your editor
  acpd agents list                          which agents there are, and which are known
  acpd agents check opencode                does it start, and what can it do?
  acpd serve                                a daemon that hosts sessions for many clients
  acpd sessions list                        what it hosts

Known agents that are installed need no configuration; others have three lines in ~/.config/acpd/config.toml:
  [agents.mine]
  command = \"my-agent\"
  args = [\"acp\"]"
)]
pub struct Cli {
    /// Log more to stderr: -v what happens (serve always does), -vv in detail, -vvv everything
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 100)]
    pub verbose: u8,

    /// When to use colours: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        display_order = 101
    )]
    pub color: ColorChoice,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Command {
    /// Give an agent one prompt and show what it does
    Run(Box<Run>),
    /// Talk with an agent on the terminal
    Chat(Box<Chat>),
    /// Watch a session of a daemon, and take part in it
    Attach(Attach),
    /// Be the daemon: host sessions for any number of clients
    Serve(Serve),
    /// Be an ACP agent on stdin and stdout, for editors
    Stdio(Stdio),
    /// Manage access to the daemon
    #[command(subcommand)]
    Token(Token),
    /// Look at sessions, search them, and end them
    #[command(subcommand)]
    Sessions(Sessions),
    /// Watch the sessions of a daemon
    Top(Top),
    /// Show the daemon, or one of its sessions, in the browser
    Open(Open),
    /// Say whether there is a daemon, and how it stands
    #[command(after_help = operate::STATUS)]
    Status(Operate),
    /// Stop the daemon, and wait until it is gone
    #[command(after_help = operate::STOP)]
    Stop(Operate),
    /// Have the daemon go on as the acpd that is installed now
    #[command(after_help = operate::HANDOVER)]
    Handover(Operate),
    /// Have the daemon read its configuration anew
    #[command(after_help = operate::RELOAD)]
    Reload(Operate),
    /// Move the sessions of an earlier acpd from its database to files
    Migrate(Migrate),
    /// Say what is wrong here, and what to do about it
    Doctor(Doctor),
    /// Write, show and check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at agents, install, check and update them, and log in to them
    #[command(subcommand)]
    Agents(Agents),
    /// Look at the nodes of a fleet, and say which take new sessions
    #[command(subcommand)]
    Nodes(Nodes),
    /// Print what a shell needs to complete command lines of acpd
    Completions(Completions),
    /// The deterministic agent that ships with acpd, on stdin and stdout; for trying things out
    #[command(
        disable_help_flag = true,
        after_help = "\
Its arguments are the agent's own and are passed on as they are, for instance --without load,resume."
    )]
    ExampleAgent {
        /// Arguments of the agent
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// The location of settings and sessions.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct HostLocation {
    /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE", display_order = 90)]
    pub config: Option<PathBuf>,

    /// Keep sessions here instead of ~/.local/state/acpd
    #[arg(long, value_name = "DIR", display_order = 91)]
    pub state_dir: Option<PathBuf>,

    /// Host in this process even if a daemon serves the state directory
    #[arg(long, display_order = 92, conflicts_with = "connect")]
    pub embedded: bool,

    /// The daemon, if it is to be one.
    #[command(flatten)]
    pub connect: Connect,
}

/// `acpd serve`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
The first line on stdout says where it listens; logs go to stderr. Local commands find it by its \
Unix socket, acpd.sock in the state directory. Without tokens it listens on loopback only. \
SIGTERM or SIGINT: sessions end in order, and can be taken up again, or wait for the next daemon with [server] on_stop = \"keep\"; \
a second one hurries. \
SIGHUP, or acpd reload: reads tokens, agents and limits anew. \
SIGUSR2, or acpd handover: goes on as the acpd that is installed now. \
With --check the exit code is 0 if it could start and 1 if not, and each finding has its remedy; nothing \
is written, and a daemon that runs is not disturbed.

Examples:
  acpd serve
  acpd serve --listen 127.0.0.1:0 --state-dir /var/lib/acpd
  acpd serve --check                        before an upgrade, by the new binary")]
pub struct Serve {
    /// Listen here instead of 127.0.0.1:2273; port 0 picks a free one. The last one counts
    #[arg(long, value_name = "ADDR", value_parser = listen_address, overrides_with = "listen")]
    pub listen: Option<std::net::SocketAddr>,

    /// Say whether it could start with this configuration and this log, and start nothing
    #[arg(long)]
    pub check: bool,

    /// With --check: print JSON
    #[arg(long, requires = "check")]
    pub json: bool,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = false)]
    pub log_format: LogFormat,

    /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
    #[arg(long, value_name = "FILE", display_order = 90)]
    pub config: Option<PathBuf>,

    /// Keep sessions here instead of ~/.local/state/acpd
    #[arg(long, value_name = "DIR", display_order = 91)]
    pub state_dir: Option<PathBuf>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// `acpd stdio`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Give this to an editor as the command of a custom agent:
  acpd stdio --agent opencode
With --connect, or when a daemon serves the state directory, it is a front end of that daemon:
sessions live on when the editor goes away, and agents have the daemon's environment. \
Messages go over stdin and stdout, one JSON object per line; logs go to stderr.")]
pub struct Stdio {
    /// The agent to be
    #[arg(short, long, value_name = "NAME", value_parser = agent_name)]
    pub agent: String,

    /// Configuration and state.
    #[command(flatten)]
    pub location: HostLocation,
}

/// `acpd agents`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Agents {
    /// List the agents that are there, with versions and logins, and the known ones that are not installed
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The daemon, if there is one.
        #[command(flatten)]
        which: Which,
    },
    /// Install an agent, start it once, and give it an entry in the configuration
    Add(Box<Add>),
    /// List the agents that were added, and which have a newer version
    Outdated(Outdated),
    /// Install the newer versions of agents that were added
    Update(Update),
    /// Remove an agent that was added, with its entry
    Remove(Remove),
    /// Start an agent, show how it introduces itself and what it supports, and stop it
    Check {
        /// The agent
        #[arg(value_parser = agent_name)]
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Keep a log of its stderr, if it has one, here instead of in ~/.local/state/acpd
        #[arg(long, value_name = "DIR")]
        state_dir: Option<PathBuf>,
    },
    /// Log in to an agent of this machine, in a way of its own
    #[command(after_help = "\
A way of the agent's for terminals runs on this one; another one may open a browser. Afterwards it is said whether the login is \
seen. Where variables are to be set, it is said which and where, with exit code 6 until they are.

Examples:
  acpd agents login opencode                the only way, or a choice on a terminal
  acpd agents login codex --method chat-gpt by the agent's own name of it")]
    Login {
        /// The agent
        #[arg(value_parser = agent_name)]
        name: String,
        /// The way to log in, by its id
        #[arg(long, value_name = "ID")]
        method: Option<OsString>,
        /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The state directory, instead of ~/.local/state/acpd
        #[arg(long, value_name = "DIR")]
        state_dir: Option<PathBuf>,
    },
}

impl Cli {
    /// Parses `args`, the first of which is the program's name. Help and version come back as errors, too.
    pub fn parse_args<I, T>(args: I) -> Result<Cli, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        Cli::try_parse_from(args)
    }

    /// The least severe level that is logged.
    pub fn log_level(&self) -> LevelFilter {
        match self.verbose {
            // What a unit's journal should have without a flag.
            0 if matches!(self.command, Command::Serve(_)) => LevelFilter::INFO,
            0 => LevelFilter::WARN,
            1 => LevelFilter::INFO,
            2 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }
}
