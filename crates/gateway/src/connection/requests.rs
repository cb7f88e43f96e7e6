//! The requests of a client: which are acpd's own, which belong to a session, which to the agent.

use super::access::Permitted;
use super::open_request::OpenRequest;
use super::{Attaching, Change, Connection, Done, answer_line, session_id};
use crate::capabilities::{ClientCapabilities, initialize_result, watcher_result};
use crate::identity::{Scope, SessionPermit};
use crate::methods::{Handler, OfConnection};
use crate::viewer::{Answer, Attachment};
use crate::wire_error::wire_error;
use acpd_host::{
    AgentHandle, AgentRef, Creator, Host, HostError, NewSession, Reason, Reply, ReplyTo, method,
};
use acpd_record::SessionId;
use acpd_wire::{OwnedId, codes};
use bytes::Bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request that the client may make.
pub(super) struct Call<'a> {
    pub(super) id: OwnedId,
    pub(super) method: &'a str,
    pub(super) params: Option<Bytes>,
    pub(super) open: &'a OpenRequest,
    pub(super) permitted: Permitted,
}

impl Connection {
    /// Starts the work for a request. An error here is the request's answer.
    pub(super) async fn dispatch(&mut self, handler: Handler, call: Call<'_>) -> Result<(), HostError> {
        use OfConnection::{Initialize, List, New, NotServed};
        let is_early = self.initialized.is_none();
        if is_early && !matches!(handler, Handler::Connection(Initialize | NotServed)) {
            let message = format!("{} before initialize: initialize the connection first", call.method);
            self.refuse_open(call.id, codes::INVALID_REQUEST, &message);
            return Ok(());
        }
        let Call { id, method, params, open, permitted } = call;
        match handler {
            Handler::Connection(Initialize) => self.initialize(id, params),
            Handler::Connection(New) => {
                self.create_session(id, Origin::New, params, permitted.run);
                Ok(())
            }
            Handler::Connection(List) => self.list(id, params),
            Handler::Connection(NotServed) => Err(HostError::MethodNotFound { method: method.to_owned() }),
            Handler::Session(handler) => {
                self.of_session(handler, Call { id, method, params, open, permitted }).await
            }
            Handler::Agent => match session_id(params.as_ref()) {
                Some(session) => self.session_request(id, method, params, &session?, open).await,
                None => self.agent_request(id, method, params),
            },
        }
    }

    pub(super) fn refuse_open(&mut self, id: OwnedId, code: i64, message: &str) {
        let error = crate::WireError::Own { code, message: message.to_owned(), data: None };
        self.answer_error(self.outbox.clone(), id, &error);
    }

    fn initialize(&mut self, id: OwnedId, params: Option<Bytes>) -> Result<(), HostError> {
        let invalid = |message: &str| HostError::InvalidParams { message: message.to_owned() };
        let params: Value = serde_json::from_slice(params.as_deref().unwrap_or(b"{}"))
            .map_err(|_| invalid("params: an object is required"))?;
        // Any number is an offer to negotiate; acpd speaks 1 and says so (IN-1).
        if !params["protocolVersion"].is_u64() {
            return Err(invalid(
                "protocolVersion: the latest version that the client speaks is required, as an integer",
            ));
        }
        let params = Arc::new(params);
        let (host, name, outbox) = (self.host.clone(), self.options.agent.clone(), self.outbox.clone());
        // A second `initialize` is negotiated like the first, with the same agent (IN-2).
        let known = self.agent.as_ref().and_then(AgentRef::upgrade);
        let session_stop = self.options.session_stop;
        self.initializing = true;
        let only_watches = !self.options.identity.may(Scope::Control);
        self.tasks.spawn(async move {
            let client = ClientCapabilities::read(&params);
            let initialized = if only_watches {
                // Nothing is started for it.
                host.agents()
                    .known(&name)
                    .map(|known| (None, watcher_result(&name, known.as_deref(), &client, session_stop)))
            } else {
                let agent = match known {
                    Some(agent) => Ok(agent),
                    None => host.agents().connect(&name, None).await,
                };
                agent.map(|agent| {
                    let result = initialize_result(&agent, &client, session_stop);
                    (Some(agent), result)
                })
            };
            let (body, change) = match initialized {
                Ok((agent, result)) => {
                    (Ok(Bytes::from(result.to_string())), Change::Initialized { agent, params })
                }
                Err(error) => {
                    let told = Change::NotInitialized(wire_error(&error));
                    (Err(error), told)
                }
            };
            let _gone = outbox.send(answer_line(&id, &body)).await;
            Done { id: Some(id), change }
        });
        Ok(())
    }

