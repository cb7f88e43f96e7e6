//! The lifecycle of sessions, as acpd serves it itself (contract 1): list, status, load, resume, close, delete,
//! terminate, detach.

use super::access::Permitted;
use super::requests::{Call, Origin, working_directory};
use super::{Attaching, Change, Connection, Done, answer_line, session_id, write_answer};
use crate::identity::{Scope, SessionPermit};
use crate::methods::OfSession;
use crate::outbox::Outbox;
use crate::viewer::{Answer, Attachment};
use acpd_host::{
    Activated, AgentHandle, AgentRef, Attached, Attempt, EndRequest, Found, Host, HostError, META, Reason,
    SessionHandle,
};
use acpd_record::{Json, LifecycleState, SessionId, TranscriptFacts};
use acpd_wire::OwnedId;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

impl Connection {
    /// Starts the work for a request to a session. An error here is the request's answer.
    pub(super) async fn of_session(&mut self, handler: OfSession, call: Call<'_>) -> Result<(), HostError> {
        let Call { id, method, params, open, permitted: Permitted { run: permit, found } } = call;
        let session = session_id(params.as_ref()).ok_or_else(|| HostError::InvalidParams {
            message: "sessionId: the id of a session is required, as a string".to_owned(),
        })?;
        let session = match session {
            // What is not there is as good as deleted (SE-16).
            Err(HostError::UnknownSession { .. }) if handler == OfSession::Delete => {
                self.answer_with(id, self.outbox.clone(), async { Ok((0, json!({}))) });
                return Ok(());
            }
            session => session?,
        };
        match handler {
            OfSession::Status => self.status(id, session, found),
            OfSession::Load => return self.take_part(id, true, session, params, permit),
            OfSession::Resume => return self.take_part(id, false, session, params, permit),
            OfSession::Fork => self.create_session(id, Origin::Fork(session), params, permit),
            OfSession::Close => self.end(id, session, EndRequest::Close),
            OfSession::Terminate => self.end(id, session, EndRequest::Terminate),
            OfSession::Delete => self.delete(id, session),
            OfSession::Detach => self.detach(id, session).await,
            OfSession::Run => return self.session_request(id, method, params, &session, open).await,
        }
        Ok(())
    }

    /// Side-effect free (SE-19): `open` is live for anybody, which says nothing of being attached.
    fn status(&mut self, id: OwnedId, session: SessionId, found: Option<Found>) {
        let (host, outbox) = (self.host.clone(), self.outbox.about(&session));
        self.answer_with(id, outbox, async move {
            let summary = host.inspect(&session, found).await?;
            let open = summary.state != acpd_host::SessionState::Ended;
            let status = if open { "open" } else { "saved" };
            Ok((0, json!({"status": status, "_meta": {META: summary.meta()}})))
        });
    }

    fn end(&mut self, id: OwnedId, session: SessionId, request: EndRequest) {
        let (host, client) = (self.host.clone(), Arc::clone(&self.client.name));
        let (outbox, viewer) = (self.outbox.about(&session), self.viewer_of(&session));
        self.tasks.spawn(async move {
            let ended = host.end_session(&session, request, &client).await;
            let (after, body) = match ended {
                Ok(outcome) => {
                    let mut result = json!({});
                    if request == EndRequest::Terminate {
                        let info = &outcome.info;
                        result = json!({
                            "terminated": true, "reason": info.reason, "terminatedBy": info.terminated_by,
                        });
                        // Another end may have been on its way already.
                        if outcome.already || info.reason != Reason::Terminated {
                            result["alreadyEnded"] = json!(true);
                        }
                    }
                    (outcome.after, Ok(Bytes::from(result.to_string())))
                }
                Err(error) => (0, Err(error)),
            };
            // After the end was told: the last event precedes the answer (contract 1.1).
            write_answer(&outbox, viewer.as_ref(), after, answer_line(&id, &body)).await;
            Done { id: Some(id), change: Change::None }
        });
    }

    fn delete(&mut self, id: OwnedId, session: SessionId) {
        let (host, client) = (self.host.clone(), Arc::clone(&self.client.name));
        self.unresumable.remove(&session);
        self.answer_with(id, self.outbox.about(&session), async move {
            host.delete_session(&session, &client).await?;
            Ok((0, json!({})))
        });
    }

