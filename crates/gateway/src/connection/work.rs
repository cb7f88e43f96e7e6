//! What is done for a request beside everything else, each in a task of its own.
//!
//! Nothing is decided about the connection here: what comes of the work goes back to its core.

mod create;
mod join;

use super::call::{Call, Held};
use super::effects::Work;
use super::input::Outcome;
use super::tasks::{Done, Process};
use super::watching::write_answer;
use super::{Connection, answer_line, json};
use crate::capabilities::{ClientCapabilities, InitializeParams, initialize_result, watcher_result};
use crate::fleet::Fleet;
use crate::identity::Identity;
use crate::outbox::Outbox;
use crate::owed::Owing;
use crate::viewer::ViewerHandle;
use crate::wire_error::wire_error;
use acpd_api::SessionState;
use acpd_host::{
    AgentHandle, AgentRef, ClientRef, EndOutcome, EndRequest, Found, Host, HostError, Pending, Place, Reason,
    TerminatedBy, method,
};
use acpd_record::SessionId;
use bytes::Bytes;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::Instrument;

/// What comes of the work for a request: the answer, unless a viewer writes it or has written it, and the rest.
type Worked = (Option<Result<Bytes, HostError>>, Done);

/// The result of what has nothing to say.
const NOTHING: Bytes = Bytes::from_static(b"{}");

/// acpd's own part of an answer.
#[derive(Serialize)]
struct OwnMeta<T> {
    #[serde(rename = "sandboxagent.dev")]
    own: T,
}

/// What work knows of its connection, as it was when the work began.
struct Job {
    owing: Owing,
    params: Option<Bytes>,
    host: Host,
    identity: Identity,
    /// The name of the agent that sessions run on.
    agent: String,
    /// The process that the client knows it from.
    known: Option<AgentRef>,
    client: ClientRef,
    capabilities: ClientCapabilities,
    outbox: Outbox,
    fleet: Option<Fleet>,
}

impl Connection {
    /// Begins the work for a request.
    pub(super) fn start(&mut self, work: Work, call: Call) {
        let Call { id, name, method, params, held: Held { found, permit, beyond: _ } } = call;
        let outbox = match params.known_session() {
            Some(session) if method.may_name_a_session() && !matches!(work, Work::Create(_)) => {
                self.outbox.about(session)
            }
            _ => self.outbox.clone(),
        };
        let cwd = params.cwd().filter(|cwd| cwd.is_dir()).map(Path::to_owned);
        let job = Job {
            owing: self.requests.owed.to(id.clone()),
            params: params.raw,
            host: self.host.clone(),
            identity: self.options.identity.clone(),
            agent: self.options.agent.clone(),
            known: self.processes.known.clone(),
            client: self.client.clone(),
            capabilities: self.capabilities,
            outbox,
            fleet: self.options.fleet.clone(),
        };
        let (owing, outbox) = (job.owing.clone(), job.outbox.clone());
        let work = self.work(work, job, (name, cwd, found));
        self.tasks.spawn(Some(&id.clone()), async move {
            let (answer, done) = work.await;
            // It is live now, or will not be.
            drop(permit);
            if let Some(answer) = answer {
                let _gone = outbox.answer(&owing, answer_line(&id, &answer)).await;
            }
            Done { request: Some(id), ..done }
        });
    }

    fn work(
        &mut self,
        work: Work,
        job: Job,
        (method, cwd, found): (String, Option<PathBuf>, Option<Found>),
    ) -> Pending<'static, Worked> {
        match work {
            Work::Initialize { params, only_watches } => {
                let session_stop = self.options.session_stop;
                Box::pin(job.initialize(params, only_watches, session_stop))
            }
            Work::Create(source) => {
                let spare = self.processes.take_spare(cwd.as_deref());
                let place = job.place(cwd, spare);
                Box::pin(job.create(source, place))
            }
            Work::List(page) => Box::pin(async move {
                let fleet = job.fleet.as_ref();
                answer(super::listing::list(&job.host, fleet, &job.identity, page).await)
            }),
            Work::Status(session) => Box::pin(async move { answer(job.status(&session, found).await) }),
            Work::Join { session, replay, only_watches } => {
                // Before anything else is read: an end that comes next stops it.
                let attempt = job.host.attempt(&session);
                let spare = self.processes.take_spare(cwd.as_deref());
                let place = (!only_watches).then(|| job.place(cwd, spare));
                let span = acpd_host::session_span(&session);
                Box::pin(job.join(session, attempt, replay, place).instrument(span))
            }
            Work::End(session, request) => {
                Box::pin(job.end(self.watching.viewer(&session), session, request))
            }
            Work::Delete(session) => Box::pin(job.delete(self.watching.viewer(&session), session)),
            Work::CheckItIsThere(session) => {
                Box::pin(async move { answer(job.host.inspect(&session, None).await.map(|_| NOTHING)) })
            }
            Work::AskAgent => Box::pin(job.ask_agent(self.processes.any(), method)),
        }
    }
}

fn answer(result: Result<Bytes, HostError>) -> Worked {
    (Some(result), Done::new(None, Outcome::Answered))
}

impl Job {
    fn place(&self, cwd: Option<PathBuf>, spare: Option<AgentHandle>) -> Place {
        Place { agent: self.agent.clone(), known: self.known.clone(), cwd, spare }
    }

