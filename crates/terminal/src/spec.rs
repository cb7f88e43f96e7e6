//! How to start a terminal: what its caller says.

use acpd_supervisor::WindowSize;
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
    /// A path, or a name that is looked for in `PATH`.
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
}