    async fn detach(&mut self, id: OwnedId, session: SessionId) {
        let Some(watched) = self.viewers.get_mut(&session) else {
            let (host, outbox) = (self.host.clone(), self.outbox.about(&session));
            // Leaving what one is not attached to is no error, as long as it is there.
            self.answer_with(id, outbox, async move {
                Ok((0, host.inspect(&session, None).await.map(|_| json!({}))?))
            });
            return;
        };
        // The viewer stays, at rest: what the client asked before, and asks when it is back, keeps its order.
        watched.live = None;
        let line = answer_line(&id, &Ok(Bytes::from_static(b"{}")));
        let left = watched.viewer.leave(line.clone()).await;
        let outbox = self.outbox.about(&session);
        self.tasks.spawn(async move {
            let written = match left {
                Ok(told) => told.await.is_ok(),
                Err(_gone) => false,
            };
            if !written {
                let _gone = outbox.send(line).await;
            }
            Done { id: Some(id), change: Change::None }
        });
    }

    /// `session/load` and `session/resume`.
    fn take_part(
        &mut self,
        id: OwnedId,
        replay: bool,
        session: SessionId,
        params: Option<Bytes>,
        permit: Option<SessionPermit>,
    ) -> Result<(), HostError> {
        self.joining.insert(id.clone(), session.clone());
        // Before anything else is read: an end that comes next stops it.
        let attempt = self.host.attempt(&session);
        let cwd = working_directory(params.as_ref());
        let spare = self.take_spare(cwd.as_deref());
        let known = self.agent.clone();
        let (host, name, outbox) =
            (self.host.clone(), self.options.agent.clone(), self.outbox.about(&session));
        let (client, capabilities) = (Arc::clone(&self.client.name), self.capabilities);
        let only_watches = !self.options.identity.may(Scope::Control);
        self.tasks.spawn(async move {
            let (joined, spare) = if only_watches {
                (watch(&host, &session).await, spare)
            } else {
                let on = On { agent: &name, known, cwd: cwd.as_deref(), spare };
                join(&host, attempt, on, &session, params, &client).await
            };
            drop(permit);
            let shown = match joined {
                Ok(joined) => Ok((Some(joined), None)),
                // The history can always be read (SE-6); what cannot go on says why.
                Err(error) if replay && is_readable(&error) => Ok((None, Some(error))),
                Err(error) => Err(error),
            };
            let attachment = match shown {
                Ok((joined, unresumable)) => show(&host, &session, joined, unresumable, replay).await,
                Err(error) => Err(error),
            };
            let change = match attachment {
                Ok((mut parts, result)) => {
                    let result = Bytes::from(serde_json::to_vec(&result).expect("it is JSON"));
                    let result = Bytes::copy_from_slice(&capabilities.filter_result(&result));
                    parts.attachment.answer.delivery.line = answer_line(&id, &Ok(result));
                    parts.spare = spare;
                    Change::Attached(Box::new(parts))
                }
                Err(error) => {
                    let _gone = outbox.send(answer_line(&id, &Err(error))).await;
                    spare.map_or(Change::None, Change::Returned)
                }
            };
            Done { id: Some(id), change }
        });
        Ok(())
    }

    /// Runs `work` beside everything else and answers with what it gives: an event and a result.
    pub(super) fn answer_with(
        &mut self,
        id: OwnedId,
        outbox: Outbox,
        work: impl Future<Output = Result<(u64, Value), HostError>> + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            let body = work.await.map(|(_, result)| Bytes::from(result.to_string()));
            let _gone = outbox.send(answer_line(&id, &body)).await;
            Done { id: Some(id), change: Change::None }
        });
    }
}

/// A session whose history is there though it cannot go on.
fn is_readable(error: &HostError) -> bool {
    !matches!(
        error,
        HostError::UnknownSession { .. } | HostError::History { .. } | HostError::InvalidParams { .. }
    )
}

/// A live session that a client joins.
struct Joined {
    live: SessionHandle,
    attached: Attached,
    /// What is history to the client; all that follows it sees as it comes.
    until: u64,
    /// How the run before ended, if this one began for the client.
    earlier: Option<Json>,
}

/// On what a session can be activated.
struct On<'a> {
    agent: &'a str,
    /// The process that the client knows the agent from.
    known: Option<AgentRef>,
    /// Where the session is to work.
    cwd: Option<&'a Path>,
    /// A process that waits for a session.
    spare: Option<AgentHandle>,
}

