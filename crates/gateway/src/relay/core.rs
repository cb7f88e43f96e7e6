//! What a relay does with a line of its client or of another node, decided without a runtime: a line comes in, what becomes of it
//! goes out.
//!
//! Invariants: a request that went to another node has one answer, that of its node or, when that is lost, one that says so; ids
//! of the client go as they are, and what a node asks the client gets an id that tells where its answer belongs; what is kept is
//! bounded. Not here: where a session is, and how another node is reached.

mod asking;
mod heard;
mod ways;

use crate::access::{Named, Needs, decide};
use crate::capabilities::InitializeParams;
use crate::identity::Identity;
use crate::methods::{self, Handler, Method, OfConnection, OfSession, StartsRun};
use crate::wire_error::WireError;
use acpd_api::Scope;
use acpd_fleet::{NodeId, NodeName};
use acpd_host::method;
use acpd_record::SessionId;
use acpd_wire::{Message, OwnedId, RawId, codes, member, span_of};
pub(super) use asking::UpstreamId;
use bytes::Bytes;
pub(super) use heard::{Address, Heard};
use serde_json::value::RawValue;
use std::collections::{BTreeSet, HashMap};

/// Upstreams of one client.
const UPSTREAMS: usize = 256;
/// Requests of one client that other nodes have not answered.
const REQUESTS: usize = 1024;
/// Sessions of one upstream: the one that it was made for, and forks.
const SESSIONS: usize = 1024;

/// Where a session of another node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) node: NodeName,
    /// Which one of that name.
    pub(super) id: NodeId,
    /// Where it is reached; None where it is not.
    pub(super) address: Option<String>,
    /// The agent that the session runs on.
    pub(super) agent: String,
    /// Since when the node is gone; None while it is there.
    pub(super) gone_since: Option<String>,
}

/// Where an upstream goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct To {
    pub(super) node: NodeName,
    pub(super) address: String,
    pub(super) agent: String,
    /// The session that it is made for.
    pub(super) session: SessionId,
    /// The first message.
    pub(super) initialize: Bytes,
    /// That is the client's own, which is to be answered.
    pub(super) is_asked: bool,
}

/// An upstream, and where it goes if it is to be made.
type Way = (UpstreamId, Option<Box<To>>);

/// What becomes of a line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is for this node.
    Here,
    /// It goes over this upstream, which is made first if there is where to.
    There { upstream: UpstreamId, new: Option<Box<To>>, line: Bytes, is_request: bool },
    /// It is answered this.
    Answered { session: SessionId, line: Bytes },
    /// It is dropped, and why.
    Dropped(String),
}

/// A relay.
#[derive(Debug)]
pub(super) struct RelayCore {
    identity: Identity,
    /// The client came by another node: what is not here goes no further.
    is_forwarded: bool,
    /// This node has the agent of the connection.
    has_agent: bool,
    /// The params of the client's last `initialize`.
    introduction: Option<Bytes>,
    /// Upstreams so far; their ids are never used again.
    made: u64,
    upstreams: HashMap<UpstreamId, Upstream>,
    sessions: HashMap<SessionId, Seat>,
    /// Requests of the client that other nodes have.
    open: HashMap<OwnedId, Open>,
}

#[derive(Debug)]
struct Upstream {
    id: NodeId,
    /// Its requests that the client has not answered, by the ids that they have here.
    asked: BTreeSet<u64>,
}

/// A session of another node.
#[derive(Debug)]
struct Seat {
    upstream: UpstreamId,
    /// The client watches it.
    is_watched: bool,
    /// The directory has had it: when it does not any more, it is not there any more.
    is_listed: bool,
}

/// A request that another node has.
#[derive(Debug)]
struct Open {
    upstream: UpstreamId,
    session: SessionId,
    method: &'static Method,
}

