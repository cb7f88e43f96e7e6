//! The directives that need the client: permissions, files, terminals, forms.
//!
//! Invariants: an error of the client becomes text and never fails the turn; a terminal that was created is
//! released, also when the turn is cancelled. Capabilities of the client are not looked at, on purpose: what it
//! answers to a method it does not have is worth seeing.
//! Not the waiting itself: see turn.

use std::time::Duration;

use serde_json::{Value, json};

use crate::directive::ClientRequest;
use crate::turn::{Cancelled, Turn};
use crate::turn_signal::{Patience, Waited};
use crate::wire::Reply;

/// Option id, name and kind.
const OPTIONS: [(&str, &str, &str); 4] = [
    ("allow-once", "Allow once", "allow_once"),
    ("allow-always", "Allow always", "allow_always"),
    ("reject-once", "Reject once", "reject_once"),
    ("reject-always", "Reject always", "reject_always"),
];

impl Turn {
    pub(crate) fn ask_client(&mut self, request: &ClientRequest) -> Result<(), Cancelled> {
        match request {
            ClientRequest::Permission { kind, title, withdrawn } => self.permission(kind, title, *withdrawn),
            ClientRequest::Read { path, line, limit } => self.read(path, *line, *limit)?,
            ClientRequest::Write { path, text } => {
                let params = json!({"path": path, "content": text});
                let text = match self.request("fs/write_text_file", params)? {
                    Ok(_) => format!("wrote {} bytes", text.len()),
                    Err(error) => failed("write", &error),
                };
                self.say(&text);
            }
            ClientRequest::Run { words, limit } => self.run(words, *limit)?,
            ClientRequest::Elicit(message) => self.elicit(message),
        }
        Ok(())
    }

