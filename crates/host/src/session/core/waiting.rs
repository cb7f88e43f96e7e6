//! Prompts that wait for their turns: an agent that outlives its host has them afterwards, too.

use super::SessionCore;
use crate::acp::method;
use crate::session::ClientRequest;
use crate::session::effects::Effects;
use crate::session::prompt;
use crate::session::requests::{Pending, PendingPrompt, StoredPrompt};
use crate::session::turns::Place;
use acpd_eventlog::IndexUpdate;

impl SessionCore {
    /// A prompt that waits is stored, where another host may go on.
    pub(super) fn store_waiting(&mut self, request: ClientRequest, out: &mut Effects) {
        let waits = matches!(self.volatile.turns.place(request), Some(Place::Waits { .. }));
        let Some(pending) = self.volatile.requests.get_mut(request).filter(|_| waits && self.facts.is_kept)
        else {
            return;
        };
        let stored = StoredPrompt::write(pending);
        if let (Some(prompt), Some(_)) = (&mut pending.prompt, &stored) {
            prompt.is_stored = true;
            change(request, stored, out);
        }
    }

    /// A prompt begins, or is dropped.
    pub(super) fn waits_no_more(&mut self, request: ClientRequest, out: &mut Effects) {
        let pending = self.volatile.requests.get_mut(request);
        if let Some(prompt) = pending.and_then(|pending| pending.prompt.as_mut())
            && std::mem::take(&mut prompt.is_stored)
        {
            change(request, None, out);
        }
    }

    /// The prompts that waited for the host before wait here.
    pub(super) fn wait_again(&mut self, waiting: Vec<(ClientRequest, StoredPrompt)>, out: &mut Effects) {
        for (request, stored) in waiting {
            let (params, client) = stored.into_parts();
            let read = prompt::read(Some(params), self.facts.prompt, self.facts.native.as_json());
            // It was read before.
            let Ok(read) = read else { continue };
            let prompt =
                PendingPrompt { content: read.content, key: read.key, repeats: false, is_stored: true };
            let (method, params) = (method::SESSION_PROMPT.to_owned(), Some(read.params));
            self.volatile.requests.open(request, Pending { method, params, client, prompt: Some(prompt) });
            let step = self.volatile.turns.prompt(request);
            self.step(step, out);
        }
    }
}

fn change(request: ClientRequest, bytes: Option<Vec<u8>>, out: &mut Effects) {
    out.recording.index(IndexUpdate { waiting: vec![(request.0, bytes)], ..IndexUpdate::default() });
}
