//! What clients have asked a session and were not answered yet.

use super::{ClientRef, ClientRequest};
use acpd_record::RequestKey;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// A request of a client that is with the agent, or waits to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) method: String,
    /// Under the agent's session id.
    pub(crate) params: Option<Bytes>,
    pub(crate) client: ClientRef,
    /// What there is beside that of a prompt.
    pub(crate) prompt: Option<PendingPrompt>,
}

/// A prompt that was not answered yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingPrompt {
    /// Its content blocks, as they stand in the params.
    pub(crate) content: Range<usize>,
    pub(crate) key: Option<RequestKey>,
    /// It came before under the same key, and is answered with that.
    pub(crate) repeats: bool,
    /// It waits in the log, too: another host may go on with it.
    pub(crate) is_stored: bool,
}

/// A prompt that waits, as the log has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredPrompt {
    params: Box<RawValue>,
    /// Name and connection.
    client: (Box<str>, Box<str>),
}

impl StoredPrompt {
    pub(crate) fn write(pending: &Pending) -> Option<Vec<u8>> {
        let params: &RawValue = serde_json::from_slice(pending.params.as_deref()?).ok()?;
        let ClientRef { name, connection } = &pending.client;
        let stored =
            Self { params: params.to_owned(), client: ((**name).into(), connection.as_str().into()) };
        serde_json::to_vec(&stored).ok()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Params under the agent's session id, and the client that gave them.
    pub(crate) fn into_parts(self) -> (Bytes, ClientRef) {
        let (name, connection) = self.client;
        let client = ClientRef { name: (*name).into(), connection: (*connection).into() };
        (String::from(Box::<str>::from(self.params)).into(), client)
    }
}

impl Pending {
    /// The content blocks of a prompt.
    pub(crate) fn content(&self) -> &[u8] {
        match (&self.params, &self.prompt) {
            (Some(params), Some(prompt)) => &params[prompt.content.clone()],
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

    pub(crate) fn get_mut(&mut self, request: ClientRequest) -> Option<&mut Pending> {
        self.open.get_mut(&request)
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

    fn prompts(&self) -> impl Iterator<Item = (ClientRequest, &PendingPrompt)> {
        self.open.iter().filter_map(|(request, pending)| Some((*request, pending.prompt.as_ref()?)))
    }

    /// The prompt that was the first under a key.
    pub(crate) fn keyed(&self, key: &str) -> Option<(ClientRequest, &RequestKey)> {
        let mut first = self.prompts().filter(|(_, prompt)| !prompt.repeats);
        first.find_map(|(request, prompt)| {
            prompt.key.as_ref().filter(|own| own.as_str() == key).map(|own| (request, own))
        })
    }

    /// Those that repeat it.
    pub(crate) fn repeats_of(&self, key: &str) -> Vec<ClientRequest> {
        let of_key = |prompt: &PendingPrompt| prompt.key.as_ref().is_some_and(|own| own.as_str() == key);
        let repeats = self.prompts().filter(|(_, prompt)| prompt.repeats && of_key(prompt));
        repeats.map(|(request, _)| request).collect()
    }

    pub(crate) fn came_late(&mut self, request: ClientRequest) {
        self.late.push(request);
    }

    pub(crate) fn take_late(&mut self) -> Vec<ClientRequest> {
        std::mem::take(&mut self.late)
    }
}