    /// Its client is told by the answer alone.
    async fn delete(self, viewer: Option<ViewerHandle>, session: SessionId) -> Worked {
        if let Some(viewer) = &viewer {
            viewer.deletes(true);
        }
        let deleted = self.host.delete_session(&session, &self.client.name).await;
        if let Some(viewer) = viewer.filter(|_| deleted.is_err()) {
            viewer.deletes(false);
        }
        answer(deleted.map(|()| NOTHING))
    }

    /// A second `initialize` is negotiated like the first, with the same agent (IN-2).
    async fn initialize(
        self,
        params: Arc<InitializeParams>,
        only_watches: bool,
        session_stop: bool,
    ) -> Worked {
        let (agents, client) = (self.host.agents(), params.capabilities());
        let done = |process| Done { process, ..Done::new(None, Outcome::Initialized) };
        let initialized = if only_watches {
            // Nothing is started for it.
            let known = agents.known(&self.agent);
            known.map(|known| {
                (json(&watcher_result(&self.agent, known.as_deref(), &client, session_stop)), done(None))
            })
        } else {
            let known = self.known.as_ref().and_then(AgentRef::upgrade);
            let is_known = known.is_some();
            let agent = match known.or_else(|| self.process_of(&params.joins()?)) {
                Some(agent) => Ok(agent),
                None => self.host.connect(&self.agent, None).await,
            };
            agent.map(|agent| {
                let result = json(&initialize_result(&agent, &client, session_stop));
                (result, done((!is_known).then_some(Process::Started(agent))))
            })
        };
        match initialized {
            Ok((result, done)) => (Some(Ok(result)), done),
            Err(error) => {
                let outcome = Outcome::NotInitialized(wire_error(&error));
                (Some(Err(error)), Done::new(None, outcome))
            }
        }
    }

    /// The process of a live session of the agent that the caller may see. One that ends before it is joined is activated
    /// then, like any other.
    fn process_of(&self, session: &SessionId) -> Option<AgentHandle> {
        let live = self.host.live(session)?;
        let is_seen = self.identity.sees(live.created_by().map(|creator| &**creator));
        let process = live.agent().upgrade().filter(|agent| agent.name() == self.agent);
        process.filter(|_| is_seen)
    }

    /// Side-effect free (SE-19): `open` says that the session is live, not that this client is attached to it.
    async fn status(&self, session: &SessionId, found: Option<Found>) -> Result<Bytes, HostError> {
        #[derive(Serialize)]
        struct Status<T> {
            status: &'static str,
            #[serde(rename = "_meta")]
            meta: OwnMeta<T>,
        }
        let mut summary = self.host.inspect(session, found).await?;
        summary.session.history.node = self.fleet.as_ref().map(Fleet::here);
        let status = if summary.session.state == SessionState::Ended { "saved" } else { "open" };
        Ok(json(&Status { status, meta: OwnMeta { own: summary.meta() } }))
    }

    async fn end(self, viewer: Option<ViewerHandle>, session: SessionId, request: EndRequest) -> Worked {
        let ended = self.host.end_session(&session, request, &self.client.name).await;
        let after = ended.as_ref().map_or(0, |outcome| outcome.after);
        let body = ended.map(|outcome| match request {
            EndRequest::Terminate => json(&Terminated::of(&outcome)),
            EndRequest::Close | EndRequest::Shutdown | EndRequest::Fence | EndRequest::Supersede => NOTHING,
        });
        // After the end was told: the last event precedes the answer (contract 1.1).
        let line = answer_line(&self.owing.id, &body);
        write_answer(&self.outbox, viewer.as_ref(), self.owing, after, line).await;
        (None, Done::new(None, Outcome::Answered))
    }

    /// `known`: a process that may be asked; without one, it has to be started.
    async fn ask_agent(self, known: Option<AgentHandle>, method: String) -> Worked {
        let is_new = known.is_none();
        let agent = match known {
            Some(agent) if method == method::LOGOUT && !agent.info().has_logout() => {
                return answer(Err(HostError::MethodNotFound { method }));
            }
            Some(agent) => agent,
            None => match self.host.connect(&self.agent, None).await {
                Ok(agent) => agent,
                Err(error) => return answer(Err(error)),
            },
        };
        let body = match agent.request(&method, self.params).await {
            Ok(answer) if answer.is_error => Err(HostError::Agent { error: answer.body }),
            Ok(answer) => Ok(answer.body),
            Err(error) => Err(error),
        };
        let process = is_new.then_some(Process::Started(agent));
        (Some(body), Done { process, ..Done::new(None, Outcome::Answered) })
    }
}

/// The answer to a terminate.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Terminated<'a> {
    terminated: bool,
    reason: Reason,
    terminated_by: &'a TerminatedBy,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already_ended: bool,
}

impl<'a> Terminated<'a> {
    fn of(outcome: &'a EndOutcome) -> Self {
        let info = &outcome.info;
        // Another end may have been on its way already.
        let already_ended = outcome.already || info.reason != Reason::Terminated;
        Self { terminated: true, reason: info.reason, terminated_by: &info.terminated_by, already_ended }
    }
}
