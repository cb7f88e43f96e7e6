//! How a run ended: the record of contract 1.2, and the rules that tell one end from another.
//!
//! Pure: facts come in, the record goes out. The session task writes it, once.

mod memory;

use crate::agent::{AgentEnd, AgentFault, AgentStartError};
use crate::clock::iso8601;
use acpd_supervisor::{ExitReport, ExitStatus, StderrExcerpt};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Why a session ended, for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// In good order: the agent left while idle, the session was closed, the daemon shut down.
    Completed,
    /// Something went wrong.
    Error,
    /// Somebody ended it for good.
    Terminated,
}

/// Who caused the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminatedBy {
    /// The agent, by itself.
    Agent,
    /// acpd, by itself or because it was asked to.
    Daemon,
}

/// The exact cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Exited with code 0.
    AgentExit,
    /// Exited with another code or by a signal.
    AgentCrash,
    /// Could not be started.
    SpawnFailed,
    /// Did not answer `initialize` in time.
    InitializeTimeout,
    /// What it sent cannot be understood, or it broke the connection and lived on.
    ProtocolError,
    /// A client closed the session.
    ClientClose,
    /// A client terminated the session.
    ClientTerminate,
    /// Nothing happened for too long.
    IdleTimeout,
    /// The daemon, or the front end with a host inside, shut down in good order.
    DaemonShutdown,
    /// The daemon died while the session was live.
    DaemonLost,
    /// It ran out of memory: the kernel killed it for that, or its own runtime gave up.
    OutOfMemory,
}

impl Cause {
    /// All of them.
    pub(crate) const ALL: [Self; 11] = [
        Self::AgentExit,
        Self::AgentCrash,
        Self::SpawnFailed,
        Self::InitializeTimeout,
        Self::ProtocolError,
        Self::ClientClose,
        Self::ClientTerminate,
        Self::IdleTimeout,
        Self::DaemonShutdown,
        Self::DaemonLost,
        Self::OutOfMemory,
    ];

    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentExit => "agent_exit",
            Self::AgentCrash => "agent_crash",
            Self::SpawnFailed => "spawn_failed",
            Self::InitializeTimeout => "initialize_timeout",
            Self::ProtocolError => "protocol_error",
            Self::ClientClose => "client_close",
            Self::ClientTerminate => "client_terminate",
            Self::IdleTimeout => "idle_timeout",
            Self::DaemonShutdown => "daemon_shutdown",
            Self::DaemonLost => "daemon_lost",
            Self::OutOfMemory => "out_of_memory",
        }
    }
}

/// Head and tail of stderr.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StderrInfo {
    /// All of it when not truncated, else the first 50 lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The last 50 lines, only when truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// More than 100 lines were written.
    pub truncated: bool,
    /// Lines in all.
    pub total_lines: u64,
}

/// The record of one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminationInfo {
    /// Why.
    pub reason: Reason,
    /// Who.
    pub terminated_by: TerminatedBy,
    /// In words; with reason `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// With reason `error`, when the process exited by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// With reason `error`, when a signal killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// With reason `error`, when stderr was not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StderrInfo>,
    /// When, ISO 8601.
    pub ended_at: String,
    /// The exact cause; absent when acpd itself failed in a way that has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Who asked: a client's name, or `daemon`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<String>,
    /// A turn was running.
    pub turn_active: bool,
    /// The stop reason of the last turn that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_stop_reason: Option<String>,
    /// A descendant outlived the agent and was killed.
    pub leaked: bool,
    /// The rungs of the stop ladder that were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalation: Vec<String>,
    /// When the run began, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The last event before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_seq: Option<u64>,
}

/// Somebody wants a session to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedEnd {
    pub(crate) cause: Cause,
    pub(crate) initiator: String,
}

/// What the session itself knows at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionFacts {
    pub(crate) turn_active: bool,
    pub(crate) last_stop_reason: Option<String>,
    pub(crate) started_ms: Option<i64>,
    pub(crate) last_event_seq: Option<u64>,
}

