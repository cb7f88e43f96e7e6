//! How to start a terminal: what its caller says.

use acpd_supervisor::{ProgramSpec, WindowSize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of a terminal: never given twice, by no process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminalId(Arc<str>);

impl TerminalId {
    pub(crate) fn fresh() -> Self {
        Self(format!("terminal-{}", uuid::Uuid::new_v4()).into())
    }

    /// As it is told to others.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An id as a message has it; whether there is such a terminal is another question.
impl From<&str> for TerminalId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TerminalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command to run, with everything that is its own.
#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// A path, or a name that is looked for in `PATH`. Without arguments, and where there is no such program, also a
    /// command line for `sh`.
    pub command: OsString,
    /// Arguments after the command's own name. Never parsed by a shell.
    pub args: Vec<OsString>,
    /// Added to the inherited environment, and stronger than it.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; it has to exist.
    pub cwd: PathBuf,
    /// For whom it runs, in the words of the caller ([`ProgramSpec::label`](acpd_supervisor::ProgramSpec::label)).
    pub label: Option<Arc<str>>,
    /// Bytes of output that are shown at most; None: the host's default. The host's ceiling bounds it.
    pub output_byte_limit: Option<u64>,
    /// A pseudo-terminal of this size as stdin, stdout and stderr. None: an empty stdin, and a pipe.
    pub pty: Option<WindowSize>,
}

impl TerminalSpec {
    /// A command without arguments, with the inherited environment.
    pub fn new(command: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            label: None,
            output_byte_limit: None,
            pty: None,
        }
    }

    /// Returns the command as a line for a shell, unless it can only be the name of a program.
    pub(crate) fn shell_line(&self) -> Option<ShellLine> {
        let line = self.command.to_str()?;
        let is_line =
            self.args.is_empty() && line.trim().contains(|c: char| c.is_whitespace() || SHELL.contains(c));
        is_line.then(|| ShellLine(line.to_owned()))
    }
}

/// What makes a word more than one to a shell.
const SHELL: &str = "|&;<>()$`";

/// A command line as models write it, which agents pass on as the name of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellLine(String);

impl ShellLine {
    /// Returns the name of the program that runs first, behind variables that are set for it.
    pub(crate) fn first_word(&self) -> &str {
        let is_variable = |word: &&str| {
            let name = word.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| {
                !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
            })
        };
        let mut words =
            self.0.split(|c: char| c.is_whitespace() || SHELL.contains(c)).filter(|word| !word.is_empty());
        words.find(|word| !is_variable(word)).unwrap_or_default()
    }

    /// Makes a shell of a program that does not exist.
    pub(crate) fn run_by_shell(&self, program: &mut ProgramSpec) {
        program.command = "sh".into();
        program.args = vec!["-c".into(), self.0.clone().into()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.3: a line is more than one word, and goes by its first program
    #[test]
    fn lines_are_told_from_names() {
        for (command, first) in [
            ("make lint && make test | tail -5", Some("make")),
            ("ls -la", Some("ls")),
            ("  FOO=1 B_2='x' /usr/bin/env", Some("/usr/bin/env")),
            ("(cd sub;pwd)", Some("cd")),
            ("ls|wc", Some("ls")),
            ("FOO=1 ", None),
            ("npm\ntest", Some("npm")),
            ("npm", None),
            (" npm ", None),
            ("./a-b_c.sh", None),
            ("", None),
        ] {
            let line = TerminalSpec::new(command, "/").shell_line();
            assert_eq!(line.as_ref().map(ShellLine::first_word), first, "{command:?}");
        }
        let spec = TerminalSpec { args: vec!["x".into()], ..TerminalSpec::new("ls -la", "/") };
        assert_eq!(spec.shell_line(), None, "one with arguments is a program");
    }
}
