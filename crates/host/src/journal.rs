//! The log lines of a host about its sessions, one function for each (docs/monitoring.md has the table).
//!
//! The ids by which a line is found again are those of the span that it is written in ([`spans`](crate::spans)); what is
//! said here of sessions without a span, or of another session than that of the span, has no span. Invariants: nothing of what is said in a session is told, and
//! no line is written per message of an agent. Not here: trouble that has no session, which is told where it is handled.

use crate::agent::AgentHandle;
use crate::chain::chain;
use crate::check::Doubts;
use crate::metrics;
use crate::session::{Note, TurnEnd};
use crate::setup::Creator;
use acpd_eventlog::WriteError;
use acpd_record::{Cause, Projection, Reason, SessionId, TerminationInfo, TurnNumber};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// A session was recorded for the first time.
pub(crate) fn session_created(agent: &str, cwd: &str, creator: &Creator) {
    let (client, token) = (&*creator.client, creator.token.as_deref());
    tracing::info!(agent, cwd, client, token, "session created");
}

/// A session could not be recorded, so there is none.
pub(crate) fn session_not_recorded(agent: &str, cwd: &str, creator: &Creator, error: &WriteError) {
    let (client, token) = (&*creator.client, creator.token.as_deref());
    tracing::warn!(agent, cwd, client, token, error = chain(error), "session not created");
}

/// A session came from an export.
pub(crate) fn imported(session: &SessionId, events: u64, creator: &Creator) {
    let (client, token) = (&*creator.client, creator.token.as_deref());
    tracing::info!(parent: None, %session, events, client, token, "session imported");
}

/// An agent asked for a file outside its session's directories, for the first time in a run.
pub(crate) fn file_refused(path: &str, remedy: &str) {
    tracing::warn!(path, remedy, "a file outside the session's directories was refused");
}

/// Another node has taken a session up; what is stored here is session `copy` from now on.
pub(crate) fn set_aside(session: &SessionId, copy: &SessionId, by: &str) {
    tracing::warn!(parent: None, %session, %copy, by, "another node has taken a session up; this copy is kept");
}

/// The history of a session of another node is here now.
pub(crate) fn taken_up(session: &SessionId, agent: &str, events: u64) {
    tracing::info!(parent: None, %session, agent, events, "session of another node taken up");
}

/// A session and its history were removed.
pub(crate) fn session_deleted(session: &SessionId, client: &str) {
    tracing::info!(parent: None, %session, client, "session deleted");
}

/// A client has ended a session for good whose run was lost before.
pub(crate) fn made_final(session: &SessionId, client: &str) {
    tracing::info!(parent: None, %session, client, "lost session terminated");
}

/// So many ended sessions were removed, whose blocks took so many bytes.
pub(crate) fn pruned(sessions: usize, bytes: u64, client: &str) {
    tracing::info!(parent: None, sessions, bytes, client, "old sessions removed");
}

/// A session was live in a process of acpd's that is gone.
pub(crate) fn lost(session: &str, agent: &str) {
    let cause = Cause::DaemonLost.as_str();
    tracing::warn!(parent: None, session, agent, cause, "run ended with the acpd that hosted it");
}

/// The agent of a session was ended, because its keeper is of a version that is not spoken here.
pub(crate) fn upgraded(session: &str, agent: &str) {
    let cause = Cause::DaemonUpgrade.as_str();
    tracing::warn!(parent: None, session, agent, cause, "run ended by an acpd of another version");
}

/// A history was read: so many events of it, the rest was known from a checkpoint.
pub(crate) fn history_read(session: &SessionId, projection: &Projection, read: u64) {
    tracing::debug!(parent: None, %session, read, last = projection.last_seq(), "history read");
    let skipped = projection.skipped();
    if skipped > 0 {
        tracing::warn!(
            parent: None,
            %session,
            skipped,
            "events of a history cannot be read or do not follow, and are passed over"
        );
    }
}

/// A process does not become an agent.
pub(crate) fn agent_not_started(
    agent: &str,
    cwd: &Path,
    cause: Option<Cause>,
    error: &dyn std::error::Error,
) {
    let cause = cause.map(Cause::as_str);
    tracing::warn!(agent, cwd = %cwd.display(), cause, error = chain(error), "agent not started");
}

/// An agent goes on with a session: by `method`, with a transcript in a new session of its own.
pub(crate) fn activated(agent: &AgentHandle, method: &str, transcript: bool, client: &str) {
    let (pid, agent) = (agent.pid(), agent.name());
    tracing::info!(pid, agent, method, transcript, client, "session activated");
}

/// An agent does not go on with a session, and has made a new one in its place.
pub(crate) fn begun_anew(agent: &AgentHandle, reason: &str) {
    let (pid, agent) = (agent.pid(), agent.name());
    tracing::info!(pid, agent, reason, "the agent does not go on; a new session of it is given a transcript");
}

/// A session goes on with the agent that it had, whose host is gone.
pub(crate) fn taken_over(session: &SessionId, agent: &AgentHandle, detached: Duration) {
    let (pid, agent, detached_ms) = (agent.pid(), agent.name(), detached.as_millis());
    tracing::info!(%session, pid, agent, detached_ms, "session taken over");
}

