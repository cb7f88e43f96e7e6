//! Which end is which: the rules that tell one end of a run from another (contract 1.2).
//!
//! Pure: facts come in, the record goes out. The session task writes it, once.

mod memory;

use crate::agent_end::{AgentEnd, AgentFault, AgentStartError, InitializeFailure};
use crate::chain::chain;
use crate::clock::iso8601;
use crate::reach;
use acpd_record::{Cause, EndInProgress, Reason, StderrInfo, TerminatedBy, TerminationInfo};
use acpd_supervisor::{ExitReport, ExitStatus, StderrExcerpt};

/// Why a session was ended that another node may take up.
const FENCED: &str =
    "the fleet had not heard of this node in time, so that another node may take the session up";

/// A request to end a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedEnd {
    pub(crate) cause: Cause,
    pub(crate) initiator: String,
}

impl From<EndInProgress> for RequestedEnd {
    fn from(asked: EndInProgress) -> Self {
        Self { cause: asked.cause, initiator: asked.by }
    }
}

impl RequestedEnd {
    /// The part that the next host goes on with, if a client asked for the end: other causes are of this host alone.
    pub(crate) fn in_progress(&self) -> Option<EndInProgress> {
        let is_of_client = matches!(self.cause, Cause::ClientClose | Cause::ClientTerminate);
        is_of_client.then(|| EndInProgress { cause: self.cause, by: self.initiator.clone() })
    }
}

/// What the session itself knows at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionFacts {
    pub(crate) turn_active: bool,
    pub(crate) last_stop_reason: Option<String>,
    pub(crate) started_ms: Option<i64>,
    pub(crate) last_event_seq: Option<u64>,
}

fn bare(reason: Reason, by: TerminatedBy, cause: Option<Cause>, at_ms: i64) -> TerminationInfo {
    let ended_at = iso8601(at_ms);
    TerminationInfo { reason, terminated_by: by, cause, ended_at, ..TerminationInfo::default() }
}

fn failed(by: TerminatedBy, cause: Option<Cause>, message: String, at_ms: i64) -> TerminationInfo {
    TerminationInfo { message: Some(message), ..bare(Reason::Error, by, cause, at_ms) }
}

/// The end of a run whose agent process is gone. The first request is the cause, whatever the process did
/// while it was being stopped.
pub(crate) fn of_agent(
    end: &AgentEnd,
    requested: Option<&RequestedEnd>,
    facts: &SessionFacts,
    at_ms: i64,
) -> TerminationInfo {
    let info = match requested {
        Some(requested) => of_request(requested, at_ms),
        None => of_agent_alone(end, facts.turn_active, at_ms),
    };
    info.with_process(&end.report).with_facts(facts)
}

/// The end of a session whose shared process goes on.
pub(crate) fn of_release(requested: &RequestedEnd, facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    of_request(requested, at_ms).with_facts(facts)
}

fn of_request(requested: &RequestedEnd, at_ms: i64) -> TerminationInfo {
    let by = &requested.initiator;
    let (reason, message) = match requested.cause {
        Cause::ClientTerminate => (Reason::Terminated, None),
        Cause::Fenced => (Reason::Error, Some(FENCED.to_owned())),
        Cause::Superseded => (Reason::Error, Some(format!("node {by} has taken the session up"))),
        _ => (Reason::Completed, None),
    };
    let bare = bare(reason, TerminatedBy::Daemon, Some(requested.cause), at_ms);
    TerminationInfo { message, initiator: Some(by.clone()), ..bare }
}

fn of_agent_alone(end: &AgentEnd, turn_active: bool, at_ms: i64) -> TerminationInfo {
    use TerminatedBy::{Agent, Daemon};
    if let Some(fault) = &end.fault {
        let (by, cause) = match fault {
            AgentFault::Broken(_) => (Agent, Cause::ProtocolError),
            AgentFault::TakenAway => (Daemon, Cause::Superseded),
        };
        return failed(by, Some(cause), fault.message().to_owned(), at_ms);
    }
    let status = &end.report.status;
    let (exit_code, signal, how) = match status {
        ExitStatus::Code(code) => (Some(*code), None, format!("exited with {status}")),
        ExitStatus::Signal(name) => (None, Some(name.clone()), format!("was killed by {name}")),
        ExitStatus::Unknown => (None, None, format!("ended with {status}")),
    };
    let (by, cause, more) = match (memory::ran_out(&end.report), status) {
        (Some(why), _) => (Agent, Cause::OutOfMemory, format!(", out of memory: {why}")),
        (None, ExitStatus::Code(0)) if !turn_active => {
            return bare(Reason::Completed, Agent, Some(Cause::AgentExit), at_ms);
        }
        (None, ExitStatus::Code(0)) => (Agent, Cause::AgentExit, " during a turn".to_owned()),
        (None, ExitStatus::Unknown) => (Daemon, Cause::AgentCrash, String::new()),
        (None, _) => (Agent, Cause::AgentCrash, String::new()),
    };
    TerminationInfo { exit_code, signal, ..failed(by, Some(cause), format!("agent {how}{more}"), at_ms) }
}

