//! What a client is offered: what the agent says of itself, with the capabilities that work through acpd.

use super::ClientCapabilities;
use super::declared::lenient;
use acpd_host::{AgentHandle, AgentInfo, method};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Members that pass through as they are.
type Others = Map<String, Value>;

/// The answer to `initialize`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeResult {
    protocol_version: u64,
    #[serde(deserialize_with = "lenient")]
    agent_capabilities: AgentCapabilities,
    #[serde(deserialize_with = "lenient")]
    auth_methods: Vec<AuthMethod>,
    #[serde(deserialize_with = "lenient")]
    agent_info: Option<Others>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    meta: Others,
    #[serde(flatten)]
    others: Others,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AgentCapabilities {
    #[serde(deserialize_with = "lenient")]
    load_session: bool,
    /// The first draft of the capabilities of sessions, which the stable protocol has elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    session: Option<DraftSession>,
    #[serde(deserialize_with = "lenient")]
    session_capabilities: SessionCapabilities,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    mcp_capabilities: Option<Others>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    meta: Others,
    #[serde(flatten)]
    others: Others,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct DraftSession {
    stop: Offered,
}

/// What acpd does with sessions, and what it leaves to the agent.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SessionCapabilities {
    #[serde(skip_deserializing)]
    list: Offered,
    #[serde(skip_deserializing)]
    resume: Offered,
    #[serde(skip_deserializing)]
    close: Offered,
    #[serde(skip_deserializing)]
    delete: Offered,
    #[serde(skip_deserializing)]
    status: Offered,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    fork: Option<Offered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_directories: Option<Value>,
}

/// Something that is offered.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Offered {}

/// What acpd adds to the capabilities.
#[derive(Default, Serialize)]
struct Extensions {
    stop: Offered,
    terminate: Offered,
    detach: Offered,
    cursors: Offered,
}

#[derive(Debug, Serialize, Deserialize)]
struct AuthMethod {
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    kind: Option<Value>,
    #[serde(flatten)]
    others: Others,
}

#[derive(Serialize)]
struct Program<'a> {
    name: &'a str,
    version: &'a str,
}

/// Who answers.
#[derive(Serialize)]
struct Answering<'a> {
    host: Program<'a>,
    agent: &'a str,
}

/// The answer to a client's `initialize`. `session_stop` puts the first draft of close where the stable protocol has no place
/// for it.
pub(crate) fn initialize_result(
    agent: &AgentHandle,
    client: &ClientCapabilities,
    session_stop: bool,
) -> InitializeResult {
    // A fork is the one thing here that only the agent can do.
    let forks = agent.info().has_fork() && agent.offers(method::SESSION_FORK);
    offered(agent.name(), &agent.info().result, forks, client, session_stop)
}

/// The answer to a client that only watches, for whom no agent is started: with what the agent last said of itself, if
/// it has said anything yet.
pub(crate) fn watcher_result(
    name: &str,
    known: Option<&AgentInfo>,
    client: &ClientCapabilities,
    session_stop: bool,
) -> InitializeResult {
    offered(name, known.map_or(&Value::Null, |info| &info.result), false, client, session_stop)
}

fn offered(
    name: &str,
    of_agent: &Value,
    forks: bool,
    client: &ClientCapabilities,
    session_stop: bool,
) -> InitializeResult {
    // What is no object says nothing.
    let mut result = InitializeResult::deserialize(of_agent).unwrap_or_default();
    result.protocol_version = 1;
    let capabilities = &mut result.agent_capabilities;
    // acpd serves these from its own store, whatever the agent can do (contract 1.4).
    capabilities.load_session = true;
    capabilities.session_capabilities.fork = forks.then(Offered::default);
    // What the agent says under the first draft's name is acpd's to use, not the client's.
    capabilities.session = session_stop.then(DraftSession::default);
    put_own(&mut capabilities.meta, &Extensions::default());
    if let Some(mcp) = &mut capabilities.mcp_capabilities {
        mcp.remove("acp");
    }
    // AU-1: a login in a terminal only for clients that can show one.
    let is_of_terminal = |method: &AuthMethod| method.kind.as_ref().is_some_and(|kind| kind == "terminal");
    result.auth_methods.retain(|method| client.terminal_auth || !is_of_terminal(method));
    let unknown = || map(&Program { name, version: "unknown" });
    result.agent_info.get_or_insert_with(unknown);
    let host = Program { name: "acpd", version: env!("CARGO_PKG_VERSION") };
    put_own(&mut result.meta, &Answering { host, agent: name });
    result
}

fn put_own(meta: &mut Others, own: &impl Serialize) {
    meta.insert(acpd_host::META.to_owned(), Value::Object(map(own)));
}

fn map(value: &impl Serialize) -> Others {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    }
}
