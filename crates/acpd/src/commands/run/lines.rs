//! What `acpd run --format json` writes: one object in a line (contract 7.1, `docs/schema/run.json`).
//!
//! Pure: events and results come in, lines come out. Raw messages are copied byte for byte. A permission is told when it is
//! answered, so that what was asked waits here until then; the host bounds how many there are.

use crate::daemon::Event;
use acpd_record::{AnsweredBy, ExitStatus};
use acpd_wire::member;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// A line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Line<'a> {
    /// The session was created, or is gone on with. The first line.
    Session(SessionLine<'a>),
    /// The agent sent a `session/update`.
    Update(UpdateLine<'a>),
    /// The agent asked for a permission, and was answered.
    Permission(PermissionLine<'a>),
    /// A command of the session wrote something, or ended.
    Terminal(TerminalLine<'a>),
    /// How it ended. The last line, whatever happened: with `stopReason` when the turn ended, else with `error`.
    Result(Box<ResultLine>),
}

/// Which session it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SessionLine<'a> {
    /// Its id.
    pub(super) session_id: &'a str,
    /// The name of its agent.
    pub(super) agent: &'a str,
    /// Its working directory.
    pub(super) cwd: &'a str,
}

/// An update.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct UpdateLine<'a> {
    /// The number of its event in the session.
    #[cfg_attr(test, schemars(range(min = 1)))]
    seq: u64,
    /// The `update` of the agent's notification, raw.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, Value>"))]
    update: &'a RawValue,
}

/// A permission.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PermissionLine<'a> {
    /// The number of the event of the answer.
    #[cfg_attr(test, schemars(range(min = 1)))]
    seq: u64,
    /// The params of the agent's request, raw.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, Value>"))]
    request: &'a RawValue,
    /// The `outcome` that the agent was given, raw.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, Value>"))]
    outcome: &'a RawValue,
    /// What answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<AnsweredBy<'a>>,
}

/// Something of a terminal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct TerminalLine<'a> {
    /// The number of its event in the session.
    #[cfg_attr(test, schemars(range(min = 1)))]
    seq: u64,
    /// The terminal.
    #[serde(borrow)]
    terminal_id: Cow<'a, str>,
    /// What the command wrote.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, str>>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_status: Option<ExitStatus>,
}

/// The result.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ResultLine {
    /// Why the turn ended, in the agent's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop_reason: Option<String>,
    /// Why there is no stop reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorLine>,
    /// The tokens of the turn, as its agent tells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub(super) usage: Option<Value>,
    /// How long the turn took, from its prompt to its end.
    pub(super) duration_ms: u64,
    /// The session, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// The record of the end of its run, if that ended the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<acpd_record::TerminationInfo>"))]
    pub(super) termination_info: Option<Value>,
}

/// An error.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ErrorLine {
    /// The code of JSON-RPC or ACP, if an agent or a host answered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<i64>,
    /// What went wrong.
    #[serde(default)]
    pub(super) message: String,
    /// What programs are told beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl Line<'_> {
    /// Without the end of the line.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("all of it is JSON")
    }
}

/// Makes lines of events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The permissions that are not answered yet, by their numbers: the params of each.
    asked: HashMap<u64, Box<RawValue>>,
}

/// An event with a message of the agent.
#[derive(Deserialize)]
pub(super) struct WithMessage<'a> {
    #[serde(default)]
    pub(super) request: u64,
    #[serde(borrow)]
    pub(super) message: &'a RawValue,
}

/// What the agent said in an event.
pub(super) fn update_of(json: &str) -> Option<&RawValue> {
    let told: WithMessage<'_> = serde_json::from_str(json).ok()?;
    member(member(told.message, "params")?, "update")
}

/// An answer to a question.
#[derive(Deserialize)]
pub(super) struct Answered<'a> {
    pub(super) request: u64,
    #[serde(borrow, default)]
    pub(super) by: Option<AnsweredBy<'a>>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
}

impl Events {
    /// The line of an event, if it has one.
    pub(super) fn line(&mut self, event: &Event) -> Option<String> {
        let (seq, json) = (event.seq, event.json.as_str());
        match event.kind.as_str() {
            "update" => {
                let update = update_of(json)?;
                Some(Line::Update(UpdateLine { seq, update }).text())
            }
            "permission_requested" => {
                let asked: WithMessage<'_> = serde_json::from_str(json).ok()?;
                self.asked.insert(asked.request, member(asked.message, "params")?.to_owned());
                None
            }
            "permission_resolved" => {
                let answered: Answered<'_> = serde_json::from_str(json).ok()?;
                let request = self.asked.remove(&answered.request)?;
                let outcome = member(answered.result?, "outcome")?;
                let by = answered.by;
                Some(Line::Permission(PermissionLine { seq, request: &request, outcome, by }).text())
            }
            "terminal" => {
                let told: TerminalLine<'_> = serde_json::from_str(json).ok()?;
                Some(Line::Terminal(told).text())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 7.1: programs check lines by the file, so it is what the code says
    #[test]
    fn the_files_are_what_the_code_says() {
        let description = "A line of `acpd run --format json`. Members may be added.";
        crate::schema_file::check::<Line<'_>>("run.json", description);
    }

    fn event(json: Value) -> Event {
        Event::read(&json.to_string()).expect("an event")
    }

    // contract 7.1: updates with their numbers, permissions when they are answered, terminals; nothing of other events
    #[test]
    fn events_become_lines() {
        let mut events = Events::default();
        let asked = json!({"sessionId": "s", "options": [{"optionId": "x"}]});
        let outcome = json!({"outcome": "selected", "optionId": "x"});
        for (event_json, line) in [
            (json!({"seq": 1, "kind": "created", "agent": "a", "cwd": "/"}), Value::Null),
            (
                json!({"seq": 2, "kind": "update", "message": {"params": {"update": {"sessionUpdate": "plan"}}}}),
                json!({"type": "update", "seq": 2, "update": {"sessionUpdate": "plan"}}),
            ),
            (
                json!({"seq": 3, "kind": "permission_requested", "request": 9, "message": {"params": asked}}),
                Value::Null,
            ),
            (
                json!({"seq": 4, "kind": "terminal", "terminalId": "t", "output": "x\n"}),
                json!({"type": "terminal", "seq": 4, "terminalId": "t", "output": "x\n"}),
            ),
            (
                json!({"seq": 5, "kind": "terminal", "terminalId": "t", "state": "finished", "exitStatus": {"exitCode": 0,
                    "signal": null}, "finalOutput": {"text": "x\n", "truncated": false}}),
                json!({"type": "terminal", "seq": 5, "terminalId": "t", "exitStatus": {"exitCode": 0, "signal": null}}),
            ),
            (
                json!({"seq": 6, "kind": "permission_resolved", "request": 9, "by": {"mode": "deny"},
                    "result": {"outcome": outcome}}),
                json!({"type": "permission", "seq": 6, "request": asked, "outcome": outcome, "by": {"mode": "deny"}}),
            ),
            // What was asked before is not known.
            (
                json!({"seq": 7, "kind": "permission_resolved", "request": 8, "result": {"outcome": outcome}}),
                Value::Null,
            ),
            (json!({"seq": 8, "kind": "of_a_later_version"}), Value::Null),
        ] {
            let event = event(event_json);
            let is = events.line(&event).map(|line| serde_json::from_str(&line).expect("JSON"));
            assert_eq!(is.unwrap_or(Value::Null), line, "{event:?}");
        }
    }
}