impl TerminationInfo {
    /// The event that records this end; 0 if that is not known.
    pub(crate) fn seq(&self) -> u64 {
        self.last_event_seq.map_or(0, |last| last + 1)
    }

    fn bare(reason: Reason, by: TerminatedBy, cause: Option<Cause>, at_ms: i64) -> Self {
        Self {
            reason,
            terminated_by: by,
            message: None,
            exit_code: None,
            signal: None,
            stderr: None,
            ended_at: iso8601(at_ms),
            cause,
            initiator: None,
            turn_active: false,
            last_stop_reason: None,
            leaked: false,
            escalation: Vec::new(),
            started_at: None,
            last_event_seq: None,
        }
    }

    fn error(by: TerminatedBy, cause: Option<Cause>, message: String, at_ms: i64) -> Self {
        Self { message: Some(message), ..Self::bare(Reason::Error, by, cause, at_ms) }
    }

    /// The end of a run whose agent process is gone. Whoever asked first is the cause, whatever the process did
    /// while it was being stopped.
    pub(crate) fn of_agent(
        end: &AgentEnd,
        requested: Option<&RequestedEnd>,
        facts: &SessionFacts,
        at_ms: i64,
    ) -> Self {
        let info = match requested {
            Some(requested) => Self::of_request(requested, at_ms),
            None => Self::of_agent_alone(end, facts.turn_active, at_ms),
        };
        info.with_process(&end.report).with_facts(facts)
    }

    /// The end of a session whose shared process goes on.
    pub(crate) fn of_release(requested: &RequestedEnd, facts: &SessionFacts, at_ms: i64) -> Self {
        Self::of_request(requested, at_ms).with_facts(facts)
    }

    fn of_request(requested: &RequestedEnd, at_ms: i64) -> Self {
        let reason = match requested.cause {
            Cause::ClientTerminate => Reason::Terminated,
            _ => Reason::Completed,
        };
        let initiator = Some(requested.initiator.clone());
        Self { initiator, ..Self::bare(reason, TerminatedBy::Daemon, Some(requested.cause), at_ms) }
    }

    fn of_agent_alone(end: &AgentEnd, turn_active: bool, at_ms: i64) -> Self {
        use TerminatedBy::{Agent, Daemon};
        if let Some(AgentFault(message)) = &end.fault {
            return Self::error(Agent, Some(Cause::ProtocolError), message.clone(), at_ms);
        }
        if let Some(why) = memory::ran_out(&end.report) {
            return Self::out_of_memory(&end.report.status, &why, at_ms);
        }
        match &end.report.status {
            ExitStatus::Code(0) if !turn_active => {
                Self::bare(Reason::Completed, Agent, Some(Cause::AgentExit), at_ms)
            }
            ExitStatus::Code(0) => {
                let message = "agent exited with exit status: 0 during a turn".to_owned();
                Self { exit_code: Some(0), ..Self::error(Agent, Some(Cause::AgentExit), message, at_ms) }
            }
            status @ ExitStatus::Code(code) => {
                let message = format!("agent exited with {status}");
                Self { exit_code: Some(*code), ..Self::error(Agent, Some(Cause::AgentCrash), message, at_ms) }
            }
            ExitStatus::Signal(name) => {
                let message = format!("agent was killed by {name}");
                Self {
                    signal: Some(name.clone()),
                    ..Self::error(Agent, Some(Cause::AgentCrash), message, at_ms)
                }
            }
            status @ ExitStatus::Unknown => {
                let message = format!("agent ended with {status}");
                Self::error(Daemon, Some(Cause::AgentCrash), message, at_ms)
            }
        }
    }

    fn out_of_memory(status: &ExitStatus, why: &str, at_ms: i64) -> Self {
        let (exit_code, signal, how) = match status {
            ExitStatus::Code(code) => (Some(*code), None, format!("exited with {status}")),
            ExitStatus::Signal(name) => (None, Some(name.clone()), format!("was killed by {name}")),
            ExitStatus::Unknown => (None, None, format!("ended with {status}")),
        };
        let message = format!("agent {how}, out of memory: {why}");
        let cause = Some(Cause::OutOfMemory);
        Self { exit_code, signal, ..Self::error(TerminatedBy::Agent, cause, message, at_ms) }
    }

