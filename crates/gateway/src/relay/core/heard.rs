//! What another node says to the client.

use super::{Open, RelayCore, SESSIONS, Seat, UpstreamId, begins_to_watch, is_initialize, leaves, text};
use crate::methods::StartsRun;
use crate::outbox::Closing;
use acpd_host::method;
use acpd_record::SessionId;
use acpd_wire::{Message, member, span_of, splice};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::value::RawValue;
use std::ops::Range;

/// What becomes of a line of another node.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::relay) enum Heard {
    /// It goes to the client. With a session that `begins`, of which the client learns by it.
    Told { to: Address, begins: Option<SessionId>, line: Bytes },
    /// The session is not there any more.
    Removed(SessionId),
    /// It means nothing to the client.
    Nothing,
    /// It is not what acpd says.
    Broken(&'static str),
}

/// Where the client reads a line.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::relay) enum Address {
    /// With what belongs to no session.
    Connection,
    /// With what there is of a session, in its order.
    Viewer(SessionId),
    /// The same if the client watches the session, else where answers about it go.
    About(SessionId),
}

impl RelayCore {
    /// A node says something.
    pub(in crate::relay) fn heard(&mut self, upstream: UpstreamId, line: &Bytes) -> Heard {
        match Message::parse(line) {
            Ok(Message::Response { id: Some(id), outcome }) => {
                match self.open.remove_entry(&id.to_owned()) {
                    Some((_, open)) if open.upstream == upstream => self.answered(open, outcome, line),
                    // Another node's, which has not answered it.
                    Some((id, open)) => {
                        self.open.insert(id, open);
                        Heard::Nothing
                    }
                    None => Heard::Nothing,
                }
            }
            Ok(Message::Request { id, params, .. }) => {
                let own = id.as_u64().and_then(|theirs| upstream.own_id(theirs));
                let (Some(own), Some(span)) = (own, span_of(line, id.as_value())) else {
                    return Heard::Broken("it asks under an id that is none of acpd's");
                };
                self.asks(upstream, own);
                told(self.place(upstream, params), with(line, span, own))
            }
            Ok(Message::Notification { method, params }) => self.news(upstream, &method, params, line),
            Ok(Message::Response { id: None, .. }) => Heard::Nothing,
            Err(_) => Heard::Broken("it says what is no message"),
        }
    }

    fn answered(&mut self, open: Open, outcome: Result<&RawValue, &RawValue>, line: &Bytes) -> Heard {
        let Open { upstream, session, method } = open;
        let seat = self.sessions.get_mut(&session);
        match outcome {
            Ok(_) if begins_to_watch(method) => {
                if let Some(seat) = seat {
                    seat.is_watched = true;
                }
                told(Address::Viewer(session), on_a_line(line))
            }
            Ok(result) if method.starts_run == StartsRun::New => {
                let forked = text(Some(result), "sessionId").and_then(|id| SessionId::parse(&id));
                if let Some(forked) = forked.clone()
                    && self.sessions.values().filter(|seat| seat.upstream == upstream).count() < SESSIONS
                {
                    self.sessions.insert(forked, Seat { upstream, is_watched: true, is_listed: false });
                }
                Heard::Told { to: Address::Connection, begins: forked, line: on_a_line(line) }
            }
            Ok(_) if leaves(method) => {
                if let Some(seat) = seat {
                    seat.is_watched = false;
                }
                told(Address::About(session), on_a_line(line))
            }
            Ok(_) | Err(_) if is_initialize(method) => told(Address::Connection, on_a_line(line)),
            Ok(_) | Err(_) => told(Address::About(session), on_a_line(line)),
        }
    }

    fn news(&mut self, upstream: UpstreamId, method: &str, params: Option<&RawValue>, line: &Bytes) -> Heard {
        let place = self.place(upstream, params);
        match method {
            method::CANCEL_REQUEST | method::ANSWER_REFUSED => {
                let id = params.and_then(|params| member(params, "requestId"));
                let own = id.and_then(|id| upstream.own_id(acpd_wire::RawId::new(id)?.as_u64()?));
                match (own, id.and_then(|id| span_of(line, id))) {
                    (Some(own), Some(span)) => {
                        if method == method::CANCEL_REQUEST {
                            self.withdraws(upstream, own);
                        }
                        told(place, with(line, span, own))
                    }
                    _ => Heard::Nothing,
                }
            }
            Closing::METHOD if text(params, "reason").as_deref() == Some("deleted") => match place {
                Address::Viewer(session) => {
                    self.sessions.remove(&session);
                    Heard::Removed(session)
                }
                _ => Heard::Nothing,
            },
            _ => told(place, on_a_line(line)),
        }
    }

    /// Where a line is read that names its session, or is about none.
    fn place(&self, upstream: UpstreamId, params: Option<&RawValue>) -> Address {
        let named = text(params, "sessionId").or_else(|| text(params, "session_id"));
        let named = named.and_then(|id| SessionId::parse(&id));
        let is_its_own =
            |session: &SessionId| self.sessions.get(session).is_some_and(|seat| seat.upstream == upstream);
        match named.filter(is_its_own) {
            Some(session) => Address::Viewer(session),
            None => Address::Connection,
        }
    }
}

fn told(to: Address, line: Bytes) -> Heard {
    Heard::Told { to, begins: None, line }
}

/// The line with another number at a place.
fn with(line: &[u8], place: Range<usize>, number: u64) -> Bytes {
    let mut out = BytesMut::with_capacity(line.len() + 21);
    splice(&mut out, line, &[(place, number.to_string().as_bytes())]);
    out.put_u8(b'\n');
    out.freeze()
}

fn on_a_line(line: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(line.len() + 1);
    splice(&mut out, line, &[]);
    out.put_u8(b'\n');
    out.freeze()
}
