//! The questions of a session's agent that are open, as its log tells.

use crate::ids::{ConnectionId, QuestionNumber};
use crate::json::Json;
use crate::payload::{ElicitationCompleted, Question, Resolution};
use crate::snapshot::OpenQuestions;
use acpd_wire::{OwnedId, RawId, member};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Topic {
    /// `session/request_permission`.
    Permission,
    /// `elicitation/create`.
    Elicitation,
    /// `fs/*`, forwarded to a client that serves files itself.
    File,
}

impl Topic {
    /// As an operator reads it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredQuestion", into = "StoredQuestion")]
pub struct OpenQuestion {
    /// What it asks for.
    pub topic: Topic,
    /// The only connection that is asked; `None`: all of them.
    pub only: Option<ConnectionId>,
    /// The agent's own id of the request; `None` for one that cannot be answered.
    pub agent_id: Option<OwnedId>,
    /// The agent's request, raw, under the session's own id.
    pub message: Arc<str>,
}

/// An open question in a checkpoint: without what its message says anyway.
#[derive(Serialize, Deserialize)]
struct StoredQuestion {
    topic: Topic,
    only: Option<ConnectionId>,
    message: String,
}

impl From<StoredQuestion> for OpenQuestion {
    fn from(StoredQuestion { topic, only, message }: StoredQuestion) -> Self {
        let agent_id = serde_json::from_str(&message).ok().and_then(agent_id);
        Self { topic, only, agent_id, message: message.into() }
    }
}

impl From<OpenQuestion> for StoredQuestion {
    fn from(OpenQuestion { topic, only, message, .. }: OpenQuestion) -> Self {
        Self { topic, only, message: (*message).to_owned() }
    }
}

/// The questions of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Questions {
    pub(crate) open: BTreeMap<QuestionNumber, OpenQuestion>,
    /// Those that no client is asked any more, or never was, and that are not resolved yet.
    settled: BTreeMap<QuestionNumber, OpenQuestion>,
    /// Connections that were asked to open a URL, by the elicitation's id.
    urls: BTreeMap<String, ConnectionId>,
}

fn agent_id(message: &RawValue) -> Option<OwnedId> {
    member(message, "id").and_then(RawId::new).map(|id| id.to_owned())
}

fn elicitation_id(message: &RawValue) -> Option<String> {
    let id = member(member(message, "params")?, "elicitationId")?;
    serde_json::from_str(id.get()).ok()
}

impl Questions {
    pub(crate) fn asked(&mut self, topic: Topic, question: &Question<'_>) {
        if let (Topic::Elicitation, Some(only)) = (topic, &question.only)
            && let Some(id) = elicitation_id(question.message)
        {
            self.urls.insert(id, only.clone());
        }
        let agent_id = agent_id(question.message);
        let (only, message) = (question.only.clone(), question.message.get().into());
        let into = if question.unasked { &mut self.settled } else { &mut self.open };
        into.insert(question.request, OpenQuestion { topic, only, agent_id, message });
    }

    pub(crate) fn resolved(&mut self, resolution: &Resolution<'_>) {
        self.open.remove(&resolution.request);
        self.settled.remove(&resolution.request);
    }

    pub(crate) fn completed(&mut self, completed: &ElicitationCompleted<'_>) {
        if let Some(id) = elicitation_id(completed.message) {
            self.urls.remove(&id);
        }
    }

    /// No client is asked any more; the resolutions are still to come.
    pub(crate) fn settle(&mut self) {
        self.settled.append(&mut self.open);
    }

    /// No resolution comes any more.
    pub(crate) fn forget_settled(&mut self) {
        self.settled = BTreeMap::new();
    }

    pub(crate) fn settled(&self, number: QuestionNumber) -> Option<&OpenQuestion> {
        self.settled.get(&number)
    }

    pub(crate) fn is_unresolved(&self, number: QuestionNumber) -> bool {
        self.open.contains_key(&number) || self.settled.contains_key(&number)
    }

    /// The connection that was asked to open a URL.
    pub(crate) fn url_at(&self, elicitation: &str) -> Option<&ConnectionId> {
        self.urls.get(elicitation)
    }

    /// How many open questions up to event `until` wait for a person.
    pub(crate) fn open_to_people(&self, until: u64) -> u64 {
        let open = self.open.range(..=QuestionNumber(until));
        open.filter(|(_, question)| question.topic != Topic::File).count() as u64
    }

    /// The open questions as clients see them in a snapshot, up to event `until`.
    pub(crate) fn shown(&self, until: u64) -> OpenQuestions {
        #[derive(Serialize)]
        struct Shown {
            request: QuestionNumber,
            message: Value,
        }
        let of = |topic| {
            let open = self.open.range(..=QuestionNumber(until));
            let to_all = open.filter(|(_, question)| question.topic == topic && question.only.is_none());
            let shown = to_all.map(|(request, question)| {
                let message = acpd_wire::value(question.message.as_bytes());
                Json::new(&Shown { request: *request, message })
            });
            shown.collect()
        };
        OpenQuestions { permissions: of(Topic::Permission), elicitations: of(Topic::Elicitation) }
    }
}
