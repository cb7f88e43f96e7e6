//! What a client asks of a session right behind its `session/load` or `session/resume`, before that is answered: it
//! waits for it, in its order (contract 7.3).
//!
//! Invariant: nothing waits longer than the load or resume takes, and what waits counts as an open request.

use super::open_request::OpenRequest;
use super::tasks::Asking;
use super::{Change, Connection, Done, answer_line};
use crate::wire_error::wire_error;
use acpd_host::{HostError, method};
use acpd_record::SessionId;
use acpd_wire::OwnedId;
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Something that waits for a session to be joined.
pub(super) struct Waiting {
    session: SessionId,
    method: String,
    params: Option<Bytes>,
    /// None for a notification.
    request: Option<(OwnedId, OpenRequest)>,
}

impl Connection {
    /// Keeps a request for a session that is being joined; gives it back if none is.
    pub(super) fn wait_behind(
        &mut self,
        session: &SessionId,
        method: &str,
        params: &Option<Bytes>,
        id: &OwnedId,
        open: &OpenRequest,
    ) -> bool {
        let waits = self.is_joining(session);
        if waits {
            let request = Some((id.clone(), open.clone()));
            self.keep_waiting(session, method, params.clone(), request);
        }
        waits
    }

    /// Keeps a notification behind the requests of its session that wait.
    pub(super) fn notify_behind(
        &mut self,
        session: &SessionId,
        method: &str,
        params: &Option<Bytes>,
    ) -> bool {
        let waits = self.waiting.iter().any(|waiting| waiting.session == *session);
        if waits {
            self.keep_waiting(session, method, params.clone(), None);
        }
        waits
    }

    fn keep_waiting(
        &mut self,
        session: &SessionId,
        method: &str,
        params: Option<Bytes>,
        request: Option<(OwnedId, OpenRequest)>,
    ) {
        let (session, method) = (session.clone(), method.to_owned());
        self.waiting.push_back(Waiting { session, method, params, request });
    }

    fn is_joining(&self, session: &SessionId) -> bool {
        self.joining.values().any(|joining| joining == session)
    }

    /// Takes back a request that waits: true if it was one.
    pub(super) fn withdraw_waiting(&mut self, id: &OwnedId) -> bool {
        let is_it = |waiting: &Waiting| waiting.request.as_ref().is_some_and(|(waits, _)| waits == id);
        let place = self.waiting.iter().position(is_it);
        let Some(Waiting { session, method, request: Some((id, _)), .. }) =
            place.and_then(|place| self.waiting.remove(place))
        else {
            return false;
        };
        let body = match method.as_str() {
            method::SESSION_PROMPT => Ok(Bytes::from_static(br#"{"stopReason":"cancelled"}"#)),
            _ => Err(HostError::RequestCancelled),
        };
        let outbox = self.outbox.about(&session);
        self.tasks.spawn(async move {
            let _gone = outbox.send(answer_line(&id, &body)).await;
            Done { id: Some(id), change: Change::None }
        });
        true
    }

    /// Passes on what waits no more, in its order.
    pub(super) async fn pass_on_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            if self.is_joining(&waiting.session) {
                self.waiting.push_back(waiting);
                continue;
            }
            let Waiting { session, method, params, request } = waiting;
            match request {
                Some((id, open)) => {
                    let outbox = self.outbox.about(&session);
                    self.tasks.are_for(Some(Asking { id: id.clone(), outbox, initializes: false }));
                    let passing = self.session_request(id.clone(), &method, params, &session, &open);
                    // A panic is this request's, and of no other that waits.
                    let passed = AssertUnwindSafe(passing).catch_unwind().await;
                    let passed = passed.unwrap_or(Err(HostError::Broken));
                    if let Err(error) = passed {
                        self.answer_error(self.outbox.about(&session), id, &wire_error(&error));
                    }
                }
                None => self.notify_session(&session, &method, params).await,
            }
            self.tasks.are_for(None);
        }
    }
}
