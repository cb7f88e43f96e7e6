//! The tasks of a connection, and which request each is for: one that panics still has its request answered.
//!
//! Owned by the shell of the connection. Nothing is decided here.

use super::input::Outcome;
use crate::viewer::Attachment;
use acpd_host::AgentHandle;
use acpd_wire::OwnedId;
use std::collections::HashMap;
use tokio::task::{AbortHandle, Id, JoinSet};
use tracing::Instrument;

/// What a task has done for a request, or (without one) for something that was none.
pub(super) struct Done {
    pub(super) request: Option<OwnedId>,
    pub(super) outcome: Outcome,
    /// A process that it started, or did not need.
    pub(super) process: Option<Process>,
    /// Where the client joins a session, if it does.
    pub(super) attachment: Option<Box<Attachment>>,
}

/// An agent process that a task leaves to the connection.
pub(super) enum Process {
    /// It is the one that the client knows from now on.
    Started(AgentHandle),
    /// It has no session yet.
    Unused(AgentHandle),
}

impl Done {
    pub(super) fn new(request: Option<OwnedId>, outcome: Outcome) -> Self {
        Self { request, outcome, process: None, attachment: None }
    }
}

/// Everything that is done for the client at one time.
#[derive(Default)]
pub(super) struct Tasks {
    running: JoinSet<Done>,
    requests: HashMap<Id, (OwnedId, AbortHandle)>,
}

impl Tasks {
    /// Begins what is done for this request, or for none, in the span of the connection.
    pub(super) fn spawn(
        &mut self,
        request: Option<&OwnedId>,
        work: impl Future<Output = Done> + Send + 'static,
    ) {
        let task = self.running.spawn(work.in_current_span());
        if let Some(request) = request {
            self.requests.insert(task.id(), (request.clone(), task));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(super) fn abort_requests(&self) {
        for (_, task) in self.requests.values() {
            task.abort();
        }
    }

    /// Leaves what runs to itself.
    pub(super) fn leave(&mut self) {
        self.running.detach_all();
    }

    /// What the next one has done. None when there is none, when it was aborted, or when it was lost and for no request.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Box<Done>> {
        match self.running.join_next_with_id().await? {
            Ok((task, done)) => {
                self.requests.remove(&task);
                Some(Box::new(done))
            }
            Err(error) => {
                let request = self.requests.remove(&error.id());
                if !error.is_panic() {
                    return None;
                }
                tracing::error!(%error, "the task of a request ended badly");
                request.map(|(request, _)| Box::new(Done::new(Some(request), Outcome::Lost)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> OwnedId {
        let raw: &serde_json::value::RawValue = serde_json::from_str(text).expect("JSON");
        acpd_wire::RawId::new(raw).expect("an id").to_owned()
    }

    // contract 1, FR-3: every request gets exactly one answer, also when what was done for it panics
    #[tokio::test]
    async fn a_panic_is_known_by_its_request() {
        let mut tasks = Tasks::default();
        tasks.spawn(Some(&id("7")), async { panic!("on purpose") });
        let lost = tasks.next().await.expect("it ended");
        assert!(matches!(lost.outcome, Outcome::Lost) && lost.request == Some(id("7")));
        tasks.spawn(Some(&id("7")), async { Done::new(None, Outcome::Answered) });
        assert!(matches!(tasks.next().await.expect("it ended").outcome, Outcome::Answered));
        tasks.spawn(None, async { panic!("on purpose") });
        assert!(tasks.next().await.is_none());
        assert!(tasks.is_empty() && tasks.requests.is_empty());
        tasks.spawn(Some(&id("8")), std::future::pending());
        tasks.spawn(None, std::future::pending());
        tasks.abort_requests();
        assert!(tasks.next().await.is_none(), "its request is answered with all that are open");
        assert!(!tasks.has_requests() && tasks.len() == 1);
    }
}
