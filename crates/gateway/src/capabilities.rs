//! What a client can take, and what an agent offers it through acpd (IN-3, IN-7).
//!
//! Pure. Agents are always offered the same (IN-4), so what a client did not ask for is kept from it here.

use acpd_host::{AgentHandle, AgentInfo, META, ViewerInfo, method, update_kind};
use acpd_record::ConnectionId;
use memchr::memmem::Finder;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

// Made once: making one costs as much as searching a line.
static BOOLEAN: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"boolean\""));

/// What a client said that it understands beyond the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    notices: bool,
    compaction: bool,
    boolean_options: bool,
    terminal_auth: bool,
    forms: bool,
    urls: bool,
    terminals: bool,
    reads: bool,
    writes: bool,
    /// It may not answer, so it is not asked.
    only_watches: bool,
}

impl ClientCapabilities {
    pub(crate) fn read(initialize: &Value) -> Self {
        let capabilities = &initialize["clientCapabilities"];
        let session = &capabilities["session"];
        Self {
            notices: session["notices"].is_object(),
            compaction: session["compaction"].is_object(),
            boolean_options: session["configOptions"]["boolean"].is_object(),
            terminal_auth: capabilities["auth"]["terminal"] == json!(true),
            forms: capabilities["elicitation"]["form"].is_object(),
            urls: capabilities["elicitation"]["url"].is_object(),
            reads: capabilities["fs"]["readTextFile"] == json!(true),
            writes: capabilities["fs"]["writeTextFile"] == json!(true),
            terminals: capabilities["_meta"][META]["terminals"] == json!(true),
            only_watches: false,
        }
    }

    /// Its token lets it watch and nothing else (PE-2).
    pub(crate) fn only_watch(&mut self) {
        *self = Self { forms: false, urls: false, reads: false, writes: false, only_watches: true, ..*self };
    }

    /// Whether it may be asked what every client understands.
    pub(crate) fn can_answer(&self) -> bool {
        !self.only_watches
    }

    /// Whether it can fill in forms.
    pub(crate) fn has_forms(&self) -> bool {
        self.forms
    }

    /// Whether it wants to know what the session's terminals say.
    pub(crate) fn watches_terminals(&self) -> bool {
        self.terminals
    }

    /// What a session has to know of a client with these.
    pub(crate) fn viewer_info(&self, connection: &ConnectionId) -> ViewerInfo {
        ViewerInfo {
            connection: connection.clone(),
            forms: self.forms,
            urls: self.urls,
            reads: self.reads,
            writes: self.writes,
        }
    }

    /// The line of an update as this client may see it: as it is, changed, or not at all.
    pub(crate) fn filter_update<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match update_kind(line) {
            Some("notice") if !self.notices => None,
            Some("compaction_update" | "compaction_summary_chunk") if !self.compaction => None,
            Some("config_option_update") if !self.boolean_options && BOOLEAN.find(line).is_some() => {
                let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
                    return Some(Cow::Borrowed(line));
                };
                drop_boolean_options(&mut message["params"]["update"]);
                Some(Cow::Owned(message.to_string().into_bytes()))
            }
            _ => Some(Cow::Borrowed(line)),
        }
    }

    /// A result that carries config options (`session/new` and its like), as this client may see it.
    pub(crate) fn filter_result<'a>(&self, result: &'a [u8]) -> Cow<'a, [u8]> {
        let suspect = !self.boolean_options && BOOLEAN.find(result).is_some();
        match serde_json::from_slice::<Value>(result) {
            Ok(mut value) if suspect && value["configOptions"].is_array() => {
                drop_boolean_options(&mut value);
                Cow::Owned(value.to_string().into_bytes())
            }
            _ => Cow::Borrowed(result),
        }
    }
}

fn drop_boolean_options(holder: &mut Value) {
    if let Some(options) = holder["configOptions"].as_array_mut() {
        options.retain(|option| option["type"] != "boolean");
    }
}

/// The answer to a client's `initialize`: the agent's own, with the capabilities that work through acpd.
/// `session_stop` puts the first draft of close where the stable protocol has no place for it.
pub(crate) fn initialize_result(
    agent: &AgentHandle,
    client: &ClientCapabilities,
    session_stop: bool,
) -> Value {
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
) -> Value {
    offered(name, known.map_or(&Value::Null, |info| &info.result), false, client, session_stop)
}

