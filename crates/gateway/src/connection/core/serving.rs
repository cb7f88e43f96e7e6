//! What serves a request that was admitted: acpd itself, the run of its session, or an agent.

use super::{Call, ConnectionCore, Effect, Effects, Message};
use crate::connection::effects::Work;
use crate::connection::listing;
use crate::methods::{Handler, OfConnection, OfSession};
use crate::wire_error::wire_error;
use acpd_host::{EndRequest, HostError};
use acpd_record::SessionId;
use bytes::Bytes;
use std::sync::Arc;

/// The answer to what is done and has nothing to say.
const NOTHING: Bytes = Bytes::from_static(b"{}");

impl ConnectionCore {
    pub(super) fn serve(&mut self, call: Box<Call>, effects: &mut Effects) {
        let id = call.id.clone();
        let served = match call.method.handler {
            Handler::Connection(OfConnection::Initialize) => self.initialize(call, effects),
            Handler::Connection(OfConnection::New) => {
                effects.push(Effect::Start(Work::Create(None), call));
                Ok(())
            }
            Handler::Connection(OfConnection::List) => {
                listing::request(call.params.raw.as_deref(), &self.agent)
                    .map(|page| effects.push(Effect::Start(Work::List(page), call)))
            }
            Handler::Connection(OfConnection::NotServed) => {
                Err(HostError::MethodNotFound { method: call.name })
            }
            Handler::Session(handler) => self.serve_session(handler, call, effects),
            Handler::Agent => match named(&call) {
                None => {
                    effects.push(Effect::Start(Work::AskAgent, call));
                    Ok(())
                }
                Some(session) => session.map(|session| self.forward(message(*call, session), effects)),
            },
        };
        if let Err(error) = served {
            self.answer(id, Err(wire_error(&error)), effects);
        }
    }

    fn initialize(&mut self, call: Box<Call>, effects: &mut Effects) -> Result<(), HostError> {
        let params = Arc::new(crate::capabilities::InitializeParams::read(call.params.raw.as_deref())?);
        self.stage.initialize(call.id.clone(), Arc::clone(&params));
        let only_watches = self.only_watches();
        effects.push(Effect::Start(Work::Initialize { params, only_watches }, call));
        Ok(())
    }

    fn serve_session(
        &mut self,
        handler: OfSession,
        call: Box<Call>,
        effects: &mut Effects,
    ) -> Result<(), HostError> {
        let session = match named(&call) {
            None => {
                let message = "sessionId: the id of a session is required, as a string".to_owned();
                return Err(HostError::InvalidParams { message });
            }
            // What is not there is as good as deleted (SE-16).
            Some(Err(_)) if handler == OfSession::Delete => {
                self.answer(call.id, Ok(NOTHING), effects);
                return Ok(());
            }
            Some(session) => session?,
        };
        let work = match handler {
            OfSession::Status => Work::Status(session),
            OfSession::Load => self.join(&call, session, true),
            OfSession::Resume => self.join(&call, session, false),
            OfSession::Fork => Work::Create(Some(session)),
            OfSession::Close => Work::End(session, EndRequest::Close),
            OfSession::Terminate => Work::End(session, EndRequest::Terminate),
            OfSession::Delete => {
                self.unresumable.remove(&session);
                Work::Delete(session)
            }
            OfSession::Detach => match self.watched.get_mut(&session) {
                // The viewer stays, at rest: what the client asked before, and asks when it is back, keeps its order.
                Some(run) => {
                    *run = None;
                    effects.push(Effect::Leave { request: call.id, session });
                    return Ok(());
                }
                None => Work::CheckItIsThere(session),
            },
            OfSession::Run => {
                self.forward(message(*call, session), effects);
                return Ok(());
            }
        };
        effects.push(Effect::Start(work, call));
        Ok(())
    }

    fn join(&mut self, call: &Call, session: SessionId, replay: bool) -> Work {
        if let Some(open) = self.open.find_mut(&call.id) {
            open.joins = true;
        }
        Work::Join { session, replay, only_watches: self.only_watches() }
    }
}

/// The session that a request names; text that is the id of no session is that of an unknown one.
fn named(call: &Call) -> Option<Result<SessionId, HostError>> {
    let unknown = |id: &str| HostError::UnknownSession { id: id.to_owned() };
    call.params.session().map(|session| session.cloned().map_err(unknown))
}

fn message(call: Call, session: SessionId) -> Message {
    Message::new(Some(call.id), session, call.name, call.params.raw)
}