impl RelayCore {
    pub(super) fn new(identity: Identity, is_forwarded: bool, has_agent: bool) -> Self {
        Self {
            identity,
            is_forwarded,
            has_agent,
            introduction: None,
            made: 0,
            upstreams: HashMap::new(),
            sessions: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// The client says something; `find` tells which other node has a session that exists for the client.
    pub(super) fn said(&mut self, line: &Bytes, find: impl FnOnce(&SessionId) -> Option<Owner>) -> Said {
        match Message::parse(line) {
            Ok(Message::Request { id, method, params }) if method == method::INITIALIZE => {
                let params = params.and_then(|params| span_of(line, params));
                let params = params.map_or(Bytes::from_static(b"{}"), |span| line.slice(span));
                let joins = InitializeParams::read(Some(&params)).ok().and_then(|params| params.joins());
                self.introduction = Some(params);
                // Only the node of the session can answer for an agent that is not here.
                match joins.filter(|_| !self.has_agent) {
                    Some(session) => {
                        let owner = find(&session);
                        self.request(&id.to_owned(), (methods::find(&method), session), owner, line)
                    }
                    None => Said::Here,
                }
            }
            Ok(Message::Request { id, method, params }) => {
                let method = methods::find(&method);
                let Some(session) = self.session_of(method.needs, method, params) else { return Said::Here };
                let owner = find(&session);
                self.request(&id.to_owned(), (method, session), owner, line)
            }
            Ok(Message::Notification { method, params }) if method == method::CANCEL_REQUEST => {
                let id = params.and_then(|params| RawId::new(member(params, "requestId")?));
                match id.and_then(|id| self.open.get(&id.to_owned())) {
                    Some(open) => {
                        let (upstream, line) = (open.upstream, line.clone());
                        Said::There { upstream, new: None, line, is_request: false }
                    }
                    None => Said::Here,
                }
            }
            Ok(Message::Notification { method, params }) if !method.starts_with("$/") => {
                let needs = Needs::method(Scope::Control);
                let method = methods::find(&method);
                let Some(session) = self.session_of(needs, method, params) else { return Said::Here };
                let owner = find(&session);
                match self.way(&session, owner) {
                    Ok(Some((upstream, new))) => {
                        Said::There { upstream, new, line: line.clone(), is_request: false }
                    }
                    Ok(None) => Said::Here,
                    Err(error) => Said::Dropped(words(error)),
                }
            }
            Ok(Message::Response { id: Some(id), .. }) => self.answer(id, line),
            Ok(Message::Notification { .. } | Message::Response { id: None, .. }) | Err(_) => Said::Here,
        }
    }

    /// The id of a request that may be for a session of another node, and that session.
    pub(super) fn request_for(&self, line: &Bytes) -> Option<(OwnedId, SessionId)> {
        let Ok(Message::Request { id, method, params }) = Message::parse(line) else { return None };
        let method = methods::find(&method);
        Some((id.to_owned(), self.session_of(method.needs, method, params)?))
    }

    /// The session that a message is for, if it may be one of another node. What the client may not do is refused here.
    fn session_of(&self, needs: Needs, method: &Method, params: Option<&RawValue>) -> Option<SessionId> {
        let may = self.introduction.is_some()
            && method.may_name_a_session()
            && decide(&self.identity, needs, Named::Nothing).is_ok();
        text(params, "sessionId").filter(|_| may).and_then(|id| SessionId::parse(&id))
    }

    fn request(
        &mut self,
        id: &OwnedId,
        (method, session): (&'static Method, SessionId),
        owner: Option<Owner>,
        line: &Bytes,
    ) -> Said {
        let has_just_forked = || self.sessions.get(&session).is_some_and(|seat| !seat.is_listed);
        if owner.is_none() && !has_just_forked() {
            return Said::Here;
        }
        let refused = if self.open.contains_key(id) {
            Some((codes::INVALID_REQUEST, format!("a request with the id {id} is open already")))
        } else if self.open.len() >= REQUESTS {
            Some((codes::INTERNAL_ERROR, format!("{REQUESTS} requests to other nodes are open already")))
        } else {
            None
        };
        let way = match refused {
            Some((code, message)) => Err(own_error(code, message)),
            None => self.way(&session, owner),
        };
        match way {
            Ok(Some((upstream, mut new))) => {
                if let Some(to) = new.as_mut().filter(|_| is_initialize(method)) {
                    (to.initialize, to.is_asked) = (line.clone(), true);
                }
                self.open.insert(id.clone(), Open { upstream, session, method });
                Said::There { upstream, new, line: line.clone(), is_request: true }
            }
            Ok(None) => Said::Here,
            Err(error) => Said::Answered { session, line: error.to_line(id) },
        }
    }

    /// This node ends: what it still owes is answered this.
    pub(super) fn drain(&mut self, error: &WireError) -> Vec<(SessionId, Bytes)> {
        self.open.drain().map(|(id, open)| (open.session, error.to_line(&id))).collect()
    }
}

fn is_initialize(method: &Method) -> bool {
    method.handler == Handler::Connection(OfConnection::Initialize)
}

/// Whether a method has the client watch the session that it names, or another one.
fn begins_to_watch(method: &Method) -> bool {
    method.starts_run == StartsRun::UnlessLive
}

fn leaves(method: &Method) -> bool {
    use OfSession::{Close, Delete, Detach, Terminate};
    matches!(method.handler, Handler::Session(Close | Delete | Detach | Terminate))
}

fn text(params: Option<&RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(member(params?, name)?.get()).ok()
}

fn own_error(code: i64, message: String) -> WireError {
    WireError::Own { code, message, data: None }
}

fn words(error: WireError) -> String {
    match error {
        WireError::Own { message, .. } => message,
        WireError::Raw(error) => String::from_utf8_lossy(&error).into_owned(),
    }
}

#[cfg(test)]
mod tests;