fn offered(
    name: &str,
    of_agent: &Value,
    forks: bool,
    client: &ClientCapabilities,
    session_stop: bool,
) -> Value {
    let mut result = of_agent.as_object().cloned().unwrap_or_default();
    result.insert("protocolVersion".to_owned(), json!(1));
    let mut capabilities =
        result.get("agentCapabilities").and_then(Value::as_object).cloned().unwrap_or_default();
    // acpd serves these from its own store, whatever the agent can do (contract 1.4).
    capabilities.insert("loadSession".to_owned(), json!(true));
    // What the agent says under the first draft's name is acpd's to use, not the client's.
    capabilities.remove("session");
    if session_stop {
        capabilities.insert("session".to_owned(), json!({"stop": {}}));
    }
    let of_agent = capabilities.remove("sessionCapabilities");
    let mut session = json!({"list": {}, "resume": {}, "close": {}, "delete": {}, "status": {}});
    // A fork is the one thing here that only the agent can do.
    if forks {
        session["fork"] = json!({});
    }
    if let Some(directories) = of_agent.as_ref().and_then(|of_agent| of_agent.get("additionalDirectories")) {
        session["additionalDirectories"] = directories.clone();
    }
    capabilities.insert("sessionCapabilities".to_owned(), session);
    let meta = capabilities.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(META.to_owned(), json!({"stop": {}, "terminate": {}, "detach": {}}));
    }
    if let Some(Value::Object(mcp)) = capabilities.get_mut("mcpCapabilities") {
        mcp.remove("acp");
    }
    result.insert("agentCapabilities".to_owned(), Value::Object(capabilities));
    if let Some(Value::Array(methods)) = result.get_mut("authMethods") {
        // AU-1: a login in a terminal only for clients that can show one.
        methods.retain(|method| client.terminal_auth || method["type"] != "terminal");
    }
    result.entry("authMethods").or_insert_with(|| json!([]));
    if !result.get("agentInfo").is_some_and(Value::is_object) {
        result.insert("agentInfo".to_owned(), json!({"name": name, "version": "unknown"}));
    }
    let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        let host = json!({"host": {"name": "acpd", "version": env!("CARGO_PKG_VERSION")}, "agent": name});
        meta.insert(META.to_owned(), host);
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(update: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    }

    fn passes(client: &ClientCapabilities, update: &str) -> bool {
        client.filter_update(line(update).as_bytes()).is_some()
    }

    fn full() -> ClientCapabilities {
        ClientCapabilities::read(&json!({"clientCapabilities": {
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "auth": {"terminal": true},
        }}))
    }

    // IN-7
    #[test]
    fn clients_get_only_what_they_advertised() {
        let bare = ClientCapabilities::read(&json!({"protocolVersion": 1}));
        for update in [
            r#"{"sessionUpdate":"notice","severity":"info","title":"x"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}"#,
            r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"c"}"#,
        ] {
            assert!(passes(&full(), update) && !passes(&bare, update), "{update}");
        }
        let text =
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a \"notice\""}}"#;
        assert!(passes(&bare, text));
    }

    // IN-7: boolean options, in updates and in results
    #[test]
    fn boolean_options_are_left_out_for_clients_without_them() {
        let bare = ClientCapabilities::default();
        let update = line(
            r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","type":"boolean"},{"id":"b","type":"select"}]}"#,
        );
        let seen = bare.filter_update(update.as_bytes()).expect("it passes");
        let seen: Value = serde_json::from_slice(&seen).expect("JSON");
        assert_eq!(seen["params"]["update"]["configOptions"], json!([{"id": "b", "type": "select"}]));
        assert_eq!(full().filter_update(update.as_bytes()).expect("it passes"), update.as_bytes());
        let result = br#"{"sessionId":"s","configOptions":[{"id":"a","type":"boolean"}]}"#;
        assert_eq!(bare.filter_result(result).as_ref(), br#"{"sessionId":"s","configOptions":[]}"#);
        assert_eq!(full().filter_result(result).as_ref(), result);
    }
}
