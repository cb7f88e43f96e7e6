//! Exit codes, and how a failure is told to a person: the one place for both.

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
}

impl Failure {
    /// An error with its sources, in one line.
    pub(crate) fn of(error: &dyn std::error::Error) -> Self {
        Self::Failed(chain(error))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::Told => Ok(()),
        }
    }
}

/// An error with its sources, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Turns an outcome into an exit code (contract 6: 0 done, 1 failed, 2 usage) and writes the failure to stderr.
pub(crate) fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(Failure::Failed(message)) => {
            print_error(&message);
            ExitCode::FAILURE
        }
        Err(Failure::Usage(message)) => {
            print_error(&message);
            ExitCode::from(2)
        }
    }
}

fn print_error(message: impl Display) {
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // Without stderr the error cannot be shown.
    let _closed = writeln!(anstream::stderr(), "{style}error{style:#}: {message}");
}
