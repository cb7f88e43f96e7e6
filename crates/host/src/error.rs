//! Why the host did not do what a client asked. The gateway turns these into wire errors, in one table.

use crate::agent::AgentStartError;
use crate::agent_end::instead;
use crate::chain::chain;
use crate::refusal::{AgentError, login_command};
use acpd_eventlog::{CursorError, WriteError};
use acpd_record::{SessionId, TerminatedBy, TerminationInfo, TurnNumber};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HostError {
    /// No session of that id, or none that this client may know of.
    #[error("session not found")]
    UnknownSession {
        /// The id as the client gave it.
        id: String,
    },
    /// The session has ended.
    #[error("session has ended")]
    SessionEnded {
        /// The session.
        id: String,
        /// How.
        info: Arc<TerminationInfo>,
    },
    /// The session cannot be activated; it can be read.
    #[error("session cannot be taken up again: {reason}")]
    NotResumable {
        /// The session.
        id: String,
        /// Why.
        reason: String,
    },
    /// The agent wants a login before it goes on with the session; it can be read.
    #[error("session cannot be taken up again: {reason}")]
    LoginRequired {
        /// The session.
        id: String,
        /// What the agent says.
        reason: String,
    },
    /// The session was terminated, which is final (contract 1).
    #[error("session cannot be taken up again: it was terminated, which is final")]
    Terminated {
        /// The session.
        id: String,
        /// How it ended.
        info: Arc<TerminationInfo>,
    },
    /// The client is not attached to the session, which goes on without it.
    #[error("not attached to this session; load or resume it first")]
    NotAttached {
        /// The session.
        id: String,
    },
    /// Another process that shares the state directory has the session.
    #[error("session is live in another acpd process{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    LiveElsewhere {
        /// The session.
        id: String,
        /// That process.
        pid: Option<u32>,
    },
    /// The agent of the session has outlived its daemon, and is another one's to take over.
    #[error("{}", of_one_that_waits(*left, *is_ours))]
    Detached {
        /// The session.
        id: String,
        /// How much longer it waits.
        left: Duration,
        /// This host is the one that adopts it, and has not been able to so far.
        is_ours: bool,
    },
    /// The stored history cannot be read.
    #[error("{detail}")]
    History {
        /// What went wrong.
        detail: String,
    },
    /// The parameters do not say what they must.
    #[error("{message}")]
    InvalidParams {
        /// Which field, what is wrong with it and what would be right.
        message: String,
    },
    /// No agent of that name is configured.
    #[error(
        "no agent named {name:?} is configured (there are: {}){}", known.join(", "),
        meant.as_ref().map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
    )]
    UnknownAgent {
        /// The name.
        name: String,
        /// The names that would work.
        known: Vec<String>,
        /// The name that was probably meant.
        meant: Option<String>,
    },
    /// The agent of that name is not there.
    #[error("agent {name} is not installed: {why}")]
    NotInstalled {
        /// The name.
        name: String,
        /// What is missing, and what installs it.
        why: String,
    },
    /// The token has as many live sessions as it may.
    #[error("this token has {most} live sessions, which is its limit: close one first")]
    TooManySessions {
        /// How many it may have.
        most: usize,
    },
    /// A client's key for a prompt belongs to another prompt of the session, or one for a creation to another one.
    #[error(
        "idempotencyKey: {key:?} belongs to another prompt of this session; give each prompt a key of its own"
    )]
    KeyReused {
        /// The key.
        key: String,
    },
    /// The turn of a prompt that came again ended with its run.
    #[error("turn {turn} was interrupted by the end of its run")]
    TurnInterrupted {
        /// The turn.
        turn: TurnNumber,
    },
    /// As many prompts wait as may.
    #[error("{queued} prompts are waiting already")]
    QueueFull {
        /// How many.
        queued: usize,
    },
    /// The agent does not read what it is sent.
    #[error("the agent does not read its input; {waiting} bytes are waiting for it")]
    AgentNotReading {
        /// How much waits.
        waiting: usize,
    },
    /// The agent could not be started.
    #[error("agent {agent} did not start")]
    Start {
        /// Its name.
        agent: String,
        /// Why.
        #[source]
        source: Arc<AgentStartError>,
        /// The same as a record.
        info: Arc<TerminationInfo>,
    },
    /// The agent ended before it answered.
    #[error("{}", before_the_answer(info))]
    AgentGone {
        /// How.
        info: Arc<TerminationInfo>,
    },
    /// The agent did not answer in time.
    #[error("the agent did not answer {method} within {} s{}", after.as_secs_f64(), instead(dropped.as_deref()))]
    Timeout {
        /// What it was asked.
        method: String,
        /// The bound.
        after: Duration,
        /// The first line that it wrote instead, if any.
        dropped: Option<String>,
    },
    /// The agent's own answer was this error; it goes to the client unchanged.
    #[error("the agent answered an error")]
    Agent {
        /// The raw error object.
        error: Bytes,
    },
    /// The agent's answer lacks something that the protocol requires.
    #[error("the agent's answer to {method} is not usable: {detail}")]
    BadAnswer {
        /// What it was asked.
        method: String,
        /// What is missing.
        detail: String,
    },
    /// The method exists, but neither acpd nor this agent serves it.
    #[error("method not found: {method}")]
    MethodNotFound {
        /// The method.
        method: String,
    },
    /// The client withdrew the request.
    #[error("request cancelled")]
    RequestCancelled,
    /// The event log could not be written.
    #[error("the session could not be recorded")]
    Log(#[from] WriteError),
    /// There is no index of what was said.
    #[error("search is turned off: set search = true in [storage] of the configuration, and restart")]
    SearchOff,
    /// What was done for it panicked.
    #[error("acpd failed in the middle of this; its log says more")]
    Broken,
    /// No session is created here for now.
    #[error(
        "this node takes no new sessions; create it on another node, or have this one take them again: acpd nodes undrain"
    )]
    Draining,
    /// The session may be taken up by another node now, so it does not run here.
    #[error(
        "the fleet has not heard of this node in time, so that another node may take this session up; nothing was done: try again, or \
         at another node"
    )]
    Fenced,
    /// The session of a key is another node's.
    #[error("a session was created under this key on node {node}; nothing was done: ask there")]
    OnNode {
        /// Its id.
        id: String,
        /// That node.
        node: String,
    },
    /// The host is shutting down.
    #[error("server shutting down; reload sessions after restart")]
    ShuttingDown,
}

