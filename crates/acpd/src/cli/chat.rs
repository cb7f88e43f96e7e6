//! What can be typed behind `acpd chat` and `acpd attach`.

use super::{HostLocation, SessionChoice, Which};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// `acpd chat`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Each line is a prompt, also while a turn runs: it waits for that one, up to 16 of them.
  Enter           sends; behind a backslash, with Alt, and in what is pasted it is a new line
  Tab             completes a /command of the agent at the beginning, and an @file
  @file           puts a file below the session's directory into the prompt
  up, down        the lines before, from a file in the state directory
  Ctrl-R          the last line that has in it what is written; once more, the one before
  Ctrl-C          discards the line; at an empty one it cancels your turn and takes back what waits, or,
                  if you have none, cancels that of another client; once more leaves
  Ctrl-D          leaves; while a turn runs, when it is pressed once more
  /detach         leaves the session running in the daemon; \"acpd attach ID\" comes back to it
  /quit, /exit    leave as Ctrl-D does; /help says what can be typed
What the agent asks is answered where it is asked: a permission with the arrows or a letter, and Enter. Leaving closes a session that the chat has begun, \
as \"acpd run\" does; one that was live before lives on. Both can be gone on with. A closed terminal, as \
a lost connection, leaves a daemon's session with its turn; without a daemon it ends. A command of the \
agent comes before a word of acpd's with its name. \
With TERM=dumb nothing on the screen is changed once it is written, as screen readers want it.

Examples:
  acpd chat
  acpd chat --agent opencode --model fast      with another agent and model
  acpd chat -c                                 go on with the last session of this directory
  acpd chat --session 5f0c9e                   or with any other; \"acpd sessions list\" shows them
  acpd chat --connect http://127.0.0.1:2273")]
pub struct Chat {
    /// The session, and what the first prompt is sent with.
    #[command(flatten)]
    pub choice: SessionChoice,

    /// Configuration and state.
    #[command(flatten)]
    pub location: HostLocation,
}

/// `acpd attach`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Shows the end of the history, then what happens, from all clients; lines are prompts, as in \"acpd chat\". \
What the agent asks can be answered here too. Ctrl-D leaves, and the session lives on. A token with the \
scope observe only watches. For a session that has ended its end is shown; \"acpd chat --session ID\" goes \
on with it. It needs a terminal; \"acpd sessions events ID --follow\" is for scripts.

Examples:
  acpd attach 5f0c9e                           the end of an id is enough, or its beginning
  acpd attach 5f0c9e --all                     with the whole history
  acpd attach 5f0c9e --connect https://HOST:2273 --token-file FILE")]
pub struct Attach {
    /// The session: its id, or its end or beginning if no other has that
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub id: String,

    /// Show so many lines of what was before; default: 20
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub lines: Option<usize>,

    /// Show everything that was before
    #[arg(long)]
    pub all: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}
