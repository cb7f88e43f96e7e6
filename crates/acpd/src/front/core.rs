//! What a front end does, decided without a runtime: lines come in, lines for either side go out, in order.
//!
//! Owned by its shell. Not here: when a link is tried, and how long.

mod other_node;
mod relinking;

use super::editing::{own, text, with, with_id, without};
use super::open::{Kind, Open};
use super::questions::{Asked, Questions};
use super::sessions::{Position, Session, Sessions};
use acpd_host::{META, method};
use acpd_wire::{Message, OwnedId, RawId, codes, member, write_error, write_notification};
use bytes::{Bytes, BytesMut};
use other_node::lost_node;
use relinking::Own;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::time::Duration;

/// What the daemon tells a client before it closes a stream.
const CLOSED: &str = "_sandboxagent/closed";
/// What it tells one whose answer does not count.
const ANSWER_REFUSED: &str = "_sandboxagent/answer_refused";

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) to_client: Vec<Bytes>,
    pub(super) to_daemon: Vec<Bytes>,
    /// The link is of no use any more.
    pub(super) lost: Option<Loss>,
    /// The daemon is there again.
    pub(super) is_back: bool,
}

/// Why a link is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) why: String,
    /// When to come back, if the daemon says that.
    pub(super) retry: Option<Duration>,
}

/// A front end.
#[derive(Debug)]
pub(super) struct FrontCore {
    /// What the daemon knows this client by, over all links.
    secret: String,
    /// Its own ids begin with it.
    name: String,
    numbers: u64,
    /// The client's `initialize`, once it was answered with a result.
    hello: Option<Bytes>,
    /// The client itself wants to know which event each message is of.
    client_keeps_cursors: bool,
    /// The daemon says which event each message is of.
    can_go_on: bool,
    sessions: Sessions,
    /// In the order in which they were sent.
    open: Vec<Open>,
    questions: Questions,
    /// What the front end itself has asked on this link.
    own: HashMap<String, Own>,
    /// The node that has the client's session was lost, and not reached since.
    node_is_lost: bool,
}

impl FrontCore {
    /// `secret`: at least 16 visible characters that nothing else knows; `name`: that nothing else is called.
    pub(super) fn new(secret: String, name: String) -> Self {
        Self {
            secret,
            name,
            numbers: 0,
            hello: None,
            client_keeps_cursors: false,
            can_go_on: false,
            sessions: Sessions::new(),
            open: Vec::new(),
            questions: Questions::default(),
            own: HashMap::new(),
            node_is_lost: false,
        }
    }

    /// Whether all that the client has asked is answered.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a lost link can be made good: a daemon of an earlier version cannot tell where the client was.
    pub(super) fn can_go_on(&self) -> bool {
        self.can_go_on || self.hello.is_none()
    }