/// Finds the session live, or activates it. The process that was not needed comes back.
async fn join(
    host: &Host,
    mut attempt: Attempt,
    On { agent: name, known, cwd, spare }: On<'_>,
    session: &SessionId,
    params: Option<Bytes>,
    client: &str,
) -> (Result<Joined, HostError>, Option<AgentHandle>) {
    match find_live(host, session).await {
        Ok(Some(joined)) => return (Ok(joined), spare),
        Ok(None) => {}
        Err(error) => return (Err(error), spare),
    }
    attempt.wait_for_turn().await;
    // Somebody else may have been at it.
    match find_live(host, session).await {
        Ok(Some(joined)) => return (Ok(joined), spare),
        Ok(None) => {}
        Err(error) => return (Err(error), spare),
    }
    // What cannot be starts nothing.
    if let Err(error) = host.check_activation(session, name, known.as_ref(), params.as_ref()).await {
        return (Err(error), spare);
    }
    // One whose entry has changed since gets no new session.
    let agent = match spare.filter(|agent| host.agents().still_offers(agent)) {
        Some(agent) => Ok(agent),
        None => attempt.unless_stopped(host.agents().connect(name, cwd)).await,
    };
    let agent = match agent {
        Ok(agent) => agent,
        Err(error) => return (Err(error), None),
    };
    match host.activate(attempt, session, &agent, params, client).await {
        Ok(Activated { session: live, fresh, earlier }) => {
            let joined = live.attach().await.map(|attached| {
                // What the new run says of itself is no history, even if it has said it already.
                let until = if fresh { live.began_after() } else { attached.seq };
                Joined { live, attached, until, earlier }
            });
            (joined, (!fresh).then_some(agent))
        }
        Err(error) => (Err(error), Some(agent)),
    }
}

/// Finds the session live; whoever only watches brings nothing to life (contract 1.7).
async fn watch(host: &Host, session: &SessionId) -> Result<Joined, HostError> {
    find_live(host, session).await?.ok_or_else(|| HostError::NotResumable {
        id: session.to_string(),
        reason: "a token with the scope observe only watches; control takes sessions up".to_owned(),
    })
}

/// A session that is live; None when it may be activated.
async fn find_live(host: &Host, session: &SessionId) -> Result<Option<Joined>, HostError> {
    match host.session(session).await {
        // Else it has ended just now.
        Ok(live) => Ok(live.attach().await.ok().map(|attached| {
            let until = attached.seq;
            Joined { live, attached, until, earlier: None }
        })),
        // Final, so no process is started to find that out.
        Err(HostError::SessionEnded { id, info }) if info.reason == Reason::Terminated => {
            Err(HostError::Terminated { id, info })
        }
        Err(HostError::SessionEnded { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer to `session/load` and `session/resume`.
#[derive(Default, Serialize)]
struct JoinResult {
    #[serde(flatten)]
    state: LifecycleState,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<OwnMeta<JoinMeta>>,
}

/// acpd's own part of an answer.
#[derive(Serialize)]
struct OwnMeta<T> {
    #[serde(rename = "sandboxagent.dev")]
    own: T,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JoinMeta {
    Live(LiveMeta),
    ReadOnly(ReadOnlyMeta),
}

/// What the client goes on with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LiveMeta {
    turn_active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_stop_reason: Option<String>,
    /// PR-11: what was interrupted is seen by the client that goes on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_termination_info: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<TranscriptFacts>,
}

/// Why the session can only be read.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadOnlyMeta {
    resumable: bool,
    reason: String,
    /// TM-3: a replay has no ends of runs in it, so the answer says how the last one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_info: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}

impl ReadOnlyMeta {
    fn of(error: &HostError, termination_info: Option<Json>) -> Self {
        let pid = match error {
            HostError::LiveElsewhere { pid, .. } => *pid,
            _ => None,
        };
        Self { resumable: false, reason: error.to_string(), termination_info, pid }
    }
}

/// Where the client joins, and its answer.
async fn show(
    host: &Host,
    session: &SessionId,
    joined: Option<Joined>,
    unresumable: Option<HostError>,
    replay: bool,
) -> Result<(Attaching, JoinResult), HostError> {
    let mut result = JoinResult::default();
    let mut questions = Vec::new();
    let (live, until) = match joined {
        Some(Joined { live, attached, until, earlier }) => {
            result.state = attached.result;
            questions = attached.open;
            let own = JoinMeta::Live(LiveMeta {
                turn_active: attached.turn_active,
                last_stop_reason: attached.last_stop_reason,
                previous_termination_info: earlier,
                transcript: attached.transcript,
            });
            result.meta = Some(OwnMeta { own });
            (Some(live), until)
        }
        None => {
            let summary = host.inspect(session, None).await?;
            let own = unresumable.as_ref().map(|error| ReadOnlyMeta::of(error, summary.termination));
            result.meta = own.map(|own| OwnMeta { own: JoinMeta::ReadOnly(own) });
            (None, summary.history.event_count)
        }
    };
    let from = if replay { 0 } else { until };
    let cursor = host.cursor(session, from).await?;
    let answer = Answer::new(until, Bytes::new()).asking(questions);
    let attachment = Attachment { live, cursor, history_until: until, answer };
    Ok((Attaching { id: session.clone(), attachment, unresumable, spare: None }, result))
}
