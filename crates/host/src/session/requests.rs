//! What clients have asked a session and were not answered yet.

use super::{ClientRef, ClientRequest};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A request of a client that is with the agent, or waits to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) method: String,
    /// Under the agent's session id.
    pub(crate) params: Option<Bytes>,
    pub(crate) client: ClientRef,
    /// The content blocks of a prompt, as they stand in `params`.
    pub(crate) prompt: Option<std::ops::Range<usize>>,
}

impl Pending {
    /// The content blocks of a prompt.
    pub(crate) fn content(&self) -> &[u8] {
        match (&self.params, &self.prompt) {
            (Some(params), Some(prompt)) => &params[prompt.clone()],
            _ => b"[]",
        }
    }
}

/// Open requests. Invariant: each is taken once, and answered then.
#[derive(Debug, Default)]
pub(crate) struct ClientRequests {
    open: BTreeMap<ClientRequest, Pending>,
    /// Those that came while the session was ending; answered with how it ended.
    late: Vec<ClientRequest>,
}

impl ClientRequests {
    pub(crate) fn open(&mut self, request: ClientRequest, pending: Pending) {
        self.open.insert(request, pending);
    }

    pub(crate) fn get(&self, request: ClientRequest) -> Option<&Pending> {
        self.open.get(&request)
    }

    /// Takes a request that is about to be answered, if it is still open.
    pub(crate) fn take(&mut self, request: ClientRequest) -> Option<Pending> {
        let taken = self.open.remove(&request);
        if self.open.is_empty() {
            // An empty map keeps room for a dozen, and a session mostly has none.
            self.open = BTreeMap::new();
        }
        taken
    }

    /// Takes all that are open, oldest first, and whether each is a prompt.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (ClientRequest, bool)> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(|(request, pending)| (request, pending.prompt.is_some()))
    }

    pub(crate) fn came_late(&mut self, request: ClientRequest) {
        self.late.push(request);
    }

    pub(crate) fn take_late(&mut self) -> Vec<ClientRequest> {
        std::mem::take(&mut self.late)
    }
}
