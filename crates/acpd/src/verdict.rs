//! Which exit code it is (contract 7.1).
//!
//! Pure. Not here: what is said of it.

use crate::daemon::{DaemonError, FindError};
use crate::exit::Code;
use crate::installing::InstallError;
use acpd_host::error_code;
use http::StatusCode;
use std::error::Error;

/// What stopped a turn from this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The person, with Ctrl-C or at a question.
    Person,
    /// `--timeout`.
    Timeout,
}

/// How `acpd run` came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn<'a> {
    /// The turn ended, for this reason.
    Ended(&'a str),
    /// What was asked for was answered with an error.
    Failed(Cause),
    /// It was left before anything was answered.
    Left,
}

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The agent is not known to the daemon.
    UnknownAgent,
    /// An error of the agent's, or of acpd's, by its code.
    Code(Option<i64>),
    /// The token does not include it.
    Scope,
    /// A flag has a value that it cannot have.
    Usage,
}

/// The code of a turn; `refused` says whether a permission was refused in it. What stopped it from here comes first,
/// whatever the agent says of the end.
pub(crate) fn verdict(turn: Turn<'_>, stop: Option<Stop>, refused: bool) -> Option<Code> {
    match (stop, turn) {
        (Some(Stop::Person), _) => Some(Code::Interrupted),
        (Some(Stop::Timeout), _) => Some(Code::TimedOut),
        (None, Turn::Ended("end_turn")) => None,
        (None, Turn::Ended("refusal" | "cancelled")) if refused => Some(Code::Denied),
        (None, Turn::Ended(_) | Turn::Left) => Some(Code::Failed),
        (None, Turn::Failed(cause)) => Some(match cause {
            Cause::UnknownAgent => Code::Missing,
            Cause::Scope => Code::Denied,
            Cause::Usage => Code::Usage,
            Cause::Code(Some(error_code::AUTH_REQUIRED)) => Code::Login,
            Cause::Code(_) => Code::Failed,
        }),
    }
}

/// The code of an error that has no place of its own.
pub(crate) fn of_error(error: &(dyn Error + 'static)) -> Code {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<FindError>() {
            return match error {
                FindError::Unknown { .. } => Code::Missing,
                FindError::Ambiguous { .. } => Code::Usage,
                FindError::Daemon(error) => of_daemon(error),
            };
        }
        if let Some(error) = error.downcast_ref::<DaemonError>() {
            return of_daemon(error);
        }
        if let Some(InstallError::Unallowed(_)) = error.downcast_ref::<InstallError>() {
            return Code::Usage;
        }
        next = error.source();
    }
    Code::Failed
}

fn of_daemon(error: &DaemonError) -> Code {
    match error {
        DaemonError::Absent { .. } | DaemonError::Connect { .. } => Code::Missing,
        DaemonError::Undone { error } => of_daemon(error),
        DaemonError::Refused { problem } => match problem.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Code::Denied,
            StatusCode::NOT_FOUND => Code::Missing,
            StatusCode::UNPROCESSABLE_ENTITY if problem.name == "configuration_invalid" => Code::Usage,
            StatusCode::CONFLICT if problem.name == "all_kept" => Code::Usage,
            _ => Code::Failed,
        },
        DaemonError::NotOurs(_)
        | DaemonError::Slow { .. }
        | DaemonError::Lost { .. }
        | DaemonError::GivenUp { .. }
        | DaemonError::NotHttp { .. }
        | DaemonError::NotTls { .. }
        | DaemonError::Untrusted { .. }
        | DaemonError::Unreadable { .. }
        | DaemonError::Certificates { .. }
        | DaemonError::NodeLost { .. }
        | DaemonError::NoCertificates { .. } => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::Problem;

    // contract 7.1: the exit code tells the causes apart
    #[test]
    fn a_turn_has_one_code() {
        let person = Some(Stop::Person);
        let timeout = Some(Stop::Timeout);
        for (turn, stop, refused, code) in [
            (Turn::Ended("end_turn"), None, false, None),
            // It was refused, and the agent went on without.
            (Turn::Ended("end_turn"), None, true, None),
            (Turn::Ended("refusal"), None, false, Some(Code::Failed)),
            (Turn::Ended("max_tokens"), None, false, Some(Code::Failed)),
            (Turn::Ended("max_tokens"), None, true, Some(Code::Failed)),
            (Turn::Ended("something new"), None, false, Some(Code::Failed)),
            // By another client.
            (Turn::Ended("cancelled"), None, false, Some(Code::Failed)),
            (Turn::Ended("refusal"), None, true, Some(Code::Denied)),
            (Turn::Ended("cancelled"), None, true, Some(Code::Denied)),
            (Turn::Ended("cancelled"), person, true, Some(Code::Interrupted)),
            (Turn::Ended("end_turn"), person, false, Some(Code::Interrupted)),
            (Turn::Left, person, false, Some(Code::Interrupted)),
            (Turn::Left, None, false, Some(Code::Failed)),
            (Turn::Ended("cancelled"), timeout, false, Some(Code::TimedOut)),
            (Turn::Ended("end_turn"), timeout, false, Some(Code::TimedOut)),
            (Turn::Left, timeout, false, Some(Code::TimedOut)),
            (Turn::Failed(Cause::Code(Some(-32603))), timeout, false, Some(Code::TimedOut)),
            (Turn::Failed(Cause::Code(Some(-32603))), None, false, Some(Code::Failed)),
            (Turn::Failed(Cause::Code(None)), None, false, Some(Code::Failed)),
            (Turn::Failed(Cause::Code(Some(-32000))), None, false, Some(Code::Login)),
            (Turn::Failed(Cause::Scope), None, false, Some(Code::Denied)),
            (Turn::Failed(Cause::UnknownAgent), None, false, Some(Code::Missing)),
        ] {
            assert_eq!(verdict(turn, stop, refused), code, "{turn:?} {stop:?} {refused}");
        }
    }

    // contract 7.1: 4 for what is not there, 5 where access is refused
    #[test]
    fn an_error_of_a_daemon_has_one_code() {
        let io = || std::io::Error::other("x");
        let refused = |status: u16| DaemonError::Refused {
            problem: Problem::read(StatusCode::from_u16(status).expect("a status"), b"", false),
        };
        let at = || "there".to_owned();
        for (error, code) in [
            (DaemonError::Absent { at: at(), source: io() }, Code::Missing),
            (DaemonError::Connect { at: at(), source: io() }, Code::Missing),
            (refused(401), Code::Denied),
            (refused(403), Code::Denied),
            (refused(404), Code::Missing),
            (refused(503), Code::Failed),
            (DaemonError::NotTls { at: at() }, Code::Failed),
        ] {
            let text = format!("{error:?}");
            assert_eq!(of_error(&FindError::Daemon(error)), code, "{text}");
        }
        assert_eq!(of_error(&FindError::Unknown { id: at() }), Code::Missing);
        let ambiguous = FindError::Ambiguous { part: at(), candidates: Vec::new() };
        assert_eq!(of_error(&ambiguous), Code::Usage);
        assert_eq!(of_error(&io()), Code::Failed);
    }
}
