//! Exit codes, and how a failure is told to a person: the one place for both.

use crate::clean::styled;
use crate::streams::remark;
use crate::verdict::of_error;
use acpd_host::chain;
use rustix::io::Errno;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// What an exit code says (contract 7.1); 0 is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// It was asked rightly and failed.
    Failed = 1,
    /// It was asked wrongly, on the command line or in the configuration.
    Usage = 2,
    /// It took longer than it might.
    TimedOut = 3,
    /// There is no such session, agent or daemon.
    Missing = 4,
    /// Access was refused, or a permission that was refused ended the turn.
    Denied = 5,
    /// The agent wants a login.
    Login = 6,
    /// The person stopped it, as the shell has it for SIGINT.
    Interrupted = 130,
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked wrongly, on the command line or in the configuration.
    Usage(String),
    /// It was asked rightly and failed.
    Failed(String),
    /// It failed in a way that has a code of its own.
    Of(Code, String),
    /// It failed; told already.
    Told(Code),
    /// The reader of its output has closed the pipe.
    Unread(String),
    /// The terminal of its output is gone.
    HungUp(String),
}

impl Failure {
    /// There is no such session, agent or daemon.
    pub(crate) fn missing(what: impl Display) -> Self {
        Self::Of(Code::Missing, what.to_string())
    }

    /// For output that may be read in part: its reader has read enough, and is told nothing.
    pub(crate) fn or_read_enough(self) -> Self {
        if let Self::Unread(_) = self { Self::Told(Code::Failed) } else { self }
    }

    /// The same, with the place where it came up.
    pub(crate) fn within(self, place: &str) -> Self {
        match self {
            Self::Usage(why) => Self::Usage(format!("{place}: {why}")),
            Self::Failed(why) => Self::Failed(format!("{place}: {why}")),
            Self::Of(code, why) => Self::Of(code, format!("{place}: {why}")),
            told @ (Self::Told(_) | Self::Unread(_) | Self::HungUp(_)) => told,
        }
    }

    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Usage(_) => Code::Usage,
            Self::Failed(_) | Self::Unread(_) | Self::HungUp(_) => Code::Failed,
            Self::Of(code, _) | Self::Told(code) => *code,
        }
    }
}

/// An error with its sources, in one line.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let io = (&error as &dyn std::error::Error).downcast_ref::<std::io::Error>();
        match io {
            Some(io) if io.kind() == ErrorKind::BrokenPipe => Self::Unread(chain(&error)),
            Some(io) if io.raw_os_error() == Some(Errno::IO.raw_os_error()) => Self::HungUp(chain(&error)),
            _ => Self::Of(of_error(&error), chain(&error)),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Failed(message)
            | Self::Of(_, message)
            | Self::Unread(message)
            | Self::HungUp(message) => f.write_str(message),
            Self::Told(_) => Ok(()),
        }
    }
}

/// Turns an outcome into an exit code and writes the failure to stderr.
pub(crate) fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    tell(&failure);
    ExitCode::from(failure.code() as u8)
}

/// Writes what is wrong with the command line to stderr, or the help or version that was asked for to stdout.
pub(crate) fn of_parsing(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    match printed {
        // Its reader may have read enough.
        Err(unwritten) if !error.use_stderr() && unwritten.kind() != ErrorKind::BrokenPipe => {
            exit_code(Err(unwritten.into()))
        }
        _ if error.use_stderr() => ExitCode::from(Code::Usage as u8),
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a failure to stderr, unless it was told already.
pub(crate) fn tell(failure: &Failure) {
    if !matches!(failure, Failure::Told(_)) {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        // Nothing in the text is acpd's own style: it may quote anything.
        remark(&format!("{style}error{style:#}: {}", styled(&failure.to_string(), false)));
    }
}
