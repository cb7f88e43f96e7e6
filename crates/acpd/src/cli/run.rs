//! What can be typed behind `acpd run`.

use super::{Cli, HostLocation};
use crate::config::{PermissionMode, Wait, agent_name};
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use serde::Deserialize;
use std::path::PathBuf;

/// `acpd run`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
The answer goes to stdout, everything else to stderr. When the agent asks for permission, the \
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

Standard input that is not a terminal is read to its end before anything starts; </dev/null where \
it is open and has nothing to say.

With --connect, or when a daemon serves the state directory, the session is the daemon's: Ctrl-C \
cancels the turn, and once more leaves while the session lives on. When the turn is over, the \
session is closed. The agent then has the environment of the daemon, not yours, and is the one of \
the daemon's configuration: keys for it belong into env of its entry, or into what starts the daemon.

Examples:
  acpd run \"explain this repository\"
  acpd run --agent opencode --permission-mode acceptEdits \"rename foo to bar\"
  acpd run -c \"now add a test\"               one more prompt in the last session of this directory
  acpd run --session 5f0c9e \"why?\"           or in any other; \"acpd sessions list\" shows them
  acpd run --image shot.png --file log.txt \"what went wrong?\"
  acpd run --model opus --mode plan --option effort=high \"design it\"
  acpd run --mcp .mcp.json \"what is in the database?\"
  acpd run --command 'opencode acp' \"hello\"   an agent without an entry in the configuration
  git diff | acpd run \"review this\"           words, and what is on stdin behind them
  acpd run - < prompt.txt                     prompt from stdin
  answer=$(acpd run --format quiet \"...\")     the answer and nothing else
  acpd run --json \"tool build\" | jq .         one object per line, the last one is the result
  acpd run --connect http://127.0.0.1:2273 \"hello\"
  acpd run --detach --title \"nightly\" \"fix the tests\"    in the daemon; prints the session's id
  acpd run --timeout 10m \"fix the tests\"      cancelled when it takes longer
  acpd run -- --help                          a prompt that begins with a dash")]
pub struct Run {
    /// The session, and what the prompt is sent with.
    #[command(flatten)]
    pub choice: SessionChoice,

    /// Start the turn in the daemon, print the session's id and leave; the session is closed when the turn is over.
    /// What the agent asks can be answered with `acpd sessions answer`
    #[arg(long, conflicts_with_all = ["timeout", "command", "embedded"])]
    pub detach: bool,

    /// With --detach: leave the session open when the turn is over
    #[arg(long, requires = "detach")]
    pub keep_open: bool,

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

/// Which session a prompt is for, and what it is sent with.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct SessionChoice {
    /// The agent; default: default_agent of the configuration, else the built-in `example`
    #[arg(short, long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,

    /// Run this program as the agent, without an entry in the configuration: 'PROGRAM ARGS', quoted as in a shell.
    /// The session is hosted in this process
    #[arg(long, value_name = "COMMAND", value_parser = command_line, conflicts_with_all = ["agent", "connect"])]
    pub command: Option<CommandLine>,

    /// The directory the agent works in; default: the current one, with --session that of the session
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
        conflicts_with = "go_on"
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

    /// The model, by its id or name; what the agent offers is listed when there is no such one
    #[arg(short, long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,

    /// The mode of the agent, by its id or name
    #[arg(long, value_name = "MODE", value_parser = NonEmptyStringValueParser::new())]
    pub mode: Option<String>,

    /// Another option of the agent's, by its id and a value's id or name; may be given several times
    #[arg(long = "option", value_name = "ID=VALUE", value_parser = option_value)]
    pub options: Vec<OptionValue>,

    /// MCP servers for the agent: a JSON file with the mcpServers object that editors use; may be given several times
    #[arg(long, value_name = "FILE")]
    pub mcp: Vec<PathBuf>,

    /// The title of a new session, in lists; default: the agent's
    #[arg(long, value_name = "TITLE", value_parser = title,
          conflicts_with_all = ["go_on", "session"])]
    pub title: Option<String>,

    /// Who answers when the agent asks for permission; default: as its configuration says
    #[arg(short, long, value_name = "MODE", value_parser = permission_modes())]
    pub permission_mode: Option<PermissionMode>,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

/// An option of an agent's, and what it is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// Its id.
    pub id: String,
    /// The id or name of the value.
    pub value: String,
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

impl Run {
    /// What is printed.
    pub fn format(&self) -> RunFormat {
        if self.json { RunFormat::Json } else { self.format }
    }

    /// The prompt's source.
    pub fn prompt(&self, stdin_is_terminal: bool) -> Result<Prompt, clap::Error> {
        Prompt::of(&self.prompt, stdin_is_terminal, &["run"])
    }
}

impl Prompt {
    /// The source of a prompt that is typed like this behind a command; a usage error of the command when there is none,
    /// because waiting for a person to type it in would look like a hang.
    pub fn of(words: &[String], stdin_is_terminal: bool, command: &[&str]) -> Result<Self, clap::Error> {
        match words {
            [] if stdin_is_terminal => Err(usage(
                command,
                ErrorKind::MissingRequiredArgument,
                "there is no prompt; write one behind the flags, or \"-\" to read it from stdin",
            )),
            [] => Ok(Self::Stdin),
            [dash] if dash == "-" => Ok(Self::Stdin),
            words if words.iter().all(|word| word.trim().is_empty()) => {
                Err(usage(command, ErrorKind::InvalidValue, "the prompt is empty"))
            }
            words if stdin_is_terminal => Ok(Self::Words(words.join(" "))),
            words => Ok(Self::WordsAndStdin(words.join(" "))),
        }
    }
}

/// A usage error of a command, with its usage line.
fn usage(command: &[&str], kind: ErrorKind, message: &str) -> clap::Error {
    let mut acpd = Cli::command();
    acpd.build();
    let mut found = &mut acpd;
    for name in command {
        found = found.find_subcommand_mut(name).expect("it is a command");
    }
    found.error(kind, message)
}

/// The permission modes by their names.
pub(super) fn permission_modes() -> impl TypedValueParser<Value = PermissionMode> {
    let modes = [
        ("default", "Ask the attached clients"),
        ("acceptEdits", "Allow edits, deletions and moves; ask for the rest"),
        ("bypassPermissions", "Choose an allow option whenever one is offered; ask which of several"),
        ("deny", "Choose a reject option"),
    ];
    let modes = modes.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(modes).try_map(|name| {
        PermissionMode::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(&name))
    })
}

/// A command, split as a shell does, without anything that a shell would put in.
fn command_line(text: &str) -> Result<CommandLine, &'static str> {
    let mut words = shlex::split(text).ok_or("a quote has no end")?.into_iter();
    let program = words.next().filter(|program| !program.is_empty()).ok_or("a program is required")?;
    Ok(CommandLine { program, args: words.collect() })
}

/// `ID=VALUE`; a value may have more of `=`.
fn option_value(text: &str) -> Result<OptionValue, &'static str> {
    match text.split_once('=') {
        Some((id, value)) if !id.is_empty() && !value.is_empty() => {
            Ok(OptionValue { id: id.to_owned(), value: value.to_owned() })
        }
        _ => Err("ID=VALUE is required, such as thought_level=high"),
    }
}

/// A title that a client may choose.
fn title(text: &str) -> Result<String, &'static str> {
    if acpd_record::is_title(text) { Ok(text.to_owned()) } else { Err(acpd_host::TITLE_RULE) }
}
