//! The command line: what can be typed, its help, and nothing of what it does.
//!
//! The composition parses with [`Cli::parse_args`] and runs the command; the hidden `keeper` is taken off
//! before. Invariants: a usage error exits with 2 and says what to type; only commands that exist are offered.

mod daemon;
#[cfg(test)]
mod tests;

pub use daemon::{Connect, Events, List, One, Sessions, Top, Which};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgAction, Args, ColorChoice, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use tracing::level_filters::LevelFilter;

use crate::config::{PermissionMode, Scope, Sees, Wait, agent_name, listen_address};

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
  acpd run --agent opencode \"fix the tests\" one prompt to a configured agent
  acpd stdio --agent opencode               an agent for your editor
  acpd agents check opencode                does it start, and what can it do?
  acpd serve                                a daemon that hosts sessions for many clients
  acpd sessions list                        what it hosts

Agents are configured in ~/.config/acpd/config.toml:
  [agents.opencode]
  command = \"opencode\"
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
    Run(Run),
    /// Be the daemon: host sessions for any number of clients
    Serve(Serve),
    /// Be an ACP agent on stdin and stdout, for editors
    Stdio(Stdio),
    /// Manage access to the daemon
    #[command(subcommand)]
    Token(Token),
    /// Look at the sessions of a daemon, and end them
    #[command(subcommand)]
    Sessions(Sessions),
    /// Watch the sessions of a daemon
    Top(Top),
    /// Look at the configured agents
    #[command(subcommand)]
    Agents(Agents),
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

/// `acpd run`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
The answer goes to stdout, everything else to stderr. When the agent asks for permission, the
terminal asks you; without a terminal, and with --format quiet or json, it is refused.
Exit codes:
  0    the agent ended its turn
  1    the agent stopped for another reason (refusal, max_tokens, cancelled by another client) or failed
  2    wrong usage or configuration
  3    it took longer than --timeout, and was cancelled
  4    there is no such session, agent or daemon
  5    access was refused, or the turn ended because a permission was
  6    the agent wants a login
  130  Ctrl-C

Standard input that is not a terminal is read to its end before anything starts; </dev/null where
it is open and has nothing to say.

With --connect, or when a daemon serves the state directory, the session is the daemon's: Ctrl-C
cancels the turn, and once more leaves while the session lives on. When the turn is over, the
session is closed. The agent then has the environment of the daemon, not yours, and is the one of
the daemon's configuration: keys for it belong into env of its entry, or into what starts the daemon.

Examples:
  acpd run \"explain this repository\"
  acpd run --agent opencode --permission-mode acceptEdits \"rename foo to bar\"
  acpd run -c \"now add a test\"               one more prompt in the last session of this directory
  acpd run --session 5f0c9e \"why?\"           or in any other; \"acpd sessions list\" shows them
  acpd run --image shot.png --file log.txt \"what went wrong?\"
  git diff | acpd run \"review this\"           words, and what is on stdin behind them
  acpd run - < prompt.txt                     prompt from stdin
  answer=$(acpd run --format quiet \"...\")     the answer and nothing else
  acpd run --json \"tool build\" | jq .         one object per line, the last one is the result
  acpd run --connect http://127.0.0.1:2273 \"hello\"
  acpd run --timeout 10m \"fix the tests\"      cancelled when it takes longer
  acpd run -- --help                          a prompt that begins with a dash")]
pub struct Run {
    /// The agent; default: default_agent of the configuration, else the built-in `example`
    #[arg(short, long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,

    /// The directory the agent works in; default: the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Go on with the last session of this directory and agent
    #[arg(short = 'c', long = "continue")]
    pub go_on: bool,

    /// Go on with this session: its id, or its end or beginning if no other has that
    #[arg(
        long,
        value_name = "ID",
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with_all = ["go_on", "cwd"]
    )]
    pub session: Option<String>,

    /// Another directory that the agent may work in; may be given several times
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// Put this file into the prompt; may be given several times
    #[arg(long, value_name = "PATH")]
    pub file: Vec<PathBuf>,

    /// Put this image into the prompt: PNG, JPEG, GIF or WebP; may be given several times
    #[arg(long, value_name = "PATH")]
    pub image: Vec<PathBuf>,

    /// Who answers when the agent asks for permission; default: as its configuration says
    #[arg(short, long, value_name = "MODE", value_parser = permission_modes())]
    pub permission_mode: Option<PermissionMode>,

    /// Cancel the turn when it takes longer, such as 90s, 10m or 2h; the start of the agent counts
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Wait>,

    /// What is printed
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_default_value = true)]
    pub format: RunFormat,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// Configuration and state.
    #[command(flatten)]
    pub location: HostLocation,

    /// The prompt; several words are joined by spaces, and stdin is read behind them when it is not a terminal. `-`
    /// alone reads stdin only
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
}

