//! The record of an end (contract 1.2), in its two forms: with camelCase members wherever acpd shows it, and with snake_case
//! ones, cut to the basic shape, in `_sandboxagent/session/ended`.

use crate::ids::SessionId;
use crate::reach::Containment;
use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// In good order: the agent left while idle, the session was closed, the daemon shut down.
    #[default]
    Completed,
    /// Something went wrong.
    Error,
    /// A client ended it for good.
    Terminated,
}

impl Reason {
    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What caused the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TerminatedBy {
    /// The agent, by itself.
    #[default]
    Agent,
    /// acpd, by itself or because it was asked to.
    Daemon,
}

/// The exact cause.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    /// The next daemon does not speak with what kept the agent for it, and ended it.
    DaemonUpgrade,
    /// The fleet had not heard of this node in time, so that another node may take the session up.
    Fenced,
    /// Another daemon, or another program of the same user, has taken the agent over; or another node of the fleet the session.
    Superseded,
    /// It ran out of memory: the kernel killed it for that, or its own runtime gave up.
    OutOfMemory,
}

impl Cause {
    /// The names of all of them.
    pub const NAMES: &[&str] = <Self as strum::VariantNames>::VARIANTS;

    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns `true` for an end that nobody asked for: a later terminate makes it final.
    pub fn can_be_made_final(self) -> bool {
        matches!(self, Self::DaemonLost | Self::DaemonUpgrade | Self::Fenced)
    }
}

/// Head and tail of stderr.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StderrInfo {
    /// All of it when not truncated, else the first 50 lines.
    pub head: Option<String>,
    /// The last 50 lines, only when truncated.
    pub tail: Option<String>,
    /// More than 100 lines were written.
    pub truncated: bool,
    /// Lines in all.
    pub total_lines: u64,
}

/// The record of one end.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TerminationInfo {
    /// Why the run ended.
    pub reason: Reason,
    /// What ended it.
    pub terminated_by: TerminatedBy,
    /// In words; with reason `error`.
    pub message: Option<String>,
    /// With reason `error`, when the process exited by itself.
    pub exit_code: Option<i32>,
    /// With reason `error`, when a signal killed it.
    pub signal: Option<String>,
    /// With reason `error`, when stderr was not empty.
    pub stderr: Option<StderrInfo>,
    /// When, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub ended_at: String,
    /// The exact cause; absent when acpd itself failed in a way that has no name.
    pub cause: Option<Cause>,
    /// The client that asked, by its name, or `daemon`.
    pub initiator: Option<String>,
    /// A turn was running.
    pub turn_active: bool,
    /// The stop reason of the last turn that ended.
    pub last_stop_reason: Option<String>,
    /// A descendant outlived the agent and was killed.
    pub leaked: bool,
    /// The rungs of the stop ladder that were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalation: Vec<String>,
    /// What acpd saw of the processes that the agent started: how much `leaked` can say. Absent when there was no process of
    /// its own, and in records of earlier versions.
    pub containment: Option<Containment>,
    /// When the run began, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub started_at: Option<String>,
    /// The last event before the end.
    pub last_event_seq: Option<u64>,
}

/// `params` of `_sandboxagent/session/ended`.
#[derive(Debug, Serialize)]
pub struct EndedParams<'a> {
    session_id: &'a SessionId,
    data: EndedData<'a>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct EndedData<'a> {
    reason: Reason,
    terminated_by: TerminatedBy,
    message: Option<&'a str>,
    exit_code: Option<i32>,
    signal: Option<&'a str>,
    stderr: Option<EndedStderr<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct EndedStderr<'a> {
    head: Option<&'a str>,
    tail: Option<&'a str>,
    truncated: bool,
    total_lines: u64,
}

impl TerminationInfo {
    /// The event that records this end; 0 if that is not known.
    pub fn seq(&self) -> u64 {
        self.last_event_seq.map_or(0, |last| last + 1)
    }

    /// The record for the index, which is read for lists: how much was written to stderr, and not what.
    #[must_use]
    pub fn without_stderr_text(&self) -> Self {
        let stderr = self.stderr.as_ref().map(|stderr| StderrInfo { head: None, tail: None, ..*stderr });
        Self { stderr, ..self.clone() }
    }

    /// Whether it has all that was kept of stderr.
    pub fn has_stderr_text(&self) -> bool {
        self.stderr.as_ref().is_none_or(|stderr| stderr.head.is_some())
    }

    /// `params` of `_sandboxagent/session/ended`: snake_case and the basic shape only.
    pub fn ended_params<'a>(&'a self, session_id: &'a SessionId) -> EndedParams<'a> {
        let stderr = self.stderr.as_ref().map(|stderr| EndedStderr {
            head: stderr.head.as_deref(),
            tail: stderr.tail.as_deref(),
            truncated: stderr.truncated,
            total_lines: stderr.total_lines,
        });
        let data = EndedData {
            reason: self.reason,
            terminated_by: self.terminated_by,
            message: self.message.as_deref(),
            exit_code: self.exit_code,
            signal: self.signal.as_deref(),
            stderr,
        };
        EndedParams { session_id, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &str = r#"{"reason":"error","terminatedBy":"agent","message":"m","exitCode":1,"stderr":{"head":"h","truncated":false,"totalLines":1},"endedAt":"x","cause":"agent_crash","turnActive":true,"leaked":false,"lastEventSeq":7}"#;

    // contract 1.2: both forms come from one record, and what is absent is left out
    #[test]
    fn both_forms_say_the_same() {
        let info: TerminationInfo = serde_json::from_str(STORED).expect("a record");
        assert_eq!(serde_json::to_string(&info).expect("JSON"), STORED);
        assert_eq!(info.seq(), 8);
        let id = SessionId::parse("s").expect("an id");
        let params = serde_json::to_string(&info.ended_params(&id)).expect("JSON");
        assert_eq!(
            params,
            r#"{"session_id":"s","data":{"reason":"error","terminated_by":"agent","message":"m","exit_code":1,"stderr":{"head":"h","truncated":false,"total_lines":1}}}"#
        );
    }

    #[test]
    fn every_cause_has_the_name_that_is_stored() {
        assert_eq!(Cause::NAMES.len(), 14);
        for name in Cause::NAMES {
            let cause: Cause = serde_json::from_str(&format!("\"{name}\"")).expect("it is stored so");
            assert_eq!(cause.as_str(), *name);
        }
    }
}
