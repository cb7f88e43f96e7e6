//! Why a daemon did not do what it was asked, in words for a person.

use crate::clean::line;
use crate::flag_names::in_flags;
use acpd_gateway::ConnectError;
use acpd_host::chain;
use http::StatusCode;
use serde::Deserialize;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// Characters of a daemon's text that are shown.
const SHOWN: usize = 300;

/// What went wrong between acpd and a daemon.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    /// No daemon listens there.
    #[error("no daemon answers at {at}")]
    Absent {
        at: String,
        #[source]
        source: io::Error,
    },
    /// It was not reached, and nothing was asked of it that would have changed something.
    #[error("nothing was done: {}", chain(error))]
    Undone { error: Box<DaemonError> },
    #[error("cannot connect to the daemon at {at}")]
    Connect {
        at: String,
        #[source]
        source: io::Error,
    },
    /// It may be another user's.
    #[error(transparent)]
    NotOurs(ConnectError),
    /// It took longer than it may.
    #[error("the daemon at {at} does not answer: it took longer than {} s", within.as_secs())]
    Slow { at: String, within: Duration },
    #[error("the connection to the daemon at {at} was lost")]
    Lost {
        at: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("what answers at {at} does not speak HTTP; a daemon with TLS is named with https://")]
    NotHttp {
        at: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("what answers at {at} does not speak TLS; a daemon without it is named with http://")]
    NotTls { at: String },
    #[error("the certificate of the daemon at {at} is not accepted: {remedy}")]
    Untrusted {
        at: String,
        remedy: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("{why}; it was tried again for {within:?}, without success")]
    GivenUp { why: String, within: Duration },
    #[error("{problem}")]
    Refused { problem: Problem },
    /// The session's node cannot be reached, and the daemon may know less of the session than that.
    #[error("node {node}, which has the session, cannot be reached")]
    NodeLost { node: String },
    #[error("the daemon at {at} answered what acpd cannot read: {detail}")]
    Unreadable { at: String, detail: String },
    #[error("cannot use the certificates in {path}: {detail}")]
    Certificates { path: String, detail: String },
    #[error(
        "there are no certificates to check {at} against; name a file of trusted ones with --ca or ACPD_CA"
    )]
    NoCertificates { at: String },
}

impl DaemonError {
    /// Whether it may well go away by itself: the same request can be tried again.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { problem } => {
                problem.status.is_server_error() || problem.status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::NodeLost { .. } => true,
            other => other.is_away(),
        }
    }

    /// Whether the daemon was not reached, or gave no answer: what was asked may have been done or not.
    pub(crate) fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Undone { .. }
                | Self::Absent { .. }
                | Self::Connect { .. }
                | Self::Slow { .. }
                | Self::Lost { .. }
        )
    }

    /// Whether a daemon was there, though it is no more: it took a connection and was gone before it had answered.
    pub(crate) fn was_there(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether the daemon says that the node which has the session does not answer.
    pub(crate) fn is_of_node(&self) -> bool {
        matches!(self, Self::Refused { problem } if problem.name == "node_unreachable")
    }

    /// Whether the daemon says that the agent cannot do it.
    pub(crate) fn is_not_supported(&self) -> bool {
        matches!(self, Self::Refused { problem } if problem.name == "not_supported")
    }

    /// Whether the daemon says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { problem } if problem.status == StatusCode::NOT_FOUND)
    }
}

/// What a daemon answered instead of what it was asked for (`application/problem+json`, RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The last part of its type, such as `session_not_found`.
    pub(crate) name: String,
    title: String,
    detail: String,
    /// Whether the request had a token.
    token_given: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    r#type: String,
    title: String,
    detail: String,
}

impl Problem {
    /// Reads an answer, which may come from a proxy and be no problem document at all.
    pub(crate) fn read(status: StatusCode, body: &[u8], token_given: bool) -> Self {
        let body: Body = acpd_wire::read(body).unwrap_or_default();
        let name = body.r#type.rsplit(':').next().unwrap_or_default();
        Self {
            status,
            name: line(name, 60),
            title: line(&body.title, SHOWN),
            detail: line(&body.detail, SHOWN),
            token_given,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.status.as_u16();
        let reason = self.status.canonical_reason().unwrap_or("no reason").to_lowercase();
        // Most titles are the reason once more, and a detail says more than any other.
        let title = if self.title.eq_ignore_ascii_case(&reason) { "" } else { self.title.as_str() };
        let said = in_flags(if self.detail.is_empty() { title } else { &self.detail });
        match &*said {
            "" => write!(f, "the daemon refused it ({number} {reason})")?,
            said if tracing::enabled!(tracing::Level::INFO) => {
                write!(f, "the daemon refused it ({number} {reason}): {said}")?;
            }
            said => f.write_str(said)?,
        }
        match (self.status, self.token_given) {
            (StatusCode::UNAUTHORIZED, false) => {
                f.write_str("; give a token in ACPD_TOKEN or with --token-file FILE")
            }
            // A daemon says that itself, a proxy may say nothing.
            (StatusCode::UNAUTHORIZED, true) if self.detail.is_empty() => {
                f.write_str("; the token that was given is not known there")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, body: &str) -> String {
        Problem::read(StatusCode::from_u16(status).expect("a status"), body.as_bytes(), false).to_string()
    }

    // contract 1.3, contract 6: a problem of the daemon is told by its detail, else its title; codes are for -v
    #[test]
    fn problems_are_told() {
        assert_eq!(
            shown(
                404,
                r#"{"type":"urn:sandbox-agent:error:session_not_found","title":"Session not found","detail":"there is no session x"}"#
            ),
            "there is no session x"
        );
        assert_eq!(shown(502, "<html>bad gateway"), "the daemon refused it (502 bad gateway)");
        assert_eq!(shown(409, r#"{"title":"Gone"}"#), "Gone");
        assert_eq!(
            shown(403, r#"{"title":"Forbidden","detail":"it takes the scope control"}"#),
            "it takes the scope control"
        );
        let body = br#"{"type":"urn:sandbox-agent:error:session_not_found"}"#;
        let problem = Problem::read(StatusCode::NOT_FOUND, body, false);
        assert_eq!(problem.name, "session_not_found");
    }

    // contract 1.7: 401 says how to give a token, or that the one that was given is not known
    #[test]
    fn a_missing_token_is_told_with_the_remedy() {
        let body = r#"{"title":"Unauthorized"}"#;
        let text = shown(401, body);
        assert!(text.contains("ACPD_TOKEN") && text.contains("--token-file"), "{text}");
        let wrong = Problem::read(StatusCode::UNAUTHORIZED, body.as_bytes(), true).to_string();
        assert!(wrong.contains("is not known") && !wrong.contains("ACPD_TOKEN"), "{wrong}");
        let told = br#"{"title":"Unauthorized","detail":"this is no token that acpd knows"}"#;
        assert_eq!(
            Problem::read(StatusCode::UNAUTHORIZED, told, true).to_string(),
            "this is no token that acpd knows"
        );
    }

    // contract 6: nothing unfiltered reaches the terminal
    #[test]
    fn a_hostile_problem_cannot_drive_the_terminal() {
        let text = shown(400, "{\"title\":\"a\\u001b[2Jb\",\"detail\":\"c\\nd\"}");
        assert_eq!(text, "c d");
        let title = shown(400, "{\"title\":\"a\\u001b[2Jb\"}");
        assert_eq!(title, "a␛[2Jb");
    }
}
