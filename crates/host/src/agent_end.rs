//! How an agent process ends, or does not become an agent.
//!
//! What is recorded of it is in `termination.rs`.

use acpd_supervisor::{ExitReport, ExitStatus, StartError};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Why the connection failed though the process did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentFault {
    /// This was wrong with it.
    Broken(String),
    /// Its keeper has another controller.
    TakenAway,
}

impl AgentFault {
    /// What was wrong, in words.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Broken(message) => message,
            Self::TakenAway => "another process has taken the agent over from acpd",
        }
    }
}

/// The end of an agent process, as its task saw it.
#[derive(Clone, Debug)]
pub struct AgentEnd {
    /// How the process ended.
    pub report: Arc<ExitReport>,
    /// What was wrong with the connection before, if anything.
    pub(crate) fault: Option<AgentFault>,
}

impl AgentEnd {
    /// Whether its keeper stopped it, if no daemon asked for that: the time of the next one was over. A keeper that was lost
    /// itself does not know how it ended.
    pub(crate) fn was_given_up(&self) -> bool {
        let is_known = self.report.status != ExitStatus::Unknown;
        self.fault.is_none() && is_known && !self.report.rungs.is_empty()
    }
}

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentStartError {
    /// Its program does not run.
    #[error(transparent)]
    Spawn(#[from] StartError),
    /// It did not answer `initialize` as it must, and has ended.
    #[error("{failure}")]
    Uninitialized {
        /// What went wrong.
        failure: InitializeFailure,
        /// How it ended, or was ended.
        end: Arc<AgentEnd>,
    },
}

/// What went wrong with `initialize`.
#[derive(Debug, thiserror::Error)]
pub enum InitializeFailure {
    /// The agent ended before it answered.
    #[error("agent ended before it answered initialize: {0}")]
    Exited(ExitStatus),
    /// It broke the connection before it answered.
    #[error("agent failed before it answered initialize: {0}")]
    Broke(String),
    /// It did not answer in this time.
    #[error("agent did not answer initialize within {} s{}", after.as_secs_f64(), instead(dropped.as_deref()))]
    Timeout {
        /// The bound.
        after: Duration,
        /// The first line that it wrote instead, if any.
        dropped: Option<String>,
    },
    /// It answered with this error object.
    #[error("agent answered initialize with an error: {}", String::from_utf8_lossy(.0))]
    Refused(Bytes),
    /// Its answer cannot be used, for example another protocol version.
    #[error("agent's answer to initialize is not usable: {0}")]
    BadAnswer(String),
}

/// What an agent wrote instead of an answer, as the end of a sentence; control characters are escaped.
pub(crate) fn instead(dropped: Option<&str>) -> String {
    dropped.map(|line| format!("; it wrote a line that is not a message: {line:?}")).unwrap_or_default()
}
