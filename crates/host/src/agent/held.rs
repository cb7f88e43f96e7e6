//! Messages of sessions that the host does not know yet (UP-7).
//!
//! Pure and bounded: over the bound the oldest goes.

use super::FromAgent;
use acpd_record::{Snapshot, is_history, is_state};
use acpd_wire::UpdateKind;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// What an agent may say of a session before the host knows it (seen: half a megabyte before `session/new` is
/// answered). Over it the oldest is dropped, with a warning.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// A message of a session that is not bound yet.
#[derive(Debug)]
struct Held {
    /// The session's raw id; `None`: of no session.
    native: Option<Bytes>,
    message: FromAgent,
    bytes: usize,
    /// Its place among the lines of the agent.
    position: u64,
}

/// Messages of sessions that are not bound yet.
#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    messages: VecDeque<Held>,
    bytes: usize,
    /// Sessions whose messages are not held: they were only there to be forked.
    disowned: Vec<Arc<str>>,
}

impl HeldMessages {
    /// Holds a message; gives the sizes of those that had to go.
    pub(super) fn hold(
        &mut self,
        native: Option<Bytes>,
        message: FromAgent,
        bytes: usize,
        position: u64,
    ) -> Vec<usize> {
        if let Some(native) = &native
            && self.disowned.iter().any(|disowned| disowned.as_bytes() == &native[..])
        {
            return Vec::new();
        }
        self.bytes += bytes;
        self.messages.push_back(Held { native, message, bytes, position });
        let mut dropped = Vec::new();
        while self.bytes > HELD_BYTES {
            let Some(Held { bytes, .. }) = self.messages.pop_front() else { break };
            self.bytes -= bytes;
            dropped.push(bytes);
        }
        dropped
    }

    /// Takes those of sessions that are known now.
    pub(super) fn release<R>(
        &mut self,
        route_of: impl Fn(Option<&[u8]>) -> Option<R>,
    ) -> Vec<(R, FromAgent)> {
        let mut released = Vec::new();
        for held in std::mem::take(&mut self.messages) {
            match route_of(held.native.as_deref()) {
                Some(route) => {
                    self.bytes -= held.bytes;
                    released.push((route, held.message));
                }
                None => self.messages.push_back(held),
            }
        }
        released
    }

    /// What is said of this session is dropped.
    pub(super) fn disown(&mut self, native: Arc<str>) {
        self.messages.retain(|held| held.native.as_deref() != Some(native.as_bytes()));
        self.count();
        if !self.disowned.contains(&native) {
            self.disowned.push(native);
        }
    }

    /// What is said of this session counts again.
    pub(super) fn own(&mut self, native: &Arc<str>) {
        self.disowned.retain(|disowned| disowned != native);
    }

    /// Takes out what an agent replayed of a session before its answer, and gives the lines of the conversation. What it
    /// says of the present state stays, if it is news: the last word of each kind counts.
    pub(super) fn drop_replay(&mut self, native: &str, known: &Snapshot, answered: u64) -> Vec<Bytes> {
        let mut heard: Vec<UpdateKind> = Vec::new();
        let mut told = Vec::new();
        let mut is_replay = |held: &Held| match &held.message {
            FromAgent::Notification { line, update: Some(kind), .. }
                if held.native.as_deref() == Some(native.as_bytes()) =>
            {
                if is_state(*kind) {
                    let is_last = !heard.contains(kind);
                    heard.push(*kind);
                    return !is_last || !known.would_change(line);
                }
                // Whether what comes behind the answer is a replay is for the session to tell.
                let is_replay = is_history(*kind) && held.position < answered;
                if is_replay {
                    told.push(line.clone());
                }
                is_replay
            }
            _ => false,
        };
        for held in std::mem::take(&mut self.messages).into_iter().rev() {
            if !is_replay(&held) {
                self.messages.push_front(held);
            }
        }
        self.count();
        told.reverse();
        told
    }

    fn count(&mut self) {
        self.bytes = self.messages.iter().map(|held| held.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(text: &str) -> FromAgent {
        let line: Bytes = format!(r#"{{"params":{{"update":{text}}}}}"#).into();
        let update = Some(acpd_record::update_kind(&line));
        FromAgent::Notification { line, session: None, update, position: 0 }
    }

    fn hold(held: &mut HeldMessages, native: &'static str, text: &str, position: u64) {
        let gone = held.hold(Some(native.into()), update(text), 10, position);
        assert!(gone.is_empty());
    }

    fn released(held: &mut HeldMessages, native: &str) -> usize {
        held.release(|of| (of == Some(native.as_bytes())).then_some(())).len()
    }

    // UP-7: each session gets its own, once
    #[test]
    fn messages_wait_for_their_session() {
        let mut held = HeldMessages::default();
        hold(&mut held, "\"a\"", "{}", 1);
        hold(&mut held, "\"b\"", "{}", 2);
        assert_eq!((released(&mut held, "\"a\""), released(&mut held, "\"a\"")), (1, 0));
        held.disown("\"b\"".into());
        hold(&mut held, "\"b\"", "{}", 3);
        assert_eq!(released(&mut held, "\"b\""), 0);
        held.own(&"\"b\"".into());
        hold(&mut held, "\"b\"", "{}", 4);
        assert_eq!((released(&mut held, "\"b\""), held.bytes), (1, 0));
    }

    // UP-7: bounded, the oldest goes
    #[test]
    fn the_oldest_goes() {
        let mut held = HeldMessages::default();
        assert!(held.hold(None, update("{}"), HELD_BYTES, 1).is_empty());
        assert_eq!(held.hold(None, update("{}"), 1, 2), [HELD_BYTES]);
        assert_eq!(held.bytes, 1);
    }

    // SE-7: what was replayed before the answer is no news; the present state is, once, if it is not known
    #[test]
    fn a_replay_is_taken_out() {
        let mut held = HeldMessages::default();
        let text = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#;
        let title = |title: &str| format!(r#"{{"sessionUpdate":"session_info_update","title":"{title}"}}"#);
        hold(&mut held, "\"a\"", text, 1);
        hold(&mut held, "\"a\"", &title("old"), 2);
        hold(&mut held, "\"a\"", &title("new"), 3);
        hold(&mut held, "\"b\"", text, 4);
        hold(&mut held, "\"a\"", text, 6);
        assert_eq!(held.drop_replay("\"a\"", &Snapshot::default(), 5).len(), 1);
        assert_eq!((released(&mut held, "\"a\""), released(&mut held, "\"b\"")), (2, 1));
    }
}
