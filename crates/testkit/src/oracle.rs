//! The official ACP schema as a judge of every message.
//!
//! Generated from the schema crate's types, so it is as strict as the published schema. Extension methods (a leading
//! `_`) have no schema. Not a judge of order or meaning: that is what the tests are for.

use agent_client_protocol_schema::v1 as acp;
use jsonschema::Validator;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Known agents send it, and no schema has it.
const UNSPECIFIED: [&str; 1] = ["session/started"];

struct Rule {
    validator: Validator,
    /// The members that the schema knows at the root; None when it is not a plain object.
    members: Option<Vec<String>>,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy, Debug)]
enum Part {
    Params,
    Result,
}

type Rules = HashMap<(&'static str, Part), Rule>;

fn rule<T: JsonSchema>() -> Rule {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let members = schema["properties"].as_object().map(|members| members.keys().cloned().collect());
    let validator = jsonschema::validator_for(&schema).expect("the official schema is a schema");
    Rule { validator, members }
}

/// What agents write.
static FROM_AGENT: LazyLock<Rules> = LazyLock::new(|| {
    use Part::{Params, Result};
    HashMap::from([
        (("initialize", Result), rule::<acp::InitializeResponse>()),
        (("authenticate", Result), rule::<acp::AuthenticateResponse>()),
        (("session/new", Result), rule::<acp::NewSessionResponse>()),
        (("session/load", Result), rule::<acp::LoadSessionResponse>()),
        (("session/resume", Result), rule::<acp::ResumeSessionResponse>()),
        (("session/list", Result), rule::<acp::ListSessionsResponse>()),
        (("session/fork", Result), rule::<acp::ForkSessionResponse>()),
        (("session/status", Result), rule::<acp::SessionStatusResponse>()),
        (("session/close", Result), rule::<acp::CloseSessionResponse>()),
        // The first draft's name of close.
        (("session/stop", Result), rule::<acp::CloseSessionResponse>()),
        (("session/delete", Result), rule::<acp::DeleteSessionResponse>()),
        (("session/set_mode", Result), rule::<acp::SetSessionModeResponse>()),
        (("session/set_config_option", Result), rule::<acp::SetSessionConfigOptionResponse>()),
        (("session/prompt", Result), rule::<acp::PromptResponse>()),
        (("session/update", Params), rule::<acp::SessionNotification>()),
        (("session/request_permission", Params), rule::<acp::RequestPermissionRequest>()),
        (("fs/read_text_file", Params), rule::<acp::ReadTextFileRequest>()),
        (("fs/write_text_file", Params), rule::<acp::WriteTextFileRequest>()),
        (("terminal/create", Params), rule::<acp::CreateTerminalRequest>()),
        (("terminal/output", Params), rule::<acp::TerminalOutputRequest>()),
        (("terminal/wait_for_exit", Params), rule::<acp::WaitForTerminalExitRequest>()),
        (("terminal/kill", Params), rule::<acp::KillTerminalRequest>()),
        (("terminal/release", Params), rule::<acp::ReleaseTerminalRequest>()),
        (("elicitation/create", Params), rule::<acp::CreateElicitationRequest>()),
        (("$/cancel_request", Params), rule::<acp::CancelRequestNotification>()),
    ])
});

/// What clients write.
static FROM_CLIENT: LazyLock<Rules> = LazyLock::new(|| {
    use Part::{Params, Result};
    HashMap::from([
        (("initialize", Params), rule::<acp::InitializeRequest>()),
        (("authenticate", Params), rule::<acp::AuthenticateRequest>()),
        (("session/new", Params), rule::<acp::NewSessionRequest>()),
        (("session/load", Params), rule::<acp::LoadSessionRequest>()),
        (("session/resume", Params), rule::<acp::ResumeSessionRequest>()),
        (("session/list", Params), rule::<acp::ListSessionsRequest>()),
        (("session/close", Params), rule::<acp::CloseSessionRequest>()),
        (("session/delete", Params), rule::<acp::DeleteSessionRequest>()),
        (("session/set_mode", Params), rule::<acp::SetSessionModeRequest>()),
        (("session/set_config_option", Params), rule::<acp::SetSessionConfigOptionRequest>()),
        (("session/prompt", Params), rule::<acp::PromptRequest>()),
        (("session/cancel", Params), rule::<acp::CancelNotification>()),
        (("$/cancel_request", Params), rule::<acp::CancelRequestNotification>()),
        (("session/request_permission", Result), rule::<acp::RequestPermissionResponse>()),
        (("fs/read_text_file", Result), rule::<acp::ReadTextFileResponse>()),
        (("fs/write_text_file", Result), rule::<acp::WriteTextFileResponse>()),
        (("terminal/create", Result), rule::<acp::CreateTerminalResponse>()),
        (("terminal/output", Result), rule::<acp::TerminalOutputResponse>()),
        (("elicitation/create", Result), rule::<acp::CreateElicitationResponse>()),
    ])
});

static ERROR: LazyLock<Rule> = LazyLock::new(rule::<acp::Error>);

/// Checks a message to a client; `asked` is the method of the request that it answers, if it does.
///
/// # Errors
/// What is wrong with it.
pub fn check_from_agent(message: &Value, asked: Option<&str>) -> Result<(), String> {
    check(message, asked, &FROM_AGENT)
}

/// Checks a message to an agent; `asked` is the method of the request that it answers, if it does.
///
/// # Errors
/// What is wrong with it.
pub fn check_from_client(message: &Value, asked: Option<&str>) -> Result<(), String> {
    check(message, asked, &FROM_CLIENT)
}

fn check(message: &Value, asked: Option<&str>, rules: &Rules) -> Result<(), String> {
    if message["jsonrpc"] != "2.0" {
        return Err("jsonrpc is not \"2.0\"".to_owned());
    }
    let has = |member: &str| message.get(member).is_some();
    let allowed: &[&str] = match (has("method"), has("result"), has("error")) {
        (true, false, false) => &["jsonrpc", "id", "method", "params"],
        (false, true, false) => &["jsonrpc", "id", "result"],
        (false, false, true) => &["jsonrpc", "id", "error"],
        _ => return Err("it is neither a request nor one answer".to_owned()),
    };
    let members = message.as_object().into_iter().flat_map(|members| members.keys());
    if let Some(other) = members.into_iter().find(|member| !allowed.contains(&member.as_str())) {
        return Err(format!("an envelope has no {other:?}"));
    }
    if has("error") {
        return apply(&ERROR, &message["error"]);
    }
    let (method, part, value) = match message["method"].as_str() {
        Some(method) => (method, Part::Params, message.get("params").unwrap_or(&Value::Null)),
        None => match asked {
            Some(method) => (method, Part::Result, &message["result"]),
            None => return Err("it answers nothing that was asked".to_owned()),
        },
    };
    if method.starts_with('_') || UNSPECIFIED.contains(&method) {
        return Ok(());
    }
    let rule = rules.iter().find(|((name, of), _)| (*name, *of) == (method, part)).map(|(_, rule)| rule);
    match rule {
        Some(rule) => apply(rule, value),
        None => Err(format!("{method} is no method whose {part:?} go this way")),
    }
}

fn apply(rule: &Rule, value: &Value) -> Result<(), String> {
    // The quick question first: nearly all messages are good.
    if !rule.validator.is_valid(value)
        && let Some(error) = rule.validator.iter_errors(value).next()
    {
        return Err(format!("at {:?}: {error}", error.instance_path().to_string()));
    }
    // FR-9: nothing of our own at the root. Agents may be newer than the schema; what they send passes through a
    // fake agent in the tests of that, which is not judged.
    let known = rule.members.iter().flatten();
    let strange = value.as_object().into_iter().flat_map(|object| object.keys());
    let known: Vec<&String> = known.collect();
    match strange.into_iter().find(|member| !known.is_empty() && !known.contains(member)) {
        Some(member) => Err(format!("the schema has no member {member:?} here")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn update(params: Value) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    // A judge that accepts everything would show nothing.
    #[test]
    fn the_oracle_tells_good_from_bad() {
        let chunk =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}});
        let good = update(json!({"sessionId": "s", "update": chunk}));
        assert_eq!(check_from_agent(&good, None), Ok(()));
        for bad in [
            update(json!({"update": chunk})),
            update(json!({"sessionId": 5, "update": chunk})),
            update(json!({"sessionId": "s", "update": chunk, "own": 1})),
            update(json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk"}})),
            json!({"method": "session/update", "params": {"sessionId": "s", "update": chunk}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"message": "x"}}),
        ] {
            assert!(check_from_agent(&bad, None).is_err(), "{bad}");
        }
        let stop = |reason: &str| json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": reason}});
        assert_eq!(check_from_agent(&stop("end_turn"), Some("session/prompt")), Ok(()));
        assert!(check_from_agent(&stop("end_turn"), None).is_err());
        assert!(
            check_from_agent(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}), Some("session/prompt"))
                .is_err()
        );
    }
}
