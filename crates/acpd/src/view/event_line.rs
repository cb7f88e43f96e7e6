//! One event of a session's log as one line for a person.
//!
//! Pure. Nothing of an agent or a daemon gets past [`line`]; what is not known is shown as JSON, cut.

use super::columns::cut_end;
use super::paint::{Paint, Screen};
use crate::clean::line;
use jiff::Timestamp;
use serde_json::Value;

/// Characters of a text that are shown at most, whatever the width.
const TEXT: usize = 400;
/// The longest name of a kind.
const KIND: usize = 21;

/// The line of an event, cut to `width` if there is one. Times are UTC.
pub(crate) fn event_line(json: &str, width: Option<usize>, screen: Screen) -> String {
    let event: Value = serde_json::from_str(json).unwrap_or_default();
    let paint = Paint::new(screen.colour);
    let at = event["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let at = at.map_or_else(|| "?".to_owned(), |at| at.strftime("%m-%d %H:%M:%S").to_string());
    let kind = line(event["kind"].as_str().unwrap_or("?"), KIND);
    let text = line(&text_of(&kind, &event), TEXT);
    let head = format!("{:>6}  {at:<14}  ", event["seq"].as_u64().unwrap_or_default());
    let name = kind.replace('_', " ");
    let taken = head.chars().count() + KIND + 2;
    let text = match width {
        Some(width) => cut_end(&text, width.saturating_sub(taken)),
        None => text,
    };
    let room = " ".repeat(KIND.saturating_sub(name.chars().count()) + 2);
    let name = match kind.as_str() {
        "ended" => paint.notable(name),
        "prompt" | "turn_ended" => paint.bold(name),
        "permission_requested" | "elicitation_requested" => paint.notable(name),
        _ => paint.kind(name),
    };
    let line = format!("{}{name}{room}{text}", paint.dim(head));
    line.trim_end().to_owned()
}

fn text_of(kind: &str, event: &Value) -> String {
    let params = &event["message"]["params"];
    match kind {
        "created" => {
            join([str_of(&event["agent"]), str_of(&event["cwd"]).map(|cwd| format!("in {cwd}")), by(event)])
        }
        "run_started" => join([
            event["pid"].as_u64().map(|pid| format!("pid {pid}")),
            str_of(&event["agentInfo"]["title"]).or_else(|| str_of(&event["agentInfo"]["name"])),
            str_of(&event["agentInfo"]["version"]),
            str_of(&event["method"]).map(|method| format!("by {method}")),
        ]),
        "prompt" => join([who(&event["by"]).map(|who| format!("{who}:")), Some(blocks(&event["prompt"]))]),
        "update" | "echo" => update(&params["update"]),
        "turn_ended" => {
            let reason = str_of(&event["stopReason"]).or_else(|| str_of(&event["result"]["stopReason"]));
            let ignored = event["agentIgnoredCancel"].as_bool() == Some(true);
            join([
                reason,
                str_of(&event["error"]["message"]),
                ignored.then(|| "(the agent ignored the cancel)".to_owned()),
            ])
        }
        "ended" => {
            // Flat, as it is stored, or under the name that it has elsewhere.
            let info = if event["terminationInfo"].is_object() { &event["terminationInfo"] } else { event };
            join([
                str_of(&info["reason"]),
                str_of(&info["terminatedBy"]).map(|by| format!("by {by}")),
                str_of(&info["message"]).map(|message| format!(": {message}")),
            ])
        }
        "cancel_requested" => by(event).unwrap_or_default(),
        "permission_requested" => join([
            str_of(&params["toolCall"]["kind"]),
            str_of(&params["toolCall"]["title"]),
            Some(names(&params["options"], "name"))
                .filter(|names| !names.is_empty())
                .map(|n| format!("[{n}]")),
        ]),
        "permission_resolved" | "elicitation_resolved" => {
            let outcome = &event["result"]["outcome"];
            join([
                str_of(&outcome["outcome"]).or_else(|| str_of(&event["result"]["action"])),
                str_of(&outcome["optionId"]),
                by(event),
            ])
        }
        "elicitation_requested" => str_of(&params["message"]).unwrap_or_default(),
        "terminal" => join([
            str_of(&event["output"]),
            str_of(&event["state"]),
            event["exitStatus"]["exitCode"].as_i64().map(|code| format!("exit code {code}")),
            str_of(&event["exitStatus"]["signal"]),
        ]),
        "notification" | "agent_request" => join([str_of(&event["message"]["method"]), Some(short(params))]),
        _ => short(event),
    }
}

/// A `session/update`.
fn update(update: &Value) -> String {
    let variant = update["sessionUpdate"].as_str().unwrap_or("?");
    let text = || blocks(&update["content"]);
    match variant {
        "agent_message_chunk" => text(),
        "agent_thought_chunk" => format!("(thinks) {}", text()),
        "user_message_chunk" => format!("(user) {}", text()),
        "tool_call" | "tool_call_update" => join([
            Some(if variant == "tool_call" { "tool call".to_owned() } else { "tool call update".to_owned() }),
            str_of(&update["toolCallId"]),
            str_of(&update["kind"]),
            str_of(&update["title"]),
            str_of(&update["status"]).map(|status| format!("({status})")),
        ]),
        "plan" => format!("plan: {}", names(&update["entries"], "content")),
        "available_commands_update" => format!("commands: {}", names(&update["availableCommands"], "name")),
        "current_mode_update" => format!("mode: {}", str_of(&update["currentModeId"]).unwrap_or_default()),
        "session_info_update" if update["title"].is_string() => {
            format!("title: {}", str_of(&update["title"]).unwrap_or_default())
        }
        "usage_update" => format!("usage: {} of {}", update["used"], update["size"]),
        "notice" => join([
            str_of(&update["severity"]).map(|severity| format!("{severity}:")),
            str_of(&update["title"]),
        ]),
        other => format!("{other}: {}", short(update)),
    }
}

fn str_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn join<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(" ").replace(" : ", ": ")
}