impl HostError {
    /// The session cannot be activated.
    pub(crate) fn not_resumable(id: &SessionId, reason: impl Into<String>) -> Self {
        Self::NotResumable { id: id.to_string(), reason: reason.into() }
    }

    /// The agent wants a login first.
    pub(crate) fn login_required(id: &SessionId, agent: &str, reason: String) -> Self {
        let reason = format!("{reason}; `{}` logs it in", login_command(agent));
        Self::LoginRequired { id: id.to_string(), reason }
    }
}

/// What an agent says in an error of its own, for those who do not pass it on: whether it wants a login first, and a sentence.
pub fn told_by_agent(error: &[u8]) -> (bool, String) {
    let error = AgentError::read(error);
    (error.wants_login(), error.sentence())
}

/// An agent whose time is over is on its way down its ladder.
fn of_one_that_waits(left: Duration, is_ours: bool) -> String {
    if left.is_zero() {
        return "the session's agent is being ended, since no `acpd serve` came in time; try again in a moment".to_owned();
    }
    let seconds = left.as_secs().max(1);
    if is_ours {
        return format!(
            "this daemon could not adopt the session's agent so far, which waits for {seconds} s more; the daemon's log says              why; try again: each request tries to adopt it"
        );
    }
    format!(
        "the session's agent waits for the next `acpd serve` on this state directory, for {seconds} s more; start that to go \
         on with it"
    )
}

/// Who ended an agent that had something to answer.
fn before_the_answer(info: &TerminationInfo) -> String {
    match (info.terminated_by, &info.message) {
        (TerminatedBy::Agent, _) => "the agent ended before it answered".to_owned(),
        (TerminatedBy::Daemon, None) => "acpd ended the agent before it answered".to_owned(),
        (TerminatedBy::Daemon, Some(why)) => format!("acpd ended the agent before it answered: {why}"),
    }
}

impl From<CursorError> for HostError {
    fn from(error: CursorError) -> Self {
        match error {
            // It may be deleted at any moment.
            CursorError::Unknown { id } => Self::UnknownSession { id },
            error => Self::History { detail: chain(&error) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 7.3: a daemon does not send its own clients to "the next `acpd serve`"
    #[test]
    fn a_daemon_names_itself_as_the_one_that_adopts() {
        let text = |left, is_ours| {
            let (id, left) = ("s".to_owned(), Duration::from_secs(left));
            HostError::Detached { id, left, is_ours }.to_string()
        };
        assert!(
            text(9, false).contains("waits for the next `acpd serve`") && text(9, false).contains("9 s more")
        );
        let ours = text(9, true);
        assert!(
            !ours.contains("acpd serve") && ours.contains("9 s more") && ours.contains("try again"),
            "{ours}"
        );
        assert!(text(0, true).contains("is being ended"));
    }

    // contract 1.2: what acpd has ended is not told as the agent's own end
    #[test]
    fn who_ended_an_agent_is_told_apart() {
        for (by, message, told) in [
            ("agent", json!("agent exited"), "the agent ended before it answered"),
            ("daemon", json!(null), "acpd ended the agent before it answered"),
            ("daemon", json!("no room left"), "acpd ended the agent before it answered: no room left"),
        ] {
            let record = json!({"reason": "error", "terminatedBy": by, "message": message, "endedAt": "",
                "turnActive": true, "leaked": false});
            let info = Arc::new(serde_json::from_value(record).expect("a record"));
            assert_eq!(HostError::AgentGone { info }.to_string(), told);
        }
    }
}