/// An agent that never got as far as a session.
pub(crate) fn of_start(error: &AgentStartError, at_ms: i64) -> TerminationInfo {
    let failed = |cause, message| failed(TerminatedBy::Agent, Some(cause), message, at_ms);
    let (failure, end) = match error {
        AgentStartError::Spawn(source) => return failed(Cause::SpawnFailed, chain(source)),
        AgentStartError::Uninitialized { failure, end } => (failure, end),
    };
    let message = failure.to_string();
    let info = match failure {
        // Before `initialize` no exit is in good order, whatever its code.
        InitializeFailure::Exited(_) => {
            TerminationInfo { message: Some(message), ..of_agent_alone(end, true, at_ms) }
        }
        InitializeFailure::Timeout { .. } => failed(Cause::InitializeTimeout, message),
        _ => failed(Cause::ProtocolError, message),
    };
    info.with_process(&end.report)
}

/// acpd itself could not go on with the session.
pub(crate) fn of_failure(message: String, facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    failed(TerminatedBy::Daemon, None, message, at_ms).with_facts(facts)
}

/// The daemon died while the session was live (contract 1.2).
pub(crate) fn daemon_lost(facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    let message = "daemon stopped while the session was live".to_owned();
    failed(TerminatedBy::Daemon, Some(Cause::DaemonLost), message, at_ms).with_facts(facts)
}

/// The daemon died while the session was live, which a client had asked to end.
pub(crate) fn interrupted_end(requested: &RequestedEnd, facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    of_request(requested, at_ms).with_facts(facts)
}

/// The end of a run that was lost, made final by a terminate: what is known of the run stays.
pub(crate) fn final_end(lost: &TerminationInfo, by: &str, last_seq: u64, at_ms: i64) -> TerminationInfo {
    let requested = RequestedEnd { cause: Cause::ClientTerminate, initiator: by.to_owned() };
    TerminationInfo {
        turn_active: lost.turn_active,
        last_stop_reason: lost.last_stop_reason.clone(),
        started_at: lost.started_at.clone(),
        last_event_seq: Some(last_seq),
        ..of_request(&requested, at_ms)
    }
}

/// The daemon is gone, and this one has ended the agent: its keeper is of a version that is not spoken here (contract 7.2).
pub(crate) fn daemon_upgrade(facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    let requested = RequestedEnd { cause: Cause::DaemonUpgrade, initiator: "daemon".to_owned() };
    of_request(&requested, at_ms).with_facts(facts)
}

/// The daemon died, and no other came before the agent's time was over (contract 7.2).
fn not_taken_over(facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    let message = "no daemon came back in time, so the agent was stopped".to_owned();
    failed(TerminatedBy::Daemon, Some(Cause::DaemonLost), message, at_ms).with_facts(facts)
}

/// The agent ended while no daemon was there: by itself, or because no other came before its time was over (contract 7.2).
pub(crate) fn in_the_gap(end: &AgentEnd, facts: &SessionFacts, at_ms: i64) -> TerminationInfo {
    match end.was_given_up() {
        true => not_taken_over(facts, at_ms).with_process(&end.report),
        false => of_agent(end, None, facts, at_ms),
    }
}

/// The session was live when it was exported, and what became of it is not known here.
pub(crate) fn of_import(at_ms: i64) -> TerminationInfo {
    let message = "the session was live when it was exported".to_owned();
    failed(TerminatedBy::Daemon, Some(Cause::DaemonLost), message, at_ms)
}

/// The session was live on a node of the fleet that was given up.
pub(crate) fn of_lost_node(at_ms: i64) -> TerminationInfo {
    let message = "its node was lost while the session was live".to_owned();
    failed(TerminatedBy::Daemon, Some(Cause::DaemonLost), message, at_ms)
}

/// Completes a record.
pub(crate) trait Complete {
    /// With what is known of the process.
    fn with_process(self, report: &ExitReport) -> Self;
    /// With what the session knows.
    fn with_facts(self, facts: &SessionFacts) -> Self;
}

impl Complete for TerminationInfo {
    fn with_process(mut self, report: &ExitReport) -> Self {
        self.leaked = report.leaked > 0;
        self.containment = Some(reach::containment(report.containment));
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
}

fn stderr_info(excerpt: &StderrExcerpt) -> Option<StderrInfo> {
    (!excerpt.is_empty()).then(|| StderrInfo {
        head: Some(excerpt.head.clone()),
        tail: excerpt.tail.clone(),
        truncated: excerpt.truncated,
        total_lines: excerpt.total_lines,
    })
}

#[cfg(test)]
mod tests;
