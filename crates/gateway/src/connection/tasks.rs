//! The tasks of a connection, and which request each is for: one that panics still has its request answered.
//!
//! Owned by the connection, which names the request before it starts what is done for it. Nothing is decided here.

use super::{Change, Done};
use crate::outbox::Outbox;
use acpd_wire::OwnedId;
use std::collections::HashMap;
use tokio::task::{Id, JoinSet};

/// A request of the client, as far as an answer needs to know it.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) id: OwnedId,
    /// Where its answer goes.
    pub(super) outbox: Outbox,
    /// Nothing is read before its answer.
    pub(super) initializes: bool,
}

/// Everything that is done for the client at one time.
#[derive(Default)]
pub(super) struct Tasks {
    running: JoinSet<Done>,
    requests: HashMap<Id, Asking>,
    current: Option<Asking>,
}

impl Tasks {
    /// What is started from now on is for this request, or for none.
    pub(super) fn are_for(&mut self, asking: Option<Asking>) {
        self.current = asking;
    }

    pub(super) fn spawn(&mut self, work: impl Future<Output = Done> + Send + 'static) {
        let task = self.running.spawn(work);
        if let Some(asking) = self.current.clone() {
            self.requests.insert(task.id(), asking);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    pub(super) fn abort_all(&mut self) {
        self.running.abort_all();
    }

    /// What the next one to end has done. None when there is none, or when it was aborted.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next_done(&mut self) -> Option<Done> {
        match self.running.join_next_with_id().await? {
            Ok((task, done)) => {
                self.requests.remove(&task);
                Some(done)
            }
            Err(error) => {
                let asking = self.requests.remove(&error.id());
                if !error.is_panic() {
                    return None;
                }
                tracing::error!(%error, "the task of a request ended badly");
                asking.map(|asking| Done { id: None, change: Change::Lost(asking) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(id: &str) -> Asking {
        let raw: &serde_json::value::RawValue = serde_json::from_str(id).expect("JSON");
        let id = acpd_wire::RawId::new(raw).expect("an id").to_owned();
        let (outbox, _lines) = crate::outbox::outbox();
        Asking { id, outbox, initializes: false }
    }

    // contract 1, FR-3: every request gets exactly one answer, also when what was done for it panics
    #[tokio::test]
    async fn a_panic_is_known_by_its_request() {
        let mut tasks = Tasks::default();
        tasks.are_for(Some(asking("7")));
        tasks.spawn(async { panic!("on purpose") });
        let lost = tasks.next_done().await.expect("it ended");
        assert!(
            matches!(lost.change, Change::Lost(asking) if asking.id.as_raw() == "7") && lost.id.is_none()
        );
        tasks.spawn(async { Done { id: None, change: Change::None } });
        assert!(matches!(tasks.next_done().await.expect("it ended").change, Change::None));
        tasks.are_for(None);
        tasks.spawn(async { panic!("on purpose") });
        assert!(tasks.next_done().await.is_none());
        assert!(tasks.is_empty() && tasks.requests.is_empty());
        tasks.are_for(Some(asking("8")));
        tasks.spawn(std::future::pending());
        tasks.abort_all();
        assert!(tasks.next_done().await.is_none(), "its request is answered with all that are open");
    }
}