    fn permission(&mut self, kind: &str, title: &str, withdrawn: bool) {
        let id = self.next_tool_call();
        let call = json!({"toolCallId": id, "title": title, "kind": kind, "status": "pending",
            "rawInput": {"title": title},
            "locations": [{"path": format!("{}/example.txt", self.session.cwd.trim_end_matches('/')), "line": 1}],
            "content": [{"type": "content", "content": {"type": "text", "text": title}}],
            "_meta": {"example": {"kind": kind}}});
        let mut update = call.clone();
        update["sessionUpdate"] = json!("tool_call");
        self.update(update);

        let options: Vec<Value> = OPTIONS
            .iter()
            .map(|(id, name, kind)| json!({"optionId": id, "name": name, "kind": kind}))
            .collect();
        let params = json!({"toolCall": call, "options": options, "_meta": {"example": {"asked": title}}});
        let request = match withdrawn {
            true => self.call_and_take_back("session/request_permission", params),
            false => self.call("session/request_permission", params),
        };
        // Also a cancelled turn waits: the client owes the outcome `cancelled`, and it is worth reporting.
        let reply = self.answer_to(request);
        let allowed = outcome(&reply).starts_with("selected allow");
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
            "status": if allowed { "completed" } else { "failed" }}));
        let text = match &reply {
            Ok(_) => format!("permission {}", outcome(&reply)),
            Err(error) => failed("permission", error),
        };
        self.say(&text);
    }

    fn read(&mut self, path: &str, line: Option<u64>, limit: Option<u64>) -> Result<(), Cancelled> {
        let mut params = json!({"path": path});
        for (name, number) in [("line", line), ("limit", limit)] {
            if let Some(number) = number {
                params[name] = json!(number);
            }
        }
        let text = match self.request("fs/read_text_file", params)? {
            Ok(result) => result["content"].as_str().unwrap_or("the client sent no content").to_owned(),
            Err(error) => failed("read", &error),
        };
        self.say(&text);
        Ok(())
    }

    fn elicit(&mut self, message: &str) {
        let schema = json!({"type": "object", "required": ["answer"],
            "properties": {"answer": {"type": "string", "title": "Answer"}}});
        let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
        let text = match self.request_to_the_end("elicitation/create", params) {
            Ok(result) => {
                let action = result["action"].as_str().unwrap_or("without an action");
                let content = result.get("content").filter(|content| !content.is_null());
                let content = content.map(|content| format!(" {content}")).unwrap_or_default();
                format!("elicitation {action}{content}")
            }
            Err(error) => failed("elicitation", &error),
        };
        self.say(&text);
    }

    fn run(&mut self, words: &[String], limit: Option<Duration>) -> Result<(), Cancelled> {
        let line = words.join(" ");
        let Some((command, arguments)) = words.split_first() else { return Ok(()) };
        let created = self.request("terminal/create", json!({"command": command, "args": arguments}))?;
        let terminal = match created {
            Ok(result) => json!({"terminalId": result["terminalId"]}),
            Err(error) => {
                self.say(&failed("run", &error));
                return Ok(());
            }
        };
        let call = self.next_tool_call();
        self.update(
            json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": line, "kind": "execute",
            "status": "in_progress",
            "content": [{"type": "terminal", "terminalId": terminal["terminalId"]}]}),
        );
        let ended = self.wait_for_exit(&terminal, limit);
        let output = self.request_to_the_end("terminal/output", terminal.clone());
        let released = self.request_to_the_end("terminal/release", terminal);
        let status = if matches!(ended, Ok(Ended::ByItself(Ok(_)))) { "completed" } else { "failed" };
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}));
        self.say(&report(&ended?, limit, &output, &released));
        Ok(())
    }

    /// The timeout pattern of ACP: wait and timer, and whichever comes late kills.
    fn wait_for_exit(&mut self, terminal: &Value, limit: Option<Duration>) -> Result<Ended, Cancelled> {
        let wait = self.call("terminal/wait_for_exit", terminal.clone());
        match self.signal.wait_reply(wait, Patience { heeds_cancel: true, limit }) {
            Waited::Answered(reply) => Ok(Ended::ByItself(reply)),
            waited => {
                let killed = self.request_to_the_end("terminal/kill", terminal.clone());
                let reply = killed.and_then(|_| self.answer_to(wait));
                if matches!(waited, Waited::Cancelled) { Err(Cancelled) } else { Ok(Ended::ByTimeout(reply)) }
            }
        }
    }
}

/// How a command ended, with the client's answer to the wait.
enum Ended {
    ByItself(Reply),
    ByTimeout(Reply),
}

fn report(ended: &Ended, limit: Option<Duration>, output: &Reply, released: &Reply) -> String {
    let mut text = match ended {
        Ended::ByItself(Ok(status)) => exit_status(status),
        Ended::ByTimeout(Ok(status)) => {
            format!("timed out after {} ms: {}", limit.unwrap_or_default().as_millis(), exit_status(status))
        }
        Ended::ByItself(Err(error)) | Ended::ByTimeout(Err(error)) => failed("wait", error),
    };
    match output {
        Ok(result) => {
            let truncated = if result["truncated"] == json!(true) { " (truncated)" } else { "" };
            text.push_str(&format!("{truncated}\n{}", result["output"].as_str().unwrap_or_default()));
        }
        Err(error) => text.push_str(&format!("\n{}", failed("output", error))),
    }
    if let Err(error) = released {
        text.push_str(&format!("\n{}", failed("release", error)));
    }
    text
}

fn exit_status(status: &Value) -> String {
    match (status["exitCode"].as_i64(), status["signal"].as_str()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    }
}

pub(crate) fn outcome(reply: &Reply) -> String {
    let outcome = reply.as_ref().map_or(&Value::Null, |result| &result["outcome"]);
    let words = [&outcome["outcome"], &outcome["optionId"]];
    words.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

pub(crate) fn failed(what: &str, error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("no message");
    format!("{what} failed: {} {message}", error["code"])
}
