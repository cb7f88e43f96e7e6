//! The command line: what can be typed, its help, and nothing of what it does.
//!
//! The composition parses with [`Cli::parse_args`] and runs the command; the hidden `keeper` is taken off
//! before. Invariants: a usage error exits with 2 and says what to type; only commands that exist are offered.

mod daemon;

pub use daemon::{Connect, Events, List, One, Sessions, Top, Which};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Deserialize;
use tracing::level_filters::LevelFilter;

use crate::config::{PermissionMode, Scope, Sees, agent_name, listen_address};

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
    pub color: Color,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always, on a pipe too
    Always,
    /// Never
    Never,
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
    /// Give somebody access to the daemon
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
terminal asks you; without a terminal, and with --json, it is refused.
Exit code: 0 when the agent ended its turn, 1 when it stopped for another reason or failed, 2 for
a usage error.

Standard input that is not a terminal is read to its end before anything starts; </dev/null where
it is open and has nothing to say.

With --connect, or when a daemon serves the state directory, the session is the daemon's: Ctrl-C
cancels the turn, and once more leaves while the session lives on. When the turn is over, the
session is closed. The agent then has the environment of the daemon, not yours, and is the one of
the daemon's configuration: keys for it belong into env of its entry, or into what starts the daemon.

Examples:
  acpd run \"explain this repository\"
  acpd run --agent opencode --permission-mode acceptEdits \"rename foo to bar\"
  git diff | acpd run \"review this\"           words, and what is on stdin behind them
  acpd run - < prompt.txt                     prompt from stdin
  acpd run --json \"tool build\" | jq .         one ACP update per line
  acpd run --connect http://127.0.0.1:2273 \"hello\"
  acpd run -- --help                          a prompt that begins with a dash")]
pub struct Run {
    /// The agent; default: default_agent of the configuration, else the built-in `example`
    #[arg(short, long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,

    /// The directory the agent works in; default: the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Who answers when the agent asks for permission; default: as its configuration says
    #[arg(short, long, value_name = "MODE", value_parser = permission_modes())]
    pub permission_mode: Option<PermissionMode>,

    /// Print each ACP update as one line of JSON
    #[arg(long)]
    pub json: bool,

    /// Configuration and state.
    #[command(flatten)]
    pub location: HostLocation,

    /// The prompt; several words are joined by spaces, and stdin is read behind them when it is not a terminal. `-`
    /// alone reads stdin only
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
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

impl Color {
    /// For `write_global`, so that everything that prints agrees.
    pub fn choice(self) -> anstream::ColorChoice {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
    }
}

impl Run {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::parse_args(std::iter::once("acpd").chain(line.split_whitespace()))
    }

    fn run(line: &str) -> Run {
        match parse(line).expect(line).command {
            Command::Run(run) => run,
            other => panic!("{other:?}"),
        }
    }

    // contract 6: the table of commands is consistent
    #[test]
    fn the_definition_holds() {
        Cli::command().debug_assert();
    }

    // contract 6: acpd run and its flags, before and after the prompt
    #[test]
    fn run_takes_its_flags_anywhere() {
        let run =
            run("run --agent opencode fix it --cwd /src --permission-mode acceptEdits --json --embedded");
        assert_eq!(run.agent.as_deref(), Some("opencode"));
        assert_eq!(run.cwd, Some("/src".into()));
        assert_eq!(run.permission_mode, Some(PermissionMode::AcceptEdits));
        assert!(run.json && run.location.embedded);
        assert_eq!(run.prompt(true).unwrap(), Prompt::Words("fix it".into()));
    }

    // contract 6: PROMPT, from words or stdin; 2 for usage
    #[test]
    fn a_prompt_comes_from_words_or_stdin() {
        assert_eq!(run("run -").prompt(true).unwrap(), Prompt::Stdin);
        assert_eq!(run("run").prompt(false).unwrap(), Prompt::Stdin);
        assert_eq!(run("run -- --help me").prompt(true).unwrap(), Prompt::Words("--help me".into()));
        let missing = run("run").prompt(true).unwrap_err();
        assert_eq!(missing.exit_code(), 2);
        let text = missing.to_string();
        assert!(text.contains("there is no prompt") && text.contains("Usage: acpd run"), "{text}");
        let mut empty = run("run x");
        empty.prompt = vec![" ".into()];
        assert_eq!(empty.prompt(false).unwrap_err().exit_code(), 2);
    }

