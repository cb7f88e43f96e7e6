//! What the events of a session are on the screen, and what they mean for the chat.
//!
//! Events come once and in order, for prompts of all clients, so that the prompts and answers of other clients are shown where they
//! belong. Not here: a turn of this chat that failed, of which the answer to its prompt says more.

use super::super::own_turn::between;
use crate::clean::line;
use crate::daemon::Event;
use crate::view::View;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{self, Write};

/// What an event means for the chat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// A turn began; under this key if it has one.
    Began(Option<String>),
    /// A turn ended; it was this chat's own.
    TurnEnded {
        own: bool,
    },
    /// The question on the screen may be answered; how that is said.
    Resolved(String),
    /// The run is over.
    Ended,
    Nothing,
}

/// The events that mean something here.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Told {
    #[serde(rename_all = "camelCase")]
    Prompt {
        by: Option<String>,
        idempotency_key: Option<String>,
        #[serde(default)]
        prompt: Vec<Value>,
    },
    Update {
        message: Message,
    },
    #[serde(rename_all = "camelCase")]
    TurnEnded {
        stop_reason: Option<String>,
        error: Option<Value>,
    },
    PermissionResolved {
        by: Option<By>,
    },
    ElicitationResolved {
        by: Option<By>,
    },
    RunStarted {},
    Ended {},
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    update: Value,
}

/// What answered a question.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Client(String),
    Mode(String),
    #[serde(other)]
    Other,
}

/// Tells events, and keeps what later ones need.
#[derive(Default)]
pub(super) struct Teller {
    /// The commands of the agent, by their names.
    pub(super) commands: Vec<String>,
    /// The keys of this chat's prompts.
    pub(super) own: HashSet<String>,
    /// Questions that were answered here, and whose answers did not come yet.
    pub(super) answered: usize,
    /// Whose turn runs is known, and it is this chat's.
    is_own: bool,
    /// When the turn began; of one that began before what is shown, the first that is known of it.
    began: Option<Timestamp>,
}

/// When an event happened.
#[derive(Deserialize)]
struct Happened {
    at: Option<Timestamp>,
}

impl Teller {
    /// Shows an event.
    pub(super) fn tell<O: Write, E: Write>(
        &mut self,
        view: &mut View<O, E>,
        event: &Event,
    ) -> io::Result<Fact> {
        let at = serde_json::from_str(&event.json).ok().and_then(|Happened { at }| at);
        match event.kind.as_str() {
            "prompt" => self.began = at,
            _ => self.began = self.began.or(at),
        }
        if event.kind == "terminal" {
            let params = acpd_wire::value(event.json.as_bytes());
            return view.terminal(&params).map(|()| Fact::Nothing);
        }
        // An event of a later version says nothing here.
        let told = acpd_wire::read(event.json.as_bytes()).unwrap_or(Told::Other);
        match told {
            Told::Prompt { by, idempotency_key, prompt } => {
                self.is_own = idempotency_key.as_ref().is_some_and(|key| self.own.remove(key));
                if !self.is_own {
                    view.said(Some(by.as_deref().unwrap_or("another client")), &text_of(&prompt))?;
                }
                view.turn_begins();
                return Ok(Fact::Began(idempotency_key));
            }
            Told::Update { message } => {
                self.learn(&message.params.update);
                view.take(&message.params.update)?;
            }
            Told::TurnEnded { stop_reason, error } => {
                // The answer to this chat's own prompt says more of an error.
                let is_own = std::mem::take(&mut self.is_own);
                let failed = |error: Value| line(error["message"].as_str().unwrap_or("error"), 200);
                let failed = || error.filter(|_| !is_own).map(failed);
                let took = self.began.zip(at).and_then(|(began, ended)| between(began, ended));
                if let Some(reason) = stop_reason.or_else(failed) {
                    view.turn_ended(&reason, took.unwrap_or_default())?;
                }
                return Ok(Fact::TurnEnded { own: is_own });
            }
            Told::PermissionResolved { by } | Told::ElicitationResolved { by } => match self.resolved(by) {
                Some(text) if view.is_asking() => return Ok(Fact::Resolved(text)),
                Some(text) => view.remark(&text)?,
                None => {}
            },
            Told::Ended {} => return Ok(Fact::Ended),
            Told::RunStarted {} | Told::Other => {}
        }
        Ok(Fact::Nothing)
    }

