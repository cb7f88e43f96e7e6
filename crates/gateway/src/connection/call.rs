//! A request of the client on its way, in the form that it was read in.

use super::input::slice_of;
use crate::access::Refusal;
use crate::identity::SessionPermit;
use crate::methods::Method;
use acpd_host::{Found, SessionHandle, method};
use acpd_record::SessionId;
use acpd_wire::{OwnedId, member};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: OwnedId,
    /// The method as the client calls it.
    pub(super) name: String,
    pub(super) method: &'static Method,
    pub(super) params: Params,
    pub(super) held: Held,
}

/// What the shell has found out for a request, and keeps for the work.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The session that it is about.
    pub(super) found: Option<Found>,
    /// What it wants to use is beyond a limit of the client's token.
    pub(super) beyond: Option<Refusal>,
    /// Counts as a run until one has begun.
    pub(super) permit: Option<SessionPermit>,
}

/// The params of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Params {
    pub(super) raw: Option<Bytes>,
    session: Option<Result<SessionId, String>>,
    cwd: Option<PathBuf>,
}

impl Params {
    /// `works`: they may say where a session is to work.
    pub(super) fn read(line: &Bytes, params: Option<&RawValue>, works: bool) -> Self {
        let text = |name| serde_json::from_str::<String>(member(params?, name)?.get()).ok();
        let session = text("sessionId").map(|id| SessionId::parse(&id).ok_or(id));
        let cwd = works.then(|| text("cwd")).flatten().map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        Self { raw: params.map(|params| slice_of(line, params)), session, cwd }
    }

    /// `sessionId`, if it is a string: an id, or text that is the id of no session.
    pub(super) fn session(&self) -> Option<Result<&SessionId, &str>> {
        self.session.as_ref().map(|session| session.as_ref().map_err(String::as_str))
    }

    /// The session that is named, if there may be one.
    pub(super) fn known_session(&self) -> Option<&SessionId> {
        self.session()?.ok()
    }

    /// Where a session is to work. What is wrong with it is for `session/new` to say.
    pub(super) fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }
}

/// A request or a notification for the run of a session.
#[derive(Debug)]
pub(super) struct Message {
    /// None for a notification.
    pub(super) request: Option<OwnedId>,
    pub(super) session: SessionId,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
    /// It is a prompt that its client has withdrawn, and that may have begun on an earlier connection: what became of it is
    /// the answer.
    pub(super) is_withdrawn: bool,
    /// The run, once it was reached.
    pub(super) live: Option<SessionHandle>,
}

impl Message {
    pub(super) fn new(
        request: Option<OwnedId>,
        session: SessionId,
        method: String,
        params: Option<Bytes>,
    ) -> Self {
        Self { request, session, method, params, is_withdrawn: false, live: None }
    }

    /// Returns `true` for a prompt.
    pub(super) fn is_prompt(&self) -> bool {
        self.request.is_some() && self.method == method::SESSION_PROMPT
    }

    /// Returns `true` for a prompt that may have been sent on an earlier connection.
    pub(super) fn may_come_again(&self) -> bool {
        self.is_prompt() && self.params.as_deref().is_some_and(acpd_host::may_come_again)
    }
}