    /// `session/new` and `session/fork`.
    pub(super) fn create_session(
        &mut self,
        id: OwnedId,
        origin: Origin,
        params: Option<Bytes>,
        permit: Option<SessionPermit>,
    ) {
        let cwd = working_directory(params.as_ref());
        let spare = self.take_spare(cwd.as_deref());
        let known = self.agent.clone();
        let (host, name, outbox) = (self.host.clone(), self.options.agent.clone(), self.outbox.clone());
        let (client, token) = (Arc::clone(&self.client.name), self.options.identity.name().cloned());
        let (creator, capabilities) = (Creator { client, token }, self.capabilities);
        self.tasks.spawn(async move {
            // What cannot be starts nothing.
            let checked = match &origin {
                Origin::New => host.check_new(params.as_ref()),
                Origin::Fork(source) => host.check_fork(source, &name, known.as_ref(), params.as_ref()).await,
            };
            let created = match checked {
                Ok(()) => create(&host, spare, (&name, cwd.as_deref()), origin, params, creator).await,
                Err(error) => Err((error, spare)),
            };
            // It is live now, or was refused.
            drop(permit);
            created_change(id, created, &outbox, capabilities).await
        });
    }

    /// A request for the session's agent. One right behind a load or resume waits for that.
    pub(super) async fn session_request(
        &mut self,
        id: OwnedId,
        method: &str,
        params: Option<Bytes>,
        session: &SessionId,
        open: &OpenRequest,
    ) -> Result<(), HostError> {
        if self.wait_behind(session, method, &params, &id, open) {
            return Ok(());
        }
        let handle = match self.host.session(session).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.not_live_error(session, error)),
        };
        // A session is used by whoever is attached to it (MC-4).
        let not_attached = || HostError::NotAttached { id: session.to_string() };
        let watched = self.viewers.get(session).ok_or_else(not_attached)?;
        if watched.live.as_ref().is_none_or(|live| live.began_after() != handle.began_after()) {
            // It has seen an earlier run, or the history; it is not there yet for this one.
            return Err(not_attached());
        }
        let slot = watched.viewer.reply_slot().await.map_err(|_| not_attached())?;
        let (written, answered) = oneshot::channel();
        let (keep, kept) = oneshot::channel();
        let (capabilities, answer_id, run) = (self.capabilities, id.clone(), handle.clone());
        let reply = ReplyTo::new(move |Reply { after, before, body }| {
            let body = body.map(|result| match capabilities.filter_result(&result) {
                std::borrow::Cow::Borrowed(_) => result,
                std::borrow::Cow::Owned(filtered) => filtered.into(),
            });
            let line = answer_line(&answer_id, &body);
            // In case the viewer leaves with the answer.
            let _gone = keep.send(line.clone());
            // What is said behind the end is no answer of the run's.
            let is_late = matches!(body, Err(HostError::SessionEnded { .. }));
            let mut answer = Answer::new(after, line).before(before);
            answer.delivery.written = Some(written);
            slot.fill(if is_late { answer } else { answer.of_run(answer_id, run) });
        });
        let client = self.client.clone();
        let request = handle.request(method.to_owned(), params, client, reply).await?;
        open.reached(handle.clone(), request);
        let outbox = self.outbox.about(session);
        self.tasks.spawn(async move {
            if answered.await.is_err() {
                let line = match kept.await {
                    Ok(line) => line,
                    // The session's task is gone without an answer; its end is the answer.
                    Err(_) => wire_error(&handle.ended_error().await).to_line(&id),
                };
                let _gone = outbox.send(line).await;
            }
            Done { id: Some(id), change: Change::None }
        });
        Ok(())
    }

    /// Why a session takes no request: what its load said, unless it was ended for good.
    fn not_live_error(&self, session: &SessionId, error: HostError) -> HostError {
        match error {
            HostError::SessionEnded { info, .. } if info.reason != Reason::Terminated => {
                let ended = || HostError::SessionEnded { id: session.to_string(), info };
                self.unresumable.get(session).cloned().unwrap_or_else(ended)
            }
            error => error,
        }
    }

    /// A request that belongs to no session, such as `authenticate`: passed to the agent as it is.
    fn agent_request(&mut self, id: OwnedId, method: &str, params: Option<Bytes>) -> Result<(), HostError> {
        let known = self.spare.clone().filter(|agent| !agent.is_gone());
        let known = known.or_else(|| self.agent.as_ref().and_then(AgentRef::upgrade));
        let lacks_logout = known.as_ref().is_some_and(|agent| !agent.info().has_logout());
        if method == method::LOGOUT && lacks_logout {
            return Err(HostError::MethodNotFound { method: method.to_owned() });
        }
        let (host, name, outbox) = (self.host.clone(), self.options.agent.clone(), self.outbox.clone());
        let method = method.to_owned();
        self.tasks.spawn(async move {
            let fresh = known.is_none();
            let agent = match known {
                Some(agent) => Ok(agent),
                None => host.agents().connect(&name, None).await,
            };
            let body = match &agent {
                Ok(agent) => match agent.request(&method, params).await {
                    Ok(answer) if answer.is_error => Err(HostError::Agent { error: answer.body }),
                    Ok(answer) => Ok(answer.body),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error.clone()),
            };
            let _gone = outbox.send(answer_line(&id, &body)).await;
            let change = match agent {
                Ok(agent) if fresh => Change::AgentStarted(agent),
                _ => Change::None,
            };
            Done { id: Some(id), change }
        });
        Ok(())
    }
}