fn by(event: &Value) -> Option<String> {
    who(&event["by"]).map(|who| format!("by {who}"))
}

/// A name, or the object that says whether it was a client, a mode or a cause.
fn who(by: &Value) -> Option<String> {
    match by {
        Value::String(name) => Some(name.clone()),
        Value::Object(kinds) => {
            let (kind, who) = kinds.iter().next()?;
            Some(format!("{kind} {}", who.as_str().unwrap_or_default()))
        }
        _ => None,
    }
}

/// The text of one content block or of several.
fn blocks(content: &Value) -> String {
    let one = |block: &Value| match block["type"].as_str() {
        Some("text") => str_of(&block["text"]).unwrap_or_default(),
        Some("resource_link") => format!("[{}]", block["uri"].as_str().unwrap_or("link")),
        Some("resource") => format!("[{}]", block["resource"]["uri"].as_str().unwrap_or("resource")),
        Some(other) => format!("[{other}]"),
        None => String::new(),
    };
    match content {
        Value::Array(blocks) => blocks.iter().map(one).collect::<Vec<_>>().join(" "),
        block => one(block),
    }
}

fn names(list: &Value, member: &str) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(|one| one[member].as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// A value without words of its own.
fn short(value: &Value) -> String {
    let mut value = value.clone();
    if let Value::Object(members) = &mut value {
        for told in ["seq", "at", "kind"] {
            members.remove(told);
        }
    }
    if value.is_null() { String::new() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLAIN: Screen = Screen { terminal: false, colour: false, shared: false };

    fn shown(kind: &str, members: Value) -> String {
        let mut event = json!({"seq": 7, "kind": kind, "at": "2026-11-21T21:03:11.123Z"});
        let (Value::Object(event), Value::Object(members)) = (&mut event, members) else { panic!("objects") };
        event.extend(members);
        let line = event_line(&Value::Object(event.clone()).to_string(), None, PLAIN);
        line.strip_prefix("     7  11-21 21:03:11  ").expect("number and time").to_owned()
    }

    fn updated(update: Value) -> String {
        let message = json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
        shown("update", json!({"message": message})).split_off(23)
    }

    // contract 6: acpd sessions events: kind, time and a short text of each
    #[test]
    fn events_are_one_line() {
        for (kind, members, line) in [
            (
                "created",
                json!({"agent": "example", "cwd": "/w", "by": "acpd run"}),
                "created                example in /w by acpd run",
            ),
            (
                "run_started",
                json!({"pid": 5, "agentInfo": {"name": "x", "version": "1"}}),
                "run started            pid 5 x 1",
            ),
            (
                "prompt",
                json!({"by": "me", "prompt": [{"type": "text", "text": "a\nb"}, {"type": "image"}]}),
                "prompt                 me: a b [image]",
            ),
            ("turn_ended", json!({"stopReason": "end_turn"}), "turn ended             end_turn"),
            ("turn_ended", json!({"result": {"stopReason": "refusal"}}), "turn ended             refusal"),
            ("turn_ended", json!({"error": {"message": "no"}}), "turn ended             no"),
            (
                "ended",
                json!({"reason": "error", "terminatedBy": "agent", "message": "gone"}),
                "ended                  error by agent: gone",
            ),
            (
                "permission_requested",
                json!({"message": {"params": {"toolCall": {"kind": "edit", "title": "W"}, "options": [{"name": "Y"}, {"name": "N"}]}}}),
                "permission requested   edit W [Y, N]",
            ),
            (
                "permission_resolved",
                json!({"by": {"mode": "deny"}, "result": {"outcome": {"outcome": "selected", "optionId": "n"}}}),
                "permission resolved    selected n by mode deny",
            ),
            ("terminal", json!({"output": "one\n"}), "terminal               one"),
            ("from_the_future", json!({"x": 1}), "from the future        {\"x\":1}"),
        ] {
            assert_eq!(shown(kind, members), line);
        }
    }

    #[test]
    fn updates_say_what_they_are() {
        for (update, line) in [
            (
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}),
                "hi",
            ),
            (
                json!({"sessionUpdate": "tool_call", "toolCallId": "1", "kind": "edit", "title": "T", "status": "pending"}),
                "tool call 1 edit T (pending)",
            ),
            (json!({"sessionUpdate": "plan", "entries": [{"content": "a"}, {"content": "b"}]}), "plan: a, b"),
            (json!({"sessionUpdate": "new"}), "new: {\"sessionUpdate\":\"new\"}"),
        ] {
            assert_eq!(updated(update), line);
        }
    }

    // contract 6: nothing of an agent reaches the terminal unfiltered, and a line is a line
    #[test]
    fn a_hostile_event_is_harmless() {
        let text = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a\u{1b}]0;x\u{7}b\r\nc\u{202e}"}});
        let line = updated(text);
        assert_eq!(line, "a␛]0;x␇b c\u{fffd}");
        let line =
            event_line(&json!({"seq": 1, "kind": "a\u{1b}b\nc", "at": "\u{1b}"}).to_string(), None, PLAIN);
        assert!(!line.contains(char::is_control), "{line:?}");
        assert_eq!(event_line("not JSON", None, PLAIN), "     0  ?               ?");
        let long = json!({"seq": 1, "kind": "update", "message": {"params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x".repeat(1000)}}}}});
        assert_eq!(event_line(&long.to_string(), Some(80), PLAIN).chars().count(), 80);
    }
}
