//! Exit codes, and how a failure is told to a person: the one place for both.

use acpd_host::chain;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked wrongly, on the command line or in the configuration.
    Usage(String),
    /// It was asked rightly and failed; told already.
    Told,
    /// It was asked rightly and failed.
    Failed(String),
    /// The reader of its output has closed the pipe.
    Unread(String),
}

impl Failure {
    /// For output that may be read in part: its reader has read enough, and is told nothing.
    pub(crate) fn or_read_enough(self) -> Self {
        if let Self::Unread(_) = self { Self::Told } else { self }
    }
}

/// An error with its sources, in one line.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let io = (&error as &dyn std::error::Error).downcast_ref::<std::io::Error>();
        match io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            true => Self::Unread(chain(&error)),
            false => Self::Failed(chain(&error)),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) | Self::Unread(message) => f.write_str(message),
            Self::Told => Ok(()),
        }
    }
}

/// Turns an outcome into an exit code (contract 6: 0 done, 1 failed, 2 usage) and writes the failure to stderr.
pub(crate) fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if !matches!(failure, Failure::Told) {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        // Without stderr the error cannot be shown.
        let _closed = writeln!(anstream::stderr(), "{style}error{style:#}: {failure}");
    }
    ExitCode::from(if matches!(failure, Failure::Usage(_)) { 2 } else { 1 })
}