    // contract 7.1: standard input that is not a terminal is appended to the words; - alone reads all of it
    #[test]
    fn words_do_not_hide_stdin() {
        assert_eq!(run("run fix it").prompt(false).unwrap(), Prompt::WordsAndStdin("fix it".into()));
        assert_eq!(run("run - it").prompt(false).unwrap(), Prompt::WordsAndStdin("- it".into()));
        assert_eq!(run("run -").prompt(false).unwrap(), Prompt::Stdin);
    }

    // contract 6: acpd stdio --agent NAME, acpd agents list|check NAME
    #[test]
    fn the_other_commands_parse() {
        let Command::Stdio(stdio) =
            parse("stdio --agent example --state-dir /s --config /c").unwrap().command
        else {
            panic!("stdio")
        };
        assert_eq!((stdio.agent.as_str(), stdio.location.state_dir), ("example", Some("/s".into())));
        assert_eq!(
            parse("agents list --json").unwrap().command,
            Command::Agents(Agents::List { json: true, which: Which::default() })
        );
        assert_eq!(
            parse("agents check x --config f --state-dir s").unwrap().command,
            Command::Agents(Agents::Check {
                name: "x".into(),
                json: false,
                config: Some("f".into()),
                state_dir: Some("s".into())
            })
        );
    }

    // contract 6: acpd sessions list|show ID|events ID|close ID|terminate ID|delete ID, --connect and --json everywhere
    #[test]
    fn the_commands_for_a_daemon_parse() {
        let which = |line: &str| match parse(line).expect(line).command {
            Command::Sessions(Sessions::List(list)) => (list.which, list.json),
            Command::Sessions(Sessions::Events(events)) => (events.one.which, events.one.json),
            Command::Sessions(
                Sessions::Show(one) | Sessions::Close(one) | Sessions::Terminate(one) | Sessions::Delete(one),
            ) => (one.which, one.json),
            Command::Top(top) => (top.which, top.json),
            Command::Agents(Agents::List { json, which }) => (which, json),
            other => panic!("{other:?}"),
        };
        for command in [
            "sessions list",
            "sessions show x",
            "sessions events x",
            "sessions close x",
            "sessions terminate x",
            "sessions delete x",
            "top",
            "agents list",
        ] {
            let line = format!("{command} --connect http://h:1 --token-file t --ca c --state-dir s --json");
            let (which, json) = which(&line);
            assert!(json && which.state_dir == Some("s".into()), "{line}");
            let connect = Connect {
                connect: Some("http://h:1".into()),
                token_file: Some("t".into()),
                ca: Some("c".into()),
            };
            assert_eq!(which.connect, connect, "{line}");
        }
        assert_eq!(run("run --connect unix:/s hi").location.connect.connect.as_deref(), Some("unix:/s"));
    }

    // contract 4: the example agent's own arguments reach it as they are
    #[test]
    fn the_example_agents_arguments_are_raw() {
        let Command::ExampleAgent { args } =
            parse("example-agent --without load,resume --help -x -- y").unwrap().command
        else {
            panic!("example-agent")
        };
        assert_eq!(args, ["--without", "load,resume", "--help", "-x", "--", "y"]);
        let Command::ExampleAgent { args } = parse("example-agent --help").unwrap().command else {
            panic!("example-agent")
        };
        assert_eq!(args, ["--help"]);
    }

    // contract 6: exit code 2 for usage, 0 for help and version; no command that does not exist
    #[test]
    fn usage_errors_exit_with_2() {
        for line in [
            "",
            "serve --listen nowhere",
            "token new x",
            "sessions",
            "sessions show",
            "sessions events x --after -1",
            "sessions list --ended --live",
            "sessions list --limit 0",
            "run --embedded --connect http://h hi",
            "run --agent ../x hi",
            "stdio",
            "agents",
            "run --permission-mode no x",
        ] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
        for line in ["--help", "--version", "run --help"] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 0, "{line}");
        }
    }

    // contract 6: logs go to stderr, more with -v, wherever it stands
    #[test]
    fn verbosity_and_colour_are_global() {
        assert_eq!(parse("agents list").unwrap().log_level(), LevelFilter::WARN);
        let cli = parse("agents list -vv --color never").unwrap();
        assert_eq!((cli.log_level(), cli.color), (LevelFilter::DEBUG, Color::Never));
        let levels =
            ["serve", "serve -v", "serve -vv", "run -v x"].map(|line| parse(line).unwrap().log_level());
        assert_eq!(levels, [LevelFilter::INFO, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::INFO]);
    }
}
