//! What can be typed to talk to a daemon.

use super::sessions::{Answer, Export, Fork, Import, Prune, SessionPrompt, Several};
use crate::config::agent_name;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The daemon, and the caller's token for it.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Connect {
    /// Talk to the daemon at this URL (http://HOST:PORT, https://HOST:PORT, unix:PATH); default: $ACPD_CONNECT,
    /// client.connect of the configuration, else the one that serves the state directory
    #[arg(long, value_name = "URL", display_order = 80)]
    pub connect: Option<String>,

    /// Read the token for the daemon from this file; default: $ACPD_TOKEN, or
    /// client.token_file of the configuration
    #[arg(long, value_name = "FILE", display_order = 81)]
    pub token_file: Option<PathBuf>,

    /// Trust the certificates in this PEM file; default: those in $ACPD_CA, or of
    /// client.ca of the configuration, else the system's
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
Without a daemon, those that are stored in the state directory.

Examples:
  acpd sessions list --live                    what runs or waits right now
  acpd sessions list --state waiting           what waits for an answer
  acpd sessions list --query \"parser tests\"   by title, directory, agent or id
  acpd sessions list --agent opencode --json | jq -r '.sessions[].sessionId'")]
    List(List),
    /// Search what was said: prompts, answers and titles of tool calls, the latest first
    #[command(after_help = "\
Turns are found in which all of the words stand; case, accents and punctuation do not count. A word with \
a * behind it stands for all that begin so. Without a daemon, what is stored in the state directory is \
searched.

Examples:
  acpd sessions search parser                  turns in which \"parser\" was said
  acpd sessions search 'pars*' tests --limit 5
  acpd sessions search parser --json | jq -r '.hits[].sessionId'")]
    Search(Search),
    /// Show one session, and how it ended
    #[command(after_help = "\
Examples:
  acpd sessions show 5f0c9e                    the end of an id is enough, or its beginning
  acpd sessions show 5f0c9e --json | jq .terminationInfo")]
    Show(One),
    /// Print the events of a session, one per line; times are UTC
    #[command(after_help = "\
With --follow it goes on until the session ends, and comes back by itself when the connection is \
lost or the daemon restarts: every event is printed exactly once.

Examples:
  acpd sessions events 5f0c9e --follow
  acpd sessions events 5f0c9e --after 120 --json | jq .kind")]
    Events(Events),
    /// Prompt a session, and show the turn
    #[command(after_help = "\
It is one more prompt in a session that is there, like `acpd run --session ID`, for one that is live; \
it waits in line while a turn runs.

Examples:
  acpd sessions prompt 5f0c9e \"and now the tests\"
  git diff | acpd sessions prompt 5f0c9e - --no-wait")]
    Prompt(SessionPrompt),
    /// Cancel the turns of sessions
    #[command(after_help = "\
Examples:
  acpd sessions cancel 5f0c9e")]
    Cancel(Several),
    /// Show what an agent asks, and answer it
    #[command(after_help = "\
Without an answer it shows what is asked, with the options. The first answer counts, whichever client \
gives it.

Examples:
  acpd sessions answer 5f0c9e                  what is asked?
  acpd sessions answer 5f0c9e yes              or no, always, an option by its id or name
  acpd sessions answer 5f0c9e --question 12 --field name=Ann --field size=3
  acpd sessions answer 5f0c9e --decline")]
    Answer(Answer),
    /// Stop using sessions: their turns are cancelled and their agents end; they stay listed and can be taken up again
    Close(Several),
    /// End sessions for good, whatever their agents do
    Terminate(Several),
    /// Close sessions if they are live, and remove them with their history
    Delete(Several),
    /// Begin a new session with the history of another, and print its id
    #[command(after_help = "\
The agent copies what it knows, and both sessions go on; not every agent can do that. The new one \
stays live.

Examples:
  acpd sessions fork 5f0c9e
  acpd run --session $(acpd sessions fork 5f0c9e) \"try it the other way\"
  acpd sessions fork 5f0c9e --cwd ../other-tree --json | jq -r .sessionId")]
    Fork(Fork),
    /// Write sessions to stdout or a file
    #[command(after_help = "\
What is exported as jsonl can be imported, here or elsewhere; markdown is for people. Several sessions \
stand one behind the other.

Examples:
  acpd sessions export 5f0c9e --format markdown | less
  acpd sessions export 5f0c9e --format markdown --details --output session.md
  acpd sessions export 5f0c9e 77ab12 --output sessions.jsonl")]
    Export(Export),
    /// Take over sessions from a file that export has written
    #[command(after_help = "\
Each session is taken over whole or not at all, and is yours from then on. Its agent's own memory of it \
is elsewhere: it can be gone on with where resume_with_transcript = true is in the agent's entry, and in \
another directory with \"acpd run --session ID --cwd DIR\".

Examples:
  acpd sessions import sessions.jsonl
  ssh build-1 acpd sessions export 5f0c9e | acpd sessions import -")]
    Import(Import),
    /// Remove ended sessions that are old, or the oldest while all take too much
    #[command(after_help = "\
What is live, or being taken up, stays. Without --older-than and --keep-bytes it goes by keep_for and \
keep_bytes in [storage] of the configuration, as a daemon does each hour by itself.

Examples:
  acpd sessions prune --older-than 30d --dry-run    what would go?
  acpd sessions prune --keep-bytes 1GiB
  acpd sessions prune --older-than 1d --json | jq .bytes")]
    Prune(Prune),
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

    /// Only those that are doing this
    #[arg(long, value_name = "STATE", value_enum, conflicts_with_all = ["ended", "live"])]
    pub state: Option<State>,

    /// Only those whose title, directory or agent has each of these words, or whose id begins or ends with it
    #[arg(short, long, value_name = "TEXT", value_parser = words)]
    pub query: Option<String>,

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

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// Its agent is about to be there
    Starting,
    /// It waits for a prompt
    Idle,
    /// A turn is running
    Running,
    /// It waits for an answer
    Waiting,
    /// Its last run is over
    Ended,
}

fn words(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("a word to look for is required"),
        words => Ok(words.to_owned()),
    }
}

/// `acpd sessions search`
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Search {
    /// The words
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,

    /// At most so many turns
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,

    /// Print JSON: {"hits": [...], "incomplete": ...}
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
