//! What an agent says of itself in its answer to `initialize`.

use crate::acp::{PROTOCOL_VERSION, method};
use acpd_record::{Json, lenient};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Kinds of content that a prompt may have beyond text and resource links (PR-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptCapabilities {
    /// Images.
    #[serde(deserialize_with = "lenient")]
    pub image: bool,
    /// Audio.
    #[serde(deserialize_with = "lenient")]
    pub audio: bool,
    /// Embedded resources.
    #[serde(deserialize_with = "lenient")]
    pub embedded_context: bool,
}

/// What an agent said of itself: its answer to `initialize`, cached for every client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentInfo {
    /// The whole result.
    pub result: Value,
    /// What prompts may contain.
    pub prompt: PromptCapabilities,
    said: Said,
}

/// The result, as far as acpd reads it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Said {
    protocol_version: Value,
    #[serde(deserialize_with = "lenient")]
    agent_capabilities: Capabilities,
    #[serde(deserialize_with = "lenient")]
    agent_info: Name,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Capabilities {
    #[serde(deserialize_with = "lenient")]
    prompt_capabilities: PromptCapabilities,
    #[serde(deserialize_with = "lenient")]
    load_session: bool,
    #[serde(deserialize_with = "lenient")]
    session_capabilities: Offers,
    #[serde(deserialize_with = "lenient")]
    auth: Offers,
    /// Where the first draft has what is `session_capabilities` now.
    #[serde(deserialize_with = "lenient")]
    session: Offers,
}

/// Methods that are offered by an object of their name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Offers {
    #[serde(deserialize_with = "is_object")]
    close: bool,
    #[serde(deserialize_with = "is_object")]
    fork: bool,
    #[serde(deserialize_with = "is_object")]
    resume: bool,
    #[serde(deserialize_with = "is_object")]
    logout: bool,
    #[serde(deserialize_with = "is_object")]
    stop: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Name {
    #[serde(deserialize_with = "lenient")]
    title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    version: Option<String>,
}

fn is_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Value::deserialize(deserializer).map(|value| value.is_object())
}

impl AgentInfo {
    pub(super) fn read(result: &[u8]) -> Result<Self, String> {
        let result: Value = acpd_wire::read(result).map_err(|error| error.to_string())?;
        let said = Said::deserialize(&result).unwrap_or_default();
        match &said.protocol_version {
            version if version.as_u64() == Some(PROTOCOL_VERSION) => {}
            Value::Null => return Err("protocolVersion is missing".to_owned()),
            version => return Err(format!("it speaks protocol version {version}, acpd speaks 1")),
        }
        Ok(Self { prompt: said.agent_capabilities.prompt_capabilities, result, said })
    }

    /// A member of its answer to `initialize`, as it said it.
    pub(crate) fn said(&self, member: &str) -> Option<&Value> {
        self.result.get(member)
    }

    /// Its capabilities, as it said them.
    pub(crate) fn capabilities(&self) -> Option<&Map<String, Value>> {
        self.said("agentCapabilities")?.as_object()
    }

    /// Whether the agent can forget its credentials.
    pub fn has_logout(&self) -> bool {
        self.said.agent_capabilities.auth.logout
    }

    /// How the agent closes a session, if it can: by the stable name or by its first draft's (contract 1.4).
    pub fn close_method(&self) -> Option<&'static str> {
        let Capabilities { session_capabilities, session, .. } = &self.said.agent_capabilities;
        match session_capabilities.close {
            true => Some(method::SESSION_CLOSE),
            false => session.stop.then_some(method::SESSION_STOP),
        }
    }

    /// Whether the agent can fork a session.
    pub fn has_fork(&self) -> bool {
        self.said.agent_capabilities.session_capabilities.fork
    }

    /// Whether the agent resumes a session, without a replay.
    pub fn has_resume(&self) -> bool {
        self.said.agent_capabilities.session_capabilities.resume
    }

    /// Whether the agent loads a session, with a replay.
    pub fn has_load(&self) -> bool {
        self.said.agent_capabilities.load_session
    }

    /// The ways in which it can be logged in to, as it said them; null when it did not.
    pub fn auth_methods(&self) -> Json {
        Json::new(&self.said("authMethods"))
    }

    /// What it calls itself: null when it does not.
    pub(crate) fn own_info(&self) -> Json {
        Json::new(&self.said("agentInfo"))
    }

    /// Name and version, for people.
    pub fn title(&self) -> Option<String> {
        let Name { title, name, version } = &self.said.agent_info;
        let name = title.as_ref().or(name.as_ref())?;
        Some(version.as_ref().map_or_else(|| name.clone(), |version| format!("{name} {version}")))
    }
}
