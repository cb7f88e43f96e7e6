//! A session of another node of the daemon's fleet, when that node is lost: what waits for it, and what is told.
//!
//! The daemon is there and its link is of use, but all that the client has is that session. So the link is given up and made
//! anew, until the node is back: what was open is asked again as it is when the daemon itself is lost. A client with other
//! sessions is told instead, since they would be held up.

use super::FrontCore;
use crate::front::editing::text;
use crate::front::open::Kind;
use acpd_wire::{codes, member};
use serde_json::value::RawValue;

/// How often one request waits for a node that was lost. An agent can say what looks like it, over and over.
const LOSSES: u32 = 8;

impl FrontCore {
    /// Whether the node of a session is waited for: the client is attached to it and to no other.
    pub(super) fn waits_for_node(&self, session: &str) -> bool {
        let mut attached = self.sessions.iter().filter(|(_, session)| session.is_attached);
        attached.next().is_some_and(|(id, known)| id == session && known.goes_on())
            && attached.next().is_none()
    }

    /// Whether the request at this place, which is answered with the loss of a node, is kept for when that is back.
    pub(super) fn asks_node_again(&mut self, place: usize) -> bool {
        let open = &self.open[place];
        let is_kept = match (&open.session, open.kind) {
            (Some(session), Kind::Prompt | Kind::Repeatable) => self.waits_for_node(session),
            _ => false,
        };
        if !is_kept || open.losses >= LOSSES {
            return false;
        }
        // While it is away each new link is told so.
        if !std::mem::replace(&mut self.node_is_lost, true) {
            self.open[place].losses += 1;
        }
        true
    }
}

/// Why the node of a session is not reached, if an error says that.
pub(super) fn lost_node(error: &RawValue) -> Option<String> {
    let code: i64 = member(error, "code")?.get().parse().ok()?;
    let data = member(error, "data")?;
    let is_it = code == codes::INTERNAL_ERROR && text(Some(data), "sessionId").is_some();
    let _node = text(Some(data), "node").filter(|_| is_it)?;
    text(Some(error), "message")
}