/// How a session comes to be.
pub(super) enum Origin {
    New,
    /// With the history of this one.
    Fork(SessionId),
}

/// A session and where its viewer begins: after its initial events.
struct Created {
    new: NewSession,
    cursor: acpd_eventlog::Cursor,
    history_until: u64,
}

/// Creates a session, on the process that waits for one or on a new one. A failure gives the process back.
async fn create(
    host: &Host,
    spare: Option<AgentHandle>,
    (name, cwd): (&str, Option<&Path>),
    origin: Origin,
    params: Option<Bytes>,
    creator: Creator,
) -> Result<Created, (HostError, Option<AgentHandle>)> {
    // One whose entry has changed since gets no new session.
    let agent = match spare.filter(|agent| host.agents().still_offers(agent)) {
        Some(agent) => agent,
        None => host.agents().connect(name, cwd).await.map_err(|error| (error, None))?,
    };
    let created = match &origin {
        Origin::New => host.new_session(&agent, params, creator).await,
        Origin::Fork(source) => host.fork_session(source, &agent, params, creator).await,
    };
    let new = match created {
        Ok(new) => new,
        Err(error) => return Err((error, Some(agent))),
    };
    // A new session is seen from its beginning; the initial events of a fork are seen by loading it.
    let history_until = match origin {
        Origin::New => 0,
        Origin::Fork(_) => new.initial_events,
    };
    match host.cursor(new.session.id(), history_until).await {
        Ok(cursor) => Ok(Created { new, cursor, history_until }),
        Err(error) => {
            tracing::error!(%error, "a new session cannot be followed");
            Err((HostError::UnknownSession { id: new.session.id().to_string() }, None))
        }
    }
}

/// Answers the request that created a session, or says why there is none.
async fn created_change(
    id: OwnedId,
    created: Result<Created, (HostError, Option<AgentHandle>)>,
    outbox: &crate::Outbox,
    capabilities: ClientCapabilities,
) -> Done {
    let change = match created {
        Ok(Created { new, cursor, history_until }) => {
            let result = Bytes::copy_from_slice(&capabilities.filter_result(&new.result));
            // The client learns the session's id from it, so it cannot read the session's stream before.
            let mut answer = Answer::new(history_until, answer_line(&id, &Ok(result)));
            answer.delivery.on_connection = true;
            let session = new.session.id().clone();
            let attachment = Attachment { live: Some(new.session), cursor, history_until, answer };
            Change::Attached(Box::new(Attaching { id: session, attachment, unresumable: None, spare: None }))
        }
        Err((error, agent)) => {
            let _gone = outbox.send(answer_line(&id, &Err(error))).await;
            // A refused session says nothing against the process; the next attempt may follow a login.
            agent.map_or(Change::None, Change::Returned)
        }
    };
    Done { id: Some(id), change }
}

/// Where a process for this session starts. What is wrong with it is for `session/new` to say.
pub(super) fn working_directory(params: Option<&Bytes>) -> Option<PathBuf> {
    let params: Value = serde_json::from_slice(params?).ok()?;
    let cwd = PathBuf::from(params["cwd"].as_str()?);
    (cwd.is_absolute() && cwd.is_dir()).then_some(cwd)
}