    /// A line of the client: what the daemon is sent. `key` makes a key that nothing else has, for what needs one.
    pub(super) fn client_said(&mut self, line: Bytes, key: impl FnOnce() -> String, out: &mut Out) {
        if !self.has_begun() && !begins(&line) {
            // A daemon would take it for the end of the link.
            out.to_client.extend(too_early(&line));
            return;
        }
        match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                let (id, kind) = (id.to_owned(), Kind::of(&method));
                let session = text(params, "sessionId");
                let line = self.prepared(kind, params, line.clone(), key);
                self.opens(kind, session.as_deref());
                let (is_withdrawn, is_again, losses) = (false, false, 0);
                self.open.push(Open {
                    id,
                    kind,
                    session,
                    line: line.clone(),
                    is_withdrawn,
                    is_again,
                    losses,
                });
                out.to_daemon.push(line);
                return;
            }
            Ok(Message::Notification { method, params }) if method == method::CANCEL_REQUEST => {
                let id = params.and_then(|params| RawId::new(member(params, "requestId")?));
                let id = id.map(|id| id.to_owned());
                self.withdraws(|open| Some(&open.id) == id.as_ref());
            }
            Ok(Message::Notification { method, params }) if method == method::SESSION_CANCEL => {
                let session = text(params, "sessionId");
                // Those behind it wait in line, where a cancel leaves them.
                let runs = self.open.iter().find(|open| open.kind == Kind::Prompt && open.session == session);
                let id = runs.map(|runs| runs.id.clone());
                self.withdraws(|open| Some(&open.id) == id.as_ref());
            }
            Ok(Message::Response { id: Some(id), .. }) if let Some(id) = id.as_u64() => {
                // What was withdrawn over a loss is over, and needs no answer.
                if let Some(at_daemon) = self.questions.answer(id, &line) {
                    out.to_daemon.push(with_id(&line, at_daemon));
                }
                return;
            }
            _ => {}
        }
        out.to_daemon.push(line);
    }

    /// Returns true once the client has initialized, or is about to.
    fn has_begun(&self) -> bool {
        self.hello.is_some() || self.open.iter().any(|open| open.kind == Kind::Initialize)
    }

    /// A request as the daemon is sent it.
    fn prepared(
        &mut self,
        kind: Kind,
        params: Option<&RawValue>,
        line: Bytes,
        key: impl FnOnce() -> String,
    ) -> Bytes {
        match kind {
            Kind::Initialize => {
                let capabilities = params.and_then(|params| member(params, "clientCapabilities"));
                self.client_keeps_cursors = own(capabilities, "cursors").is_some_and(|it| it.get() == "true");
                let cursors = ["clientCapabilities", "_meta", META, "cursors"];
                let line = with(line, "params", &cursors, "true");
                with(line, "params", &["_meta", META, "secret"], &format!("\"{}\"", self.secret))
            }
            Kind::New | Kind::Prompt if own(params, "idempotencyKey").is_none() => {
                let key = format!("\"{}\"", key());
                with(line, "params", &["_meta", META, "idempotencyKey"], &key)
            }
            _ => line,
        }
    }

    fn opens(&mut self, kind: Kind, session: Option<&str>) {
        if let (Kind::Load, Some(session)) = (kind, session) {
            self.sessions.entry(session.to_owned()).or_default().asks_replay();
        }
    }

    fn withdraws(&mut self, which: impl Fn(&Open) -> bool) {
        self.open.iter_mut().filter(|open| which(open)).for_each(|open| open.is_withdrawn = true);
    }

    /// A line of the daemon: what the client is sent.
    pub(super) fn daemon_said(&mut self, line: Bytes, out: &mut Out) {
        match Message::parse(&line) {
            Ok(Message::Response { id: Some(id), outcome }) => {
                let id = id.to_owned();
                match own_id(&id).and_then(|own| self.own.remove(&own)) {
                    Some(own) => self.own_answered(own, outcome, out),
                    None => self.answered(&id, outcome, line.clone(), out),
                }
            }
            Ok(Message::Request { id, params, .. }) => self.asked(id.as_u64(), params, &line, out),
            Ok(Message::Notification { method, params }) => self.told(&method, params, &line, out),
            _ => out.to_client.push(line),
        }
    }

    /// A request of the client is answered.
    fn answered(&mut self, id: &OwnedId, outcome: Result<&RawValue, &RawValue>, line: Bytes, out: &mut Out) {
        let place = self.open.iter().position(|open| open.id == *id);
        let lost_node = outcome.err().and_then(lost_node);
        if let (Some(place), Some(why)) = (place, lost_node)
            && self.asks_node_again(place)
        {
            out.lost = Some(Loss { why, retry: None });
            return;
        }
        let result = outcome.ok();
        let Some(open) = place.map(|place| self.open.remove(place)) else {
            return out.to_client.push(line);
        };
        let line = match (open.kind, result, open.session.as_deref()) {
            (Kind::Initialize, Some(result), _) => {
                let offers = member(result, "agentCapabilities");
                self.can_go_on = own(offers, "cursors").is_some();
                self.hello = Some(open.line);
                out.is_back = true;
                line
            }
            (Kind::New | Kind::Fork, Some(result), _) => {
                let created = text(Some(result), "sessionId");
                if let Some(created) = created {
                    self.sessions.entry(created).or_default().attached(number(own(Some(result), "seq")));
                }
                self.without_seq(line, result)
            }
            (Kind::Load | Kind::Resume, Some(result), Some(session)) => {
                match own(Some(result), "resumable") {
                    Some(_not) => drop(self.sessions.remove(session)),
                    None => {
                        let attached = self.sessions.entry(session.to_owned()).or_default();
                        attached.attached(number(own(Some(result), "seq")));
                    }
                }
                line
            }
            (Kind::Leave, Some(_), Some(session)) => {
                self.sessions.remove(session);
                line
            }
            (Kind::Load, None, Some(session)) => {
                // What was attached before still is.
                if self.sessions.get_mut(session).is_some_and(|session| !session.is_not_replayed()) {
                    self.sessions.remove(session);
                }
                line
            }
            _ => line,
        };
        out.to_client.push(line);
        if let Some(session) = open.session {
            self.release(&session, out);
        }
    }

    fn without_seq(&self, line: Bytes, result: &RawValue) -> Bytes {
        match self.client_keeps_cursors {
            true => line,
            false => without(&line, Some(result), &["_meta", META, "seq"]).map_or(line, |(_, line)| line),
        }
    }

    /// The client is asked something.
    fn asked(&mut self, id: Option<u64>, params: Option<&RawValue>, line: &Bytes, out: &mut Out) {
        let Some(id) = id else { return out.to_client.push(line.clone()) };
        let (position, line) = self.positioned(params, line);
        let session = text(params, "sessionId").unwrap_or_default();
        if let (Some(position), Some(session)) = (position, self.sessions.get_mut(&session)) {
            session.saw(position.seq);
        }
        match self.questions.ask(&session, position.map(|position| position.seq), id) {
            Asked::Before => {}
            Asked::Anew(own) => out.to_client.push(with_id(&line, own)),
            Asked::Answered(answer) => out.to_daemon.push(with_id(&answer, id)),
        }
    }

    /// The client is told something.
    fn told(&mut self, method: &str, params: Option<&RawValue>, line: &Bytes, out: &mut Out) {
        let about = || params.and_then(|params| RawId::new(member(params, "requestId")?)?.as_u64());
        match method {
            method::CANCEL_REQUEST => {
                let own = about().and_then(|id| self.questions.withdraw(id));
                out.to_client.extend(own.map(|own| with_id(line, own)));
            }
            ANSWER_REFUSED => {
                let own = about().and_then(|id| self.questions.refused(id));
                out.to_client.push(own.map_or_else(|| line.clone(), |own| with_id(line, own)));
            }
            CLOSED => self.closed(params, line, out),
            _ => self.happened(method, params, line, out),
        }
    }

    /// The daemon closes a stream: for a moment, or for good.
    fn closed(&mut self, params: Option<&RawValue>, line: &Bytes, out: &mut Out) {
        if text(params, "reason").as_deref() == Some("handover") {
            let retry = params.and_then(|params| member(params, "retryMs")).map(|ms| number(Some(ms)));
            let why = "it is handed over to another process".to_owned();
            out.lost = Some(Loss { why, retry: retry.map(Duration::from_millis) });
            return;
        }
        let session = text(params, "sessionId");
        if text(params, "reason").as_deref() == Some("unreachable")
            && session.as_deref().is_some_and(|session| self.waits_for_node(session))
        {
            let why = text(params, "detail").unwrap_or_default();
            self.node_is_lost = true;
            out.lost = Some(Loss { why, retry: None });
            return;
        }
        if let Some(session) = session {
            self.sessions.remove(&session);
        }
        out.to_client.push(line.clone());
    }

    /// An event of a session.
    fn happened(&mut self, method: &str, params: Option<&RawValue>, line: &Bytes, out: &mut Out) {
        let (position, line) = self.positioned(params, line);
        let is_end = method == method::SESSION_ENDED;
        let name = text(params, if is_end { "session_id" } else { "sessionId" });
        let Some(name) = name else { return out.to_client.push(line) };
        let waits = is_end && self.is_owed(&name);
        let Some(position) = position else {
            out.to_client.push(line);
            if is_end {
                self.sessions.remove(&name);
            }
            return;
        };
        let Some(session) = self.sessions.get_mut(&name) else { return out.to_client.push(line) };
        if waits && !session.knows(position.seq) {
            return session.hold(position.seq, line);
        }
        out.to_client.extend(session.take(position, line));
        if is_end {
            self.ended(&name);
        }
    }

    /// A client is not attached to a run that is over; a request that is open may attach it to the next one.
    fn ended(&mut self, name: &str) {
        let joins = |open: &Open| {
            matches!(open.kind, Kind::Load | Kind::Resume) && open.session.as_deref() == Some(name)
        };
        if !self.open.iter().any(joins) {
            self.sessions.remove(name);
        }
    }

    /// Whether prompts of a session that were sent again are not answered yet: their answers come before its end.
    fn is_owed(&self, session: &str) -> bool {
        let owes = |open: &&Open| open.is_again && open.kind == Kind::Prompt;
        self.open.iter().filter(owes).any(|open| open.session.as_deref() == Some(session))
    }

    /// Tells the end of a session, once nothing is owed before.
    fn release(&mut self, name: &str, out: &mut Out) {
        if self.is_owed(name) {
            return;
        }
        if let Some(line) = self.sessions.get_mut(name).and_then(Session::release) {
            out.to_client.push(line);
            self.ended(name);
        }
    }

    /// Which event a line is of, and the line as the client is sent it.
    fn positioned(&self, params: Option<&RawValue>, line: &Bytes) -> (Option<Position>, Bytes) {
        if self.client_keeps_cursors {
            let position = own(params, "event").and_then(|event| serde_json::from_str(event.get()).ok());
            return (position, line.clone());
        }
        match without(line, params, &["_meta", META, "event"]) {
            Some((value, line)) => (serde_json::from_str(&value).ok(), line),
            None => (None, line.clone()),
        }
    }

    /// What a request is answered with that will not be answered otherwise.
    fn fail(id: &OwnedId, message: &str) -> Bytes {
        let mut line = BytesMut::new();
        write_error(&mut line, id.as_id(), codes::INTERNAL_ERROR, message, None);
        line.freeze()
    }

    /// The client need not answer what it was asked under this id.
    fn withdrawn(id: u64) -> Bytes {
        let mut line = BytesMut::new();
        let params = format!("{{\"requestId\":{id}}}");
        write_notification(&mut line, method::CANCEL_REQUEST, Some(params.as_bytes()));
        line.freeze()
    }
}

/// Returns true for the request that a connection begins with.
fn begins(line: &[u8]) -> bool {
    matches!(Message::parse(line), Ok(Message::Request { method, .. }) if method == method::INITIALIZE)
}

/// The answer to a line before `initialize`, as a daemon would give it; `None` for what has no answer.
fn too_early(line: &[u8]) -> Option<Bytes> {
    let (id, code, message) = match Message::parse(line) {
        Ok(Message::Request { id, method, .. }) => {
            let message = format!("{method} before initialize: initialize the connection first");
            (id, codes::INVALID_REQUEST, message)
        }
        Ok(_) => return None,
        Err(malformed) => (malformed.answer_id(), malformed.code()?, malformed.to_string()),
    };
    let mut answer = BytesMut::new();
    write_error(&mut answer, id, code, &message, None);
    Some(answer.freeze())
}

/// The text of an id, if it may be one of the front end's own.
fn own_id(id: &OwnedId) -> Option<String> {
    serde_json::from_str(id.as_raw()).ok()
}

fn number(raw: Option<&RawValue>) -> u64 {
    raw.and_then(|raw| u64::deserialize(raw).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
