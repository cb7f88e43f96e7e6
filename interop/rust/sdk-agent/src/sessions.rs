//! The agent's sessions: which exist, and how to cancel the turn that runs in one.
//!
//! Owned by the connection, which hands it one message at a time; a turn runs as a task of the connection and
//! ends with it. Invariants: at most one turn per session; each prompt is answered once, after its last update.

use std::collections::HashMap;
use std::fmt;

use agent_client_protocol::util::MatchDispatchFrom;
use agent_client_protocol::v1::schema::{
    self, CancelNotification, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    SessionId, SessionNotification, StopReason,
};
use agent_client_protocol::{Client, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled, Responder};
use tokio::sync::oneshot;

use crate::script::{Step, steps};

/// A cancel is sent at most once, so the turn's end shows as a closed channel.
type CancelTurn = oneshot::Sender<()>;

/// The sessions of this process.
#[derive(Default)]
pub(crate) struct Sessions {
    turns: HashMap<SessionId, Option<CancelTurn>>,
}

impl HandleDispatchFrom<Client> for Sessions {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        client: ConnectionTo<Client>,
    ) -> Result<Handled<Dispatch>, Error> {
        MatchDispatchFrom::new(message, &client)
            .if_request(async |_: NewSessionRequest, responder: Responder<NewSessionResponse>| {
                responder.respond(NewSessionResponse::new(self.create()))
            })
            .await
            .if_request(async |request: PromptRequest, responder: Responder<PromptResponse>| {
                match self.begin_turn(&request.session_id) {
                    Ok(cancelled) => {
                        let connection = client.clone();
                        client.spawn(async move {
                            let stop_reason = play(&connection, &request, cancelled).await?;
                            responder.respond(PromptResponse::new(stop_reason))
                        })
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            })
            .await
            .if_notification(async |cancel: CancelNotification| {
                self.cancel_turn(&cancel.session_id);
                Ok(())
            })
            .await
            .done()
    }

    fn describe_chain(&self) -> impl fmt::Debug {
        "sessions"
    }
}

impl Sessions {
    fn create(&mut self) -> SessionId {
        let id = SessionId::new(format!("sdk-{}", self.turns.len() + 1));
        self.turns.insert(id.clone(), None);
        id
    }

    fn begin_turn(&mut self, session: &SessionId) -> Result<oneshot::Receiver<()>, Error> {
        let turn = self
            .turns
            .get_mut(session)
            .ok_or_else(|| schema::Error::resource_not_found(Some(session.to_string())))?;
        if turn.as_ref().is_some_and(|running| !running.is_closed()) {
            return Err(Error::invalid_request().data("a turn is running in this session"));
        }
        let (cancel, cancelled) = oneshot::channel();
        *turn = Some(cancel);
        Ok(cancelled)
    }

    fn cancel_turn(&mut self, session: &SessionId) {
        if let Some(cancel) = self.turns.get_mut(session).and_then(Option::take) {
            // Fails when the turn is over, and then there is nothing to cancel.
            cancel.send(()).ok();
        }
    }
}

async fn play(
    client: &ConnectionTo<Client>,
    request: &PromptRequest,
    cancelled: oneshot::Receiver<()>,
) -> Result<StopReason, Error> {
    for step in steps(&request.prompt) {
        match step {
            Step::Update(update) => {
                client.send_notification(SessionNotification::new(request.session_id.clone(), *update))?;
            }
            Step::Hang => {
                cancelled.await.ok();
                return Ok(StopReason::Cancelled);
            }
        }
    }
    Ok(StopReason::EndTurn)
}