    /// An agent that never got as far as a session.
    pub(crate) fn of_start(error: &AgentStartError, at_ms: i64) -> Self {
        use TerminatedBy::Agent;
        match error {
            AgentStartError::Spawn(source) => {
                Self::error(Agent, Some(Cause::SpawnFailed), chain(source), at_ms)
            }
            AgentStartError::InitializeTimeout { end, .. } => {
                Self::error(Agent, Some(Cause::InitializeTimeout), error.to_string(), at_ms)
                    .with_process(&end.report)
            }
            AgentStartError::Broke { end, .. }
            | AgentStartError::Refused { end, .. }
            | AgentStartError::BadAnswer { end, .. } => {
                Self::error(Agent, Some(Cause::ProtocolError), error.to_string(), at_ms)
                    .with_process(&end.report)
            }
            AgentStartError::Exited { end } => {
                // Before `initialize` no exit is in good order, whatever its code.
                let alone = Self::of_agent_alone(end, true, at_ms);
                Self { message: Some(error.to_string()), ..alone }.with_process(&end.report)
            }
        }
    }

    /// acpd itself could not go on with the session.
    pub(crate) fn of_failure(message: String, facts: &SessionFacts, at_ms: i64) -> Self {
        Self::error(TerminatedBy::Daemon, None, message, at_ms).with_facts(facts)
    }

    /// The daemon died while the session was live (contract 1.2).
    pub(crate) fn daemon_lost(facts: &SessionFacts, at_ms: i64) -> Self {
        let message = "daemon stopped while the session was live".to_owned();
        Self::error(TerminatedBy::Daemon, Some(Cause::DaemonLost), message, at_ms).with_facts(facts)
    }

    pub(crate) fn with_process(mut self, report: &ExitReport) -> Self {
        self.leaked = report.leaked > 0;
        self.escalation = report.rungs.iter().map(|rung| rung.as_str().to_owned()).collect();
        if self.reason == Reason::Error {
            self.stderr = stderr_info(&report.stderr);
        }
        self
    }

    fn with_facts(mut self, facts: &SessionFacts) -> Self {
        self.turn_active = facts.turn_active;
        self.last_stop_reason.clone_from(&facts.last_stop_reason);
        self.started_at = facts.started_ms.map(iso8601);
        self.last_event_seq = facts.last_event_seq;
        self
    }

    /// `params` of `_sandboxagent/session/ended`: snake_case and the basic shape only.
    pub fn ended_params(&self, session: &str) -> serde_json::Value {
        let mut data = json!({"reason": self.reason, "terminated_by": self.terminated_by});
        let fields = data.as_object_mut().expect("it was made as an object");
        let mut put = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("message", self.message.as_ref().map(|m| json!(m)));
        put("exit_code", self.exit_code.map(|code| json!(code)));
        put("signal", self.signal.as_ref().map(|signal| json!(signal)));
        put("stderr", self.stderr.as_ref().map(stderr_params));
        json!({"session_id": session, "data": data})
    }
}

fn stderr_params(stderr: &StderrInfo) -> serde_json::Value {
    let mut params = json!({});
    let fields = params.as_object_mut().expect("it was made as an object");
    for (name, text) in [("head", &stderr.head), ("tail", &stderr.tail)] {
        if let Some(text) = text {
            fields.insert(name.to_owned(), json!(text));
        }
    }
    fields.insert("truncated".to_owned(), json!(stderr.truncated));
    fields.insert("total_lines".to_owned(), json!(stderr.total_lines));
    params
}

fn stderr_info(excerpt: &StderrExcerpt) -> Option<StderrInfo> {
    (!excerpt.is_empty()).then(|| StderrInfo {
        head: Some(excerpt.head.clone()),
        tail: excerpt.tail.clone(),
        truncated: excerpt.truncated,
        total_lines: excerpt.total_lines,
    })
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

#[cfg(test)]
mod tests;