/// No agent goes on with a session.
pub(crate) fn not_activated(agent: &AgentHandle, error: &dyn std::error::Error, client: &str) {
    let (pid, agent) = (agent.pid(), agent.name());
    tracing::warn!(pid, agent, client, error = chain(error), "session not activated");
}

/// One run of a session. All is written in its span, which has the session and the number of the run.
#[derive(Debug)]
pub(crate) struct RunJournal {
    pid: u32,
    agent: String,
    began: Instant,
    turn_began: Instant,
    doubts: Doubts,
}

impl RunJournal {
    /// A run begins.
    pub(crate) fn started(agent: &AgentHandle, doubts: Doubts) -> Self {
        let now = Instant::now();
        let journal =
            Self { pid: agent.pid(), agent: agent.name().to_owned(), began: now, turn_began: now, doubts };
        metrics::run_started(&journal.agent);
        let Self { pid, agent, .. } = &journal;
        tracing::info!(pid, agent, "run started");
        journal
    }

    /// The run goes on with a turn that began at `began_ms`, in milliseconds since 1970, under the host before.
    pub(crate) fn turn_goes_on(&mut self, began_ms: i64, now_ms: i64) {
        let went_on =
            Duration::from_millis(u64::try_from(now_ms.saturating_sub(began_ms)).unwrap_or_default());
        // The clock of this machine may have been set meanwhile.
        self.turn_began = self.began.checked_sub(went_on).unwrap_or(self.began);
    }

    /// What the session's core has to say.
    pub(crate) fn note(&mut self, note: Note) {
        match note {
            Note::TurnStarted { turn, client } => {
                self.turn_began = Instant::now();
                metrics::turn_started();
                let (client, connection) = (&*client.name, &client.connection);
                tracing::debug!(turn = turn.0, client, %connection, "turn started");
            }
            Note::TurnEnded { turn, end } => self.turn_ended(turn, &end),
            Note::Used(usage) => metrics::used(&self.agent, &usage),
            Note::Stalled { turn, silent } => {
                metrics::turn_stalled();
                tracing::warn!(turn = turn.0, silent_ms = milliseconds(silent), "turn stalled");
            }
            Note::GoesOn { turn, silent } => {
                tracing::info!(turn = turn.0, silent_ms = milliseconds(silent), "turn goes on");
            }
            Note::Asked { turn, question, topic } => {
                tracing::info!(
                    turn = turn.0,
                    question = question.0,
                    topic = topic.as_str(),
                    "question waiting"
                );
            }
            Note::Answered { question, topic, client } => {
                let (topic, client, connection) = (topic.as_str(), &*client.name, &client.connection);
                tracing::info!(question = question.0, topic, client, %connection, "question answered");
            }
            Note::Unanswered { question, topic, cause } => {
                let topic = topic.as_str();
                tracing::info!(question = question.0, topic, cause, "question closed without an answer");
            }
        }
    }

    fn turn_ended(&self, turn: TurnNumber, end: &TurnEnd) {
        let took = self.turn_began.elapsed();
        let (turn, duration_ms) = (turn.0, milliseconds(took));
        let stop_reason = match end {
            TurnEnd::Stopped(reason) => reason.as_deref(),
            TurnEnd::GivenUp => Some("cancelled"),
            TurnEnd::Failed(_) | TurnEnd::Refused => None,
        };
        metrics::turn_ended(stop_reason, took);
        match end {
            TurnEnd::Stopped(_) => {
                let stop_reason = stop_reason.unwrap_or("none");
                tracing::info!(turn, stop_reason, duration_ms, "turn ended");
            }
            TurnEnd::GivenUp => {
                tracing::warn!(turn, stop_reason, duration_ms, "turn ended; the agent ignored its cancel");
            }
            TurnEnd::Failed(code) => {
                tracing::info!(turn, code, duration_ms, "turn ended with an error of the agent");
            }
            TurnEnd::Refused => {
                tracing::warn!(turn, duration_ms, "turn refused: the agent does not read");
            }
        }
    }

    /// The session cannot be recorded any more.
    pub(crate) fn not_recorded(&self, error: &WriteError) {
        tracing::error!(error = chain(error), "the session cannot be recorded, ending it");
        self.doubts.raise();
    }

    /// The run is over; `leftovers` are the processes that the agent left behind, which were killed.
    pub(crate) fn ended(&self, end: &TerminationInfo, leftovers: u32) {
        metrics::run_ended(end.cause);
        let Self { pid, agent, .. } = self;
        let cause = end.cause.map_or("acpd_failed", Cause::as_str);
        let (by, code, signal) = (end.initiator.as_deref(), end.exit_code, end.signal.as_deref());
        let (turn_active, duration_ms) = (end.turn_active, milliseconds(self.began.elapsed()));
        match (end.reason, end.message.as_deref()) {
            (Reason::Error, message) => tracing::warn!(
                pid,
                agent,
                cause,
                error = message,
                code,
                signal,
                turn_active,
                leftovers,
                duration_ms,
                "run ended"
            ),
            (_, _) => tracing::info!(pid, agent, cause, by, turn_active, leftovers, duration_ms, "run ended"),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
