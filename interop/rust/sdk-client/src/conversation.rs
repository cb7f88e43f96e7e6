//! What a script can say to an agent, and what it heard.
//!
//! Invariants: what the agent sends is kept in the order in which it came; what came before an answer is kept when
//! the answer is there, because the SDK hands on one message after the other and the queue is read first.
//! Not the judging: scripts do that.

use std::path::Path;
use std::pin::pin;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, ContentChunk, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, PromptRequest, PromptResponse,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, Error, JsonRpcNotification, UntypedMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::processes::Process;
use crate::trial::Trial;

/// Enough for a short turn; a full queue makes the SDK wait, which is no loss, since a waiting script reads it.
pub(crate) const QUEUE: usize = 64;

/// Something that the agent sent by itself.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    Update(Box<SessionNotification>),
    Ended(Box<SessionEnded>),
    /// It was answered with an option that rejects.
    Asked(Box<RequestPermissionRequest>),
}

/// acpd's notification that a session ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_sandboxagent/session/ended")]
pub struct SessionEnded {
    /// The session.
    pub session_id: String,
    /// How it ended.
    pub data: Value,
}

/// A turn that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The session's updates between the prompt and its answer.
    pub updates: Vec<SessionUpdate>,
    /// How the turn ended.
    pub stop_reason: StopReason,
}

impl Turn {
    /// The text of the agent's message, chunk by chunk.
    pub fn chunks(&self) -> Vec<&str> {
        self.updates.iter().filter_map(message).collect()
    }
}

/// The text of a chunk of the agent's message.
pub fn message(update: &SessionUpdate) -> Option<&str> {
    match update {
        SessionUpdate::AgentMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
            Some(text.text.as_str())
        }
        _ => None,
    }
}

/// A running conversation with an agent.
#[derive(Debug)]
pub struct Conversation<'a> {
    agent: ConnectionTo<Agent>,
    queue: mpsc::Receiver<Heard>,
    heard: Vec<Heard>,
    trial: &'a mut Trial,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        agent: ConnectionTo<Agent>,
        queue: mpsc::Receiver<Heard>,
        trial: &'a mut Trial,
    ) -> Self {
        Self { agent, queue, heard: Vec::new(), trial }
    }

    /// A directory that exists and is this conversation's alone.
    pub fn directory(&self) -> &Path {
        self.trial.directory()
    }

    /// `initialize` with protocol version 1.
    pub async fn initialize(&mut self) -> Result<InitializeResponse, Error> {
        let info = Implementation::new("sdk-client", env!("CARGO_PKG_VERSION"));
        let request = InitializeRequest::new(ProtocolVersion::V1).client_info(info);
        let answer = self.agent.send_request(request).block_task();
        self.listen_until(answer).await
    }

    /// `session/new` in [`Conversation::directory`].
    pub async fn new_session(&mut self) -> Result<SessionId, Error> {
        let request = NewSessionRequest::new(self.directory());
        let answer = self.agent.send_request(request).block_task();
        let session = self.listen_until(answer).await?.session_id;
        self.processes()?;
        Ok(session)
    }

    /// `session/load`: its answer, and the updates of the session that came before it.
    pub async fn load(
        &mut self,
        session: &SessionId,
    ) -> Result<(LoadSessionResponse, Vec<SessionUpdate>), Error> {
        let from = self.heard.len();
        let request = LoadSessionRequest::new(session.clone(), self.directory());
        let answer = self.agent.send_request(request).block_task();
        let answer = self.listen_until(answer).await?;
        Ok((answer, self.updates(session, from)))
    }

    /// What a session's agent says from now on, up to the update that `is_last` knows.
    pub async fn watch(
        &mut self,
        session: &SessionId,
        is_last: impl Fn(&SessionUpdate) -> bool,
    ) -> Result<Vec<SessionUpdate>, Error> {
        let from = self.heard.len();
        loop {
            let updates = self.updates(session, from);
            if updates.last().is_some_and(&is_last) {
                return Ok(updates);
            }
            self.listen().await?;
        }
    }

    /// The permission requests so far.
    pub fn asked(&self) -> Vec<RequestPermissionRequest> {
        let asked = self.heard.iter().filter_map(|heard| match heard {
            Heard::Asked(request) => Some(request.as_ref().clone()),
            Heard::Update(_) | Heard::Ended(_) => None,
        });
        asked.collect()
    }

    /// One turn.
    pub async fn prompt(&mut self, session: &SessionId, text: &str) -> Result<Turn, Error> {
        let from = self.heard.len();
        let answer = self.agent.send_request(prompt_request(session, text)).block_task();
        let answer = self.listen_until(answer).await?;
        Ok(self.turn(session, from, &answer))
    }

    /// One turn that is cancelled as soon as the agent has sent an update.
    pub async fn prompt_and_cancel(&mut self, session: &SessionId, text: &str) -> Result<Turn, Error> {
        let from = self.heard.len();
        let answer = self.agent.send_request(prompt_request(session, text)).block_task();
        self.listen_for_update(from).await?;
        self.agent.send_notification(CancelNotification::new(session.clone()))?;
        let answer = self.listen_until(answer).await?;
        Ok(self.turn(session, from, &answer))
    }

    /// Prompts and waits for the agent's first update only; the script's end then ends the conversation.
    pub async fn leave_during_prompt(&mut self, session: &SessionId, text: &str) -> Result<(), Error> {
        let from = self.heard.len();
        self.agent.send_request(prompt_request(session, text)).detach();
        self.listen_for_update(from).await
    }

    /// Any request.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Error> {
        let answer = self.agent.send_request(UntypedMessage::new(method, params)?).block_task();
        self.listen_until(answer).await
    }

    /// Waits until a session has ended, and tells which have, each time that it was said.
    pub async fn ended(&mut self) -> Result<Vec<SessionEnded>, Error> {
        let is_end = |heard: &Heard| matches!(heard, Heard::Ended(_));
        while !self.heard.iter().any(is_end) {
            self.listen().await?;
        }
        let ends = self.heard.iter().filter_map(|heard| match heard {
            Heard::Ended(ended) => Some(ended.as_ref().clone()),
            Heard::Update(_) | Heard::Asked(_) => None,
        });
        Ok(ends.collect())
    }

    /// All processes of the agent and below it.
    pub fn processes(&mut self) -> Result<Vec<Process>, Error> {
        self.trial.look().map_err(Error::into_internal_error)
    }

    fn turn(&self, session: &SessionId, from: usize, answer: &PromptResponse) -> Turn {
        Turn { updates: self.updates(session, from), stop_reason: answer.stop_reason }
    }

    fn updates(&self, session: &SessionId, from: usize) -> Vec<SessionUpdate> {
        let updates = self.heard[from..].iter().filter_map(|heard| match heard {
            Heard::Update(update) if update.session_id == *session => Some(update.update.clone()),
            _ => None,
        });
        updates.collect()
    }

    async fn listen_for_update(&mut self, from: usize) -> Result<(), Error> {
        while !self.heard[from..].iter().any(|heard| matches!(heard, Heard::Update(_))) {
            self.listen().await?;
        }
        Ok(())
    }

    async fn listen(&mut self) -> Result<(), Error> {
        let heard = self.queue.recv().await;
        self.heard.push(heard.ok_or_else(|| Error::internal_error().data("the connection is gone"))?);
        Ok(())
    }

    async fn listen_until<T>(&mut self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                biased;
                Some(heard) = self.queue.recv() => self.heard.push(heard),
                answer = &mut answer => return answer,
            }
        }
    }
}

fn prompt_request(session: &SessionId, text: &str) -> PromptRequest {
    PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(text))])
}
