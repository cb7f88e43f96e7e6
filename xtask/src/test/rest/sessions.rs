//! Sessions in every state, made as a client makes them: over `/acp`.

use super::RestError;
use crate::daemon::{Answer, Daemon};
use serde_json::{Value, json};
use std::io;

/// What each session is told, and the event after which it is where it should be.
const PROMPTS: [(&str, &str); 5] = [
    ("hello", "turn_ended"),
    ("stream 300\ntool build\nplan A,B\ncommands x", "turn_ended"),
    ("ask edit", "permission_requested"),
    ("working\nhang", "update"),
    ("crash", "ended"),
];

const ACP: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

/// Makes one of each; they stay when their client has gone.
pub(super) fn make(daemon: &Daemon) -> Result<(), RestError> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                       "params": {"protocolVersion": 1, "clientCapabilities": {}}});
    let answer = daemon.ask("POST", "/acp", &ACP, &hello.to_string())?;
    let connection = answer.header("Acp-Connection-Id").map(str::to_owned);
    let connection = connection.ok_or_else(|| RestError::Unexpected("no Acp-Connection-Id".to_owned()))?;
    let [kind, accept] = ACP;
    let headers = [kind, accept, ("Acp-Connection-Id", &connection)];
    let post = |message: &Value| daemon.ask("POST", "/acp", &headers, &message.to_string()).map(drop);
    let mut answers = daemon.ask("GET", "/acp", &[("Accept", "text/event-stream"), headers[2]], "")?;
    for (id, (prompt, event)) in PROMPTS.iter().enumerate() {
        post(&json!({"jsonrpc": "2.0", "id": id + 1, "method": "session/new",
                     "params": {"cwd": daemon.directory(), "mcpServers": []}}))?;
        let answer = next(&mut answers, |line| {
            let message: Value = serde_json::from_str(line.strip_prefix("data:")?).ok()?;
            (message["id"] == id + 1).then_some(message)
        })?;
        let session = answer["result"]["sessionId"].as_str();
        let session = session.ok_or_else(|| RestError::Unexpected(answer.to_string()))?;
        post(&json!({"jsonrpc": "2.0", "id": id + 100, "method": "session/prompt",
                     "params": {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]}}))?;
        let events = format!("/v1/sessions/{session}/events");
        let mut events = daemon.ask("GET", &events, &[("Accept", "text/event-stream")], "")?;
        next(&mut events, |line| (line.strip_prefix("event:")?.trim() == *event).then_some(()))?;
    }
    Ok(())
}

/// The first line of a stream that is wanted.
fn next<T>(stream: &mut Answer, wanted: impl Fn(&str) -> Option<T>) -> Result<T, RestError> {
    let broken = |error: io::Error| RestError::Unexpected(format!("a stream of events broke off: {error}"));
    while let Some(line) = stream.line().map_err(broken)? {
        if let Some(found) = wanted(&line) {
            return Ok(found);
        }
    }
    Err(RestError::Unexpected("a stream of events ended early".to_owned()))
}
