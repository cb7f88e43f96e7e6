//! Asking a terminal: its output, its end, to be killed.
//!
//! A handle sends and watches; the terminal's task does everything. Requests to stop are facts that stay true, so
//! they need no queue; questions have a short one.

use crate::life::TerminalState;
use crate::report::{TerminalReport, TerminalSnapshot};
use crate::spec::TerminalId;
use acpd_supervisor::{ExitStatus, WindowSize};
use std::io;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The task answers each at once, so that a caller waits for room no longer than for an answer.
pub(crate) const QUESTIONS: usize = 16;

/// There is no such terminal: never was, is released, or has another owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("terminal not found")]
pub struct TerminalNotFound {
    /// What was asked for.
    pub terminal: TerminalId,
}

/// Why a window did not change its size.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// No such terminal.
    #[error(transparent)]
    NotFound(#[from] TerminalNotFound),
    /// It was not created with a pseudo-terminal.
    #[error("terminal has no window: it is not a pseudo-terminal")]
    NoWindow,
    /// The operating system refused.
    #[error("cannot resize the window")]
    Refused(#[source] io::Error),
}

/// What a task is asked, with a place for the answer.
#[derive(Debug)]
pub(crate) enum Question {
    Output { limit: Option<u64>, answer: oneshot::Sender<TerminalSnapshot> },
    Resize { size: WindowSize, answer: oneshot::Sender<io::Result<()>> },
}

/// One terminal. When the last handle is dropped, and the terminal is not in the table of
/// [`Terminals`](crate::Terminals) any more, its command is killed.
#[derive(Clone, Debug)]
pub struct TerminalHandle {
    pub(crate) id: TerminalId,
    pub(crate) questions: mpsc::Sender<Question>,
    pub(crate) kill: CancellationToken,
    pub(crate) release: CancellationToken,
    pub(crate) report: watch::Receiver<Option<TerminalReport>>,
}

impl TerminalHandle {
    /// Its name.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// How it ended, if it has.
    pub fn report(&self) -> Option<TerminalReport> {
        self.report.borrow().clone()
    }

    /// Output so far: the last `limit` bytes, or the terminal's own limit. It never waits for the command.
    ///
    /// # Errors
    /// The terminal was released.
    pub async fn output(&self, limit: Option<u64>) -> Result<TerminalSnapshot, TerminalNotFound> {
        self.ask(|answer| Question::Output { limit, answer }).await
    }

    /// Changes the size of the window of a pseudo-terminal.
    ///
    /// # Errors
    /// See [`ResizeError`].
    pub async fn resize(&self, size: WindowSize) -> Result<(), ResizeError> {
        match self.ask(|answer| Question::Resize { size, answer }).await? {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(ResizeError::NoWindow),
            Err(error) => Err(ResizeError::Refused(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Waits until the command is gone, its output read, and the last event taken by the reader of its feed, if it has one
    /// that does so within a second; answers at once when that has passed. Each caller that waits is answered, also when the
    /// terminal is killed or released meanwhile.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped, and nothing happens to the command.
    pub async fn wait_for_exit(&self) -> TerminalReport {
        let mut report = self.report.clone();
        match report.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(report)) => report.clone(),
            // The task panicked; its scope has logged that, and the keeper ends the command.
            Ok(None) | Err(_) => TerminalReport { state: TerminalState::Killed, status: ExitStatus::Unknown },
        }
    }

    /// Kills the command, SIGTERM first and SIGKILL after the grace, and waits until it is gone. On a command that
    /// has ended, or is being killed already, it changes nothing. The terminal stays.
    ///
    /// # Cancel safety
    /// Once polled, the command is killed whether the caller waits or not.
    pub async fn kill(&self) -> TerminalReport {
        self.kill.cancel();
        self.wait_for_exit().await
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Question,
    ) -> Result<T, TerminalNotFound> {
        let (answer, answered) = oneshot::channel();
        let not_found = || TerminalNotFound { terminal: self.id.clone() };
        // From the request on, whether the task has seen it or not.
        if self.release.is_cancelled() {
            return Err(not_found());
        }
        self.questions.send(question(answer)).await.map_err(|_| not_found())?;
        answered.await.map_err(|_| not_found())
    }
}
