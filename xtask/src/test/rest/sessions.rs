//! Sessions in every state, made as a client makes them: over `/acp`.

use super::Served;
use acpd_testkit::{Http, initialize, request};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What each session is told, and the event after which it is where it should be.
const PROMPTS: [(&str, &str); 5] = [
    ("hello", "turn_ended"),
    ("stream 300\ntool build\nplan A,B\ncommands x", "turn_ended"),
    ("ask edit", "permission_requested"),
    ("working\nhang", "update"),
    ("crash", "ended"),
];

/// Makes one of each, which stay when their client has gone; their ids, that of the idle one first.
pub(super) fn make(served: &Served) -> Result<Vec<String>> {
    let token = ("Authorization", served.token.as_str());
    let mut http = Http::on(served.daemon.connect());
    let mut post = |connection: &str, message: &Value| {
        let headers = [token, ("Content-Type", "application/json"), ("Acp-Connection-Id", connection)];
        let headers = if connection.is_empty() { &headers[..2] } else { &headers };
        http.request("POST", "/acp", headers, &message.to_string())
    };
    let hello = post("", &initialize());
    let connection = hello.header("acp-connection-id").context("no Acp-Connection-Id")?;
    let events = |path: &str, headers: &[(&str, &str)]| {
        let stream = Http::on(served.daemon.connect()).events(path, headers);
        stream.map_err(|answer| anyhow::anyhow!("no events at {path}, but {}", answer.status))
    };
    let mut answers = events("/acp", &[token, ("Acp-Connection-Id", connection)])?;
    let mut made = Vec::new();
    for (id, (prompt, event)) in (10..).zip(PROMPTS) {
        post(
            connection,
            &request(id, "session/new", &json!({"cwd": served.scratch.work(), "mcpServers": []})),
        );
        let answer = answers.until("the answer to session/new", |event| event.json()["id"] == id).json();
        let session = answer["result"]["sessionId"].as_str().with_context(|| answer.to_string())?;
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt}]});
        post(connection, &request(id + 100, "session/prompt", &params));
        let mut stream = events(&format!("/v1/sessions/{session}/events"), &[token])?;
        stream.until(event, |it| it.event.as_deref() == Some(event));
        made.push(session.to_owned());
    }
    Ok(made)
}