    /// What is said of an answer that was not given here.
    fn resolved(&mut self, by: Option<By>) -> Option<String> {
        match by? {
            By::Client(_) if self.answered > 0 => {
                self.answered -= 1;
                None
            }
            By::Client(name) => Some(format!("answered by {}", line(&name, 60))),
            By::Mode(mode) => Some(format!("answered by the permission mode {}", line(&mode, 60))),
            By::Other => None,
        }
    }

    fn learn(&mut self, update: &Value) {
        if update["sessionUpdate"] != "available_commands_update" {
            return;
        }
        let commands = update["availableCommands"].as_array().into_iter().flatten();
        // Some agents write the slash that ACP leaves to the client.
        let names = commands.filter_map(|command| command["name"].as_str());
        let names = names.map(|name| name.strip_prefix('/').unwrap_or(name));
        let is_word = |name: &&str| !name.is_empty() && !name.contains(|c: char| c.is_control() || c == ' ');
        self.commands = names.filter(is_word).map(str::to_owned).collect();
    }
}

/// The words of a prompt, and what else is in it.
fn text_of(prompt: &[Value]) -> String {
    let block = |block: &Value| match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => text.to_owned(),
        (kind, _) => {
            let uri = block["uri"].as_str().or_else(|| block.pointer("/resource/uri")?.as_str());
            format!("[{}]", uri.or(kind).unwrap_or("content"))
        }
    };
    prompt.iter().map(block).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Screen;
    use serde_json::json;

    // contract 7.1: the turns of other clients are shown as theirs, one's own prompts once; agents cannot drive the screen
    #[test]
    fn events_are_told() {
        let screen = Screen { terminal: false, colour: false, shared: true };
        let mut teller = Teller { own: HashSet::from(["mine".to_owned()]), answered: 1, ..Teller::default() };
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let update = |update: Value| json!({"params": {"sessionId": "s", "update": update}});
        for (kind, members, fact, shown) in [
            (
                "prompt",
                json!({"idempotencyKey": "mine", "prompt": text("x")}),
                Fact::Began(Some("mine".into())),
                "",
            ),
            (
                "turn_ended",
                json!({"stopReason": "end_turn"}),
                Fact::TurnEnded { own: true },
                "\n✓ end_turn · 2.0 s\n",
            ),
            (
                "prompt",
                json!({"by": "an \u{1b}editor", "prompt": text("a\nb\u{1b}[2J")}),
                Fact::Began(None),
                "› an ␛editor: a\n  b␛[2J\n",
            ),
            (
                "update",
                json!({"message": update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}))}),
                Fact::Nothing,
                "hi",
            ),
            (
                "turn_ended",
                json!({"stopReason": "end_turn"}),
                Fact::TurnEnded { own: false },
                "\n✓ end_turn · 2.0 s\n",
            ),
            ("permission_resolved", json!({"by": {"client": "me"}}), Fact::Nothing, ""),
            ("permission_resolved", json!({"by": {"client": "it"}}), Fact::Nothing, "answered by it\n"),
            (
                "permission_resolved",
                json!({"by": {"mode": "deny"}}),
                Fact::Nothing,
                "answered by the permission mode deny\n",
            ),
            ("permission_resolved", json!({"by": {"cause": "cancel"}}), Fact::Nothing, ""),
            ("ended", json!({"reason": "error"}), Fact::Ended, ""),
            ("from_the_future", json!({"x": 1}), Fact::Nothing, ""),
            (
                "update",
                json!({"message": update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "/go"}, {"name": "a\u{1b}"}]}))}),
                Fact::Nothing,
                "",
            ),
        ] {
            let at =
                if kind == "turn_ended" { "2026-11-21T21:03:13.123Z" } else { "2026-11-21T21:03:11.123Z" };
            let mut event = json!({"seq": 1, "kind": kind, "at": at});
            let (Value::Object(event), Value::Object(members)) = (&mut event, members) else {
                panic!("objects")
            };
            event.extend(members);
            let event = Event::read(&Value::Object(event.clone()).to_string()).expect("an event");
            let buffer = super::super::past::Buffer::default();
            let mut view = View::new(buffer.clone(), buffer.clone(), screen, None);
            let told = teller.tell(&mut view, &event).expect("it is written");
            let text = buffer.text();
            let text = if shown.contains('✓') { format!("\n{text}") } else { text };
            assert_eq!((told, text.as_str()), (fact, shown), "{kind}");
        }
        assert_eq!(teller.commands, ["go"]);
    }
}
