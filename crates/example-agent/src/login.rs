//! The login of an agent that wants one: what it offers, and whether it is there.
//!
//! Invariants: it is there when its file is, or its variable is set; nothing else makes it. Not a secret: any caller may make it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The variable that is a login.
const VARIABLE: &str = "EXAMPLE_AGENT_KEY";
/// The argument that logs in on a terminal.
pub(crate) const LOG_IN: &str = "--log-in";
/// What a person types there.
const WORD: &str = "example";

/// A way to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The agent does it when it is asked to.
    Agent,
    /// The same, and it never comes to an end.
    Never,
    /// This program, on a terminal.
    Terminal,
    /// The same, by the name that it had before it was part of ACP.
    Older,
    /// A variable is to be set.
    Variable,
}

impl Way {
    pub(crate) const NAMES: [(&str, Self); 5] = [
        ("agent", Self::Agent),
        ("never", Self::Never),
        ("terminal", Self::Terminal),
        ("older", Self::Older),
        ("variable", Self::Variable),
    ];

    /// The method as `initialize` tells it to a client with these capabilities; none where the client cannot show it.
    fn method(self, client: &Value, command: &[String]) -> Option<Value> {
        Some(match self {
            Self::Agent => {
                json!({"id": "agent", "name": "Example account", "description": "the agent logs in by itself"})
            }
            Self::Never => json!({"id": "never", "name": "Account that nobody has"}),
            Self::Terminal if client["auth"]["terminal"] == true => {
                json!({"id": "terminal", "name": "In the terminal", "type": "terminal", "args": [LOG_IN],
                    "env": {"EXAMPLE_AGENT_GREETING": "welcome"}})
            }
            Self::Older if client["_meta"]["terminal-auth"] == true => {
                let (program, args) = command.split_first()?;
                let told = json!({"command": program, "args": args, "env": {}, "label": "Example"});
                json!({"id": "older", "name": "In the terminal, as before", "_meta": {"terminal-auth": told}})
            }
            Self::Terminal | Self::Older => return None,
            Self::Variable => {
                json!({"id": "variable", "name": "A key", "type": "env_var",
                    "vars": [{"name": VARIABLE, "label": "the key", "secret": true}]})
            }
        })
    }
}

/// A login that is wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Login {
    pub(crate) ways: Vec<Way>,
    pub(crate) file: Option<PathBuf>,
}

impl Login {
    /// Whether sessions may begin.
    pub(crate) fn is_there(&self, state_dir: Option<&Path>) -> bool {
        let is_set = || std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
        self.ways.is_empty() || is_set() || self.place(state_dir).is_some_and(|file| file.exists())
    }

    /// The `authMethods` of the answer to `initialize`.
    pub(crate) fn methods(&self, client: &Value, command: &[String]) -> Vec<Value> {
        self.ways.iter().filter_map(|way| way.method(client, command)).collect()
    }

    /// The way with this id, if it is one that the agent goes by itself.
    pub(crate) fn way(&self, id: &str) -> Option<Way> {
        let named = Way::NAMES.iter().find(|(name, _)| *name == id).map(|(_, way)| *way);
        named.filter(|way| self.ways.contains(way) && matches!(way, Way::Agent | Way::Never))
    }

    fn place(&self, state_dir: Option<&Path>) -> Option<PathBuf> {
        self.file.clone().or_else(|| Some(state_dir?.join("login")))
    }

    /// Logs in.
    pub(crate) fn make(&self, state_dir: Option<&Path>) -> io::Result<()> {
        let file = self.place(state_dir).ok_or(io::ErrorKind::NotFound)?;
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(file, "logged in\n")
    }
}

/// Asks the person on the terminal, and logs in when that gives the right word.
pub(crate) fn on_terminal(login: &Login, state_dir: Option<&Path>) -> ExitCode {
    let (input, mut output) = (io::stdin(), io::stdout());
    if !input.is_terminal() || !output.is_terminal() {
        eprintln!("example agent: {LOG_IN} needs a terminal");
        return ExitCode::from(3);
    }
    let greeting = std::env::var("EXAMPLE_AGENT_GREETING").unwrap_or_else(|_| "hello".to_owned());
    // A terminal that is gone gives no word.
    let _gone = write!(output, "{greeting}; the word is \"{WORD}\": ").and_then(|()| output.flush());
    let mut word = String::new();
    let read = input.lock().read_line(&mut word);
    let done = match read {
        Ok(_) if word.trim() == WORD => login.make(state_dir),
        Ok(_) => Err(io::Error::other("that is not the word")),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => {
            println_to(&mut output, "you are logged in");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println_to(&mut output, &format!("you are not logged in: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn println_to(mut output: impl Write, text: &str) {
    let _gone = writeln!(output, "{text}");
}

/// How this program logs in on a terminal, with the arguments that it was called with.
pub(crate) fn command() -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_default();
    let args = std::env::args_os().skip(1);
    let words = std::iter::once(program.into_os_string()).chain(args);
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    words.map(|word| text(&word)).chain([LOG_IN.to_owned()]).collect()
}
