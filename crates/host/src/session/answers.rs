//! Where the answers of a session go.

use super::effects::Answer;
use super::{ClientRequest, Reply, ReplyTo};
use crate::error::HostError;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Those that wait for an answer, or for the end. Invariant: each is answered once; dropping one unanswered is a bug that
/// the client would see as a closed channel.
#[derive(Default)]
pub(super) struct Waiting {
    requests: HashMap<ClientRequest, ReplyTo>,
    ends: Vec<oneshot::Sender<u64>>,
    late: Vec<ReplyTo>,
}

impl Waiting {
    pub(super) fn add(&mut self, request: ClientRequest, reply: ReplyTo) {
        self.requests.insert(request, reply);
    }

    pub(super) fn for_end(&mut self, done: oneshot::Sender<u64>) {
        self.ends.push(done);
    }

    /// Hands an answer out.
    pub(super) fn answer(&mut self, answer: Answer) {
        let Answer { request, body, after, before } = answer;
        if let Some(reply) = self.requests.remove(&request) {
            reply.send(Reply { after: after.unwrap_or_default(), before, body });
        }
        if self.requests.is_empty() {
            // An empty map keeps its room, and a session mostly has none to wait for.
            self.requests = HashMap::new();
        }
    }

    /// A request that came while the end is recorded.
    pub(super) fn came_late(&mut self, reply: ReplyTo) {
        self.late.push(reply);
    }

    /// The run has ended with event `end`.
    pub(super) fn ended(self, error: &HostError, end: u64) {
        for reply in self.late {
            reply.send(Reply { after: end, before: None, body: Err(error.clone()) });
        }
        for done in self.ends {
            let _left = done.send(end);
        }
    }
}