/// What `acpd run` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// The answer on stdout, everything else on stderr
    #[default]
    Text,
    /// Only the answer
    Quiet,
    /// One JSON object per line (docs/schema/run.json); the last one is the result
    Json,
}

/// `acpd serve`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
The first line on stdout says where it listens; logs go to stderr. Local commands find it by its
Unix socket, acpd.sock in the state directory. Without tokens it listens on loopback only.
SIGTERM or SIGINT: sessions end in order, and can be taken up again; a second one hurries.
SIGHUP: reads tokens, agents and limits anew.

Examples:
  acpd serve
  acpd serve --listen 127.0.0.1:0 --state-dir /var/lib/acpd")]
pub struct Serve {
    /// Listen here instead of 127.0.0.1:2273; port 0 picks a free one
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub listen: Option<std::net::SocketAddr>,

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

/// `acpd token`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Token {
    /// Make a token, print it once, and keep its hash in the configuration
    #[command(after_help = "\
A running daemon that reads the same configuration knows it after SIGHUP.

Examples:
  acpd token new ci --scope control
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
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Keep it in this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// List the tokens that are known, without anything secret
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// `acpd stdio`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Give this to an editor as the command of a custom agent:
  acpd stdio --agent opencode
With --connect, or when a daemon serves the state directory, it is a front end of that daemon:
sessions live on when the editor goes away, and agents have the daemon's environment.
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
    /// List the configured agents, and how they are doing when a daemon has them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The daemon, if there is one.
        #[command(flatten)]
        which: Which,
    },
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
}

/// Where the prompt of `acpd run` comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// From the command line alone: stdin is a terminal.
    Words(String),
    /// From the command line, and what stdin has to its end behind it.
    WordsAndStdin(String),
    /// From stdin, to its end.
    Stdin,
}

impl Cli {
    /// Parses `args`, the first of which is the program's name. [`clap::Error::exit`] prints what comes back as
    /// an error and leaves with the right code: 2, or 0 for help and version.
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

impl Run {
    /// What is printed.
    pub fn format(&self) -> RunFormat {
        if self.json { RunFormat::Json } else { self.format }
    }

    /// The prompt's source; a usage error when there is none, because waiting for a person to type it in
    /// would look like a hang.
    pub fn prompt(&self, stdin_is_terminal: bool) -> Result<Prompt, clap::Error> {
        match self.prompt.as_slice() {
            [] if stdin_is_terminal => Err(run_usage(
                ErrorKind::MissingRequiredArgument,
                "there is no prompt; write one behind the flags, or \"-\" to read it from stdin",
            )),
            [] => Ok(Prompt::Stdin),
            [dash] if dash == "-" => Ok(Prompt::Stdin),
            words if words.iter().all(|word| word.trim().is_empty()) => {
                Err(run_usage(ErrorKind::InvalidValue, "the prompt is empty"))
            }
            words if stdin_is_terminal => Ok(Prompt::Words(words.join(" "))),
            words => Ok(Prompt::WordsAndStdin(words.join(" "))),
        }
    }
}

/// A usage error of `acpd run` with its usage line.
fn run_usage(kind: ErrorKind, message: &str) -> clap::Error {
    let mut acpd = Cli::command();
    acpd.build();
    let run = acpd.find_subcommand_mut("run").expect("run is a command");
    run.error(kind, message)
}

/// The permission modes by their names.
fn permission_modes() -> impl TypedValueParser<Value = PermissionMode> {
    let modes = [
        ("default", "Ask the attached clients"),
        ("acceptEdits", "Allow edits, deletions and moves; ask for the rest"),
        ("bypassPermissions", "Choose an allow option whenever one is offered"),
        ("deny", "Choose a reject option"),
    ];
    let modes = modes.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(modes).try_map(|name| {
        PermissionMode::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(&name))
    })
}
