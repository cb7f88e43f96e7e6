//! What all clients of equal capabilities see of an event alike.
//!
//! Pure. Most of what an agent says is that, and is written once for all of them. What depends on the client itself (who
//! prompted, what it was asked, what it was shown of terminals) is left to its page.

use super::addressing::addressed;
use super::marking::mark;
use crate::capabilities::ClientCapabilities;
use acpd_eventlog::{Block, Event as StoredEvent};
use acpd_host::method;
use acpd_record::{Event, Json, SessionId, TerminalNews};
use acpd_wire::{Member, Message, Skimmer, UpdateKind, scan};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What clients of some capabilities see alike of a session.
#[derive(Debug)]
pub(super) struct Alike {
    /// The session's id.
    id: SessionId,
    client: ClientCapabilities,
    skimmer: Skimmer,
}

impl Alike {
    pub(super) fn new(id: SessionId, client: ClientCapabilities) -> Self {
        Self { id, client, skimmer: Skimmer::default() }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn client(&self) -> &ClientCapabilities {
        &self.client
    }

    /// The lines of a block as it comes, in one piece; no piece if any of its events depends on the client.
    pub(super) fn write_block(&mut self, block: &Block) -> Arc<[Bytes]> {
        let (mut out, mut lines) = (BytesMut::with_capacity(block.bytes()), BytesMut::new());
        let is_alike = block.events().all(|stored| match self.client.keeps_cursors() {
            false => self.write_stored(&stored, &mut out),
            true => {
                lines.clear();
                let is_alike = self.write_stored(&stored, &mut lines);
                mark(stored.seq, &lines, &mut out);
                is_alike
            }
        });
        // Kept as long as the block, and charged for what it holds.
        let piece = || Bytes::from(Vec::from(out).into_boxed_slice());
        is_alike.then(piece).into_iter().collect()
    }

    fn write_stored(&mut self, stored: &StoredEvent<'_>, out: &mut BytesMut) -> bool {
        Event::read(stored.kind, stored.payload).is_ok_and(|event| self.write(&event, false, out))
    }

    /// Writes an event, of the `history` or as it comes. False: what is seen of it depends on the client, and nothing is
    /// written.
    pub(super) fn write(&mut self, event: &Event<'_>, history: bool, out: &mut BytesMut) -> bool {
        match event {
            Event::Update(message) => return self.write_update(message.line(), history, out),
            Event::Notification(message) => {
                if !history && is_the_agents(message.line()) {
                    put_line(out, message.line());
                }
            }
            Event::Terminal(news) if self.client.watches_terminals() => {
                self.write_terminal(news, history, out);
            }
            Event::Terminal(_) if !self.client.knows_terminals() => return false,
            // Of the past, neither is news.
            Event::Stalled(stalled) if !history => self.tell(method::SESSION_STALLED, stalled, out),
            Event::Reattached(reattached) if !history => {
                self.tell(method::SESSION_REATTACHED, reattached, out);
            }
            Event::PermissionRequested(_)
            | Event::FileForwarded(_)
            | Event::ElicitationRequested(_)
            | Event::PermissionResolved(_)
            | Event::ElicitationResolved(_)
            | Event::FileResolved(_)
            | Event::ElicitationCompleted(_)
            | Event::Echo(_)
            | Event::Prompt(_)
            | Event::Ended(_) => return false,
            // Of use to REST, not part of an ACP conversation.
            Event::Created(_)
            | Event::RunStarted(_)
            | Event::TurnEnded(_)
            | Event::CancelRequested(_)
            | Event::AgentRequest(_)
            | Event::Transcript(_)
            | Event::Terminal(_)
            | Event::StateChanged(_)
            | Event::Stalled(_)
            | Event::Reattached(_)
            | Event::Other { .. } => {}
        }
        true
    }

    fn write_update(&mut self, line: &[u8], history: bool, out: &mut BytesMut) -> bool {
        let Some(update) = self.skimmer.skim(line) else { return true };
        if is_call(update.kind()) && !self.client.knows_terminals() {
            return false;
        }
        // UP-3: notices are seen as they come and never again.
        if history && update.kind() == UpdateKind::Notice {
            return true;
        }
        if let Some(shown) = self.client.filter_update(update.kind(), line) {
            let session = match &shown {
                Cow::Borrowed(_) => update.session(),
                Cow::Owned(_) => session_in(&shown),
            };
            put_addressed(out, &shown, session, &self.id);
        }
        true
    }

    /// Writes an update of a call; in its place `text`, where terminals are shown as text.
    pub(super) fn write_call(&mut self, line: &[u8], text: Option<&[u8]>, out: &mut BytesMut) {
        let session = match text {
            Some(text) => session_in(text),
            None => self.skimmer.skim(line).and_then(|update| update.session()),
        };
        put_addressed(out, text.unwrap_or(line), session, &self.id);
    }

    /// Whether an update is of a call, which can show terminals.
    pub(super) fn is_call(&mut self, line: &[u8]) -> bool {
        self.skimmer.skim(line).is_some_and(|update| is_call(update.kind()))
    }

    /// TE-10: what a terminal said, as it comes; of the past, what it said in the end.
    fn write_terminal(&self, news: &TerminalNews<'_>, history: bool, out: &mut BytesMut) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(flatten)]
            news: &'a TerminalNews<'a>,
            session_id: &'a SessionId,
        }
        if history && matches!(news, TerminalNews::Output(_)) {
            return;
        }
        let params = Json::new(&Params { news, session_id: &self.id });
        acpd_wire::write_notification(out, method::TERMINAL, Some(params.get().as_bytes()));
    }

    /// A notification of acpd's own, with the members of an event.
    fn tell(&self, method: &str, event: &impl Serialize, out: &mut BytesMut) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a, T> {
            session_id: &'a SessionId,
            #[serde(flatten)]
            event: &'a T,
        }
        let params = Json::new(&Params { session_id: &self.id, event });
        acpd_wire::write_notification(out, method, Some(params.get().as_bytes()));
    }
}

fn is_call(kind: UpdateKind) -> bool {
    matches!(kind, UpdateKind::ToolCall | UpdateKind::ToolCallUpdate)
}

/// Whether a notification is one that an agent may send. Logs of earlier versions have others.
fn is_the_agents(line: &[u8]) -> bool {
    matches!(Message::parse(line), Ok(Message::Notification { method, .. }) if !method::is_own(&method))
}

fn session_in(line: &[u8]) -> Option<Range<usize>> {
    scan(line).ok().and_then(|line| line.span(Member::SessionId))
}

pub(super) fn put_line(out: &mut BytesMut, line: &[u8]) {
    out.put_slice(line);
    out.put_u8(b'\n');
}

fn put_addressed(out: &mut BytesMut, line: &[u8], session: Option<Range<usize>>, id: &SessionId) {
    if let Some(line) = addressed(line, session, id) {
        put_line(out, &line);
    }
}

#[cfg(test)]
mod tests;
