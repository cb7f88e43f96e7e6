//! What is said of a command: its output, and how it ended.

use crate::life::TerminalState;
use acpd_supervisor::ExitStatus;

/// Output of a command, stdout and stderr as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The end of the output, at most the limit in bytes, whole characters; invalid bytes are U+FFFD.
    pub text: String,
    /// There was more before it.
    pub truncated: bool,
}

/// How a command ended: reaped, with everything that it left behind, and all its output read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalReport {
    /// Finished, killed, timed out, or released while it ran.
    pub state: TerminalState,
    /// What the operating system said of it.
    pub status: ExitStatus,
}

impl TerminalReport {
    /// The exit code, if it exited by itself; ACP's `exitCode`.
    pub fn exit_code(&self) -> Option<i32> {
        match self.status {
            ExitStatus::Code(code) => Some(code),
            ExitStatus::Signal(_) | ExitStatus::Unknown => None,
        }
    }

    /// The name of the signal that ended it, such as `SIGKILL`; ACP's `signal`.
    pub fn signal(&self) -> Option<&str> {
        match &self.status {
            ExitStatus::Signal(name) => Some(name),
            ExitStatus::Code(_) | ExitStatus::Unknown => None,
        }
    }
}

/// What is known of a terminal at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalSnapshot {
    /// Its output so far.
    pub output: TerminalOutput,
    /// How its command ended, once it has. The output is complete then.
    pub report: Option<TerminalReport>,
}
