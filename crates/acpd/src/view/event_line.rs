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
    let event = acpd_wire::value(json.as_bytes());
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

/// What is told of a kind of event: parts, each left out when there is nothing at its place. `{/a|/b}` is a place in the
/// event, or another one for when there is nothing at the first; a part without a place is always there.
const KINDS: &[(&str, &[&str])] = &[
    ("created", &["{/agent}", "in {/cwd}", "by {/by}"]),
    (
        "run_started",
        &["pid {/pid}", "{/agentInfo/title|/agentInfo/name}", "{/agentInfo/version}", "by {/method}"],
    ),
    ("prompt", &["{/by}:", "{/prompt}"]),
    ("turn_ended", &["{/stopReason|/result/stopReason}", "{/error/message}"]),
    // Flat, as it is stored, or under the name that it has elsewhere.
    (
        "ended",
        &[
            "{/terminationInfo/reason|/reason}",
            "by {/terminationInfo/terminatedBy|/terminatedBy}",
            "with exit code {/terminationInfo/exitCode|/exitCode}",
            "by {/terminationInfo/signal|/signal}",
            ": {/terminationInfo/message|/message}",
        ],
    ),
    ("cancel_requested", &["by {/by}"]),
    ("stalled", &["turn {/turn}", "silent for {/silentMs} ms"]),
    ("reattached", &["after {/gapMs} ms without a daemon"]),
    (
        "permission_requested",
        &[
            "{/message/params/toolCall/kind}",
            "{/message/params/toolCall/title}",
            "[{/message/params/options}]",
        ],
    ),
    ("permission_resolved", RESOLVED),
    ("elicitation_resolved", RESOLVED),
    ("elicitation_requested", &["{/message/params/message}"]),
    ("terminal", &["{/output}", "{/state}", "exit code {/exitStatus/exitCode}", "{/exitStatus/signal}"]),
];
const RESOLVED: &[&str] =
    &["{/result/outcome/outcome|/result/action}", "{/result/outcome/optionId}", "by {/by}"];

/// The same of the variants of a `session/update`.
const UPDATES: &[(&str, &[&str])] = &[
    ("agent_message_chunk", &["{/content}"]),
    ("agent_thought_chunk", &["(thinks)", "{/content}"]),
    ("user_message_chunk", &["(user)", "{/content}"]),
    ("tool_call", &["tool call", "{/toolCallId}", "{/kind}", "{/title}", "({/status})"]),
    ("tool_call_update", &["tool call update", "{/toolCallId}", "{/kind}", "{/title}", "({/status})"]),
    ("plan", &["plan:", "{/entries}"]),
    ("available_commands_update", &["commands:", "{/availableCommands}"]),
    ("current_mode_update", &["mode:", "{/currentModeId}"]),
    ("usage_update", &["usage:", "{/used}", "of {/size}"]),
    ("notice", &["{/severity}:", "{/title}"]),
];

fn text_of(kind: &str, event: &Value) -> String {
    let message = &event["message"];
    match kind {
        "update" | "echo" => update(&message["params"]["update"]),
        "notification" | "agent_request" => {
            join([message["method"].as_str().unwrap_or_default().to_owned(), short(&message["params"])])
        }
        _ => {
            let ignored = kind == "turn_ended" && event["agentIgnoredCancel"] == true;
            let ignored = ignored.then(|| "(the agent ignored the cancel)".to_owned());
            let goes_on = (kind == "stalled" && event["goesOn"] == true).then(|| "(it goes on)".to_owned());
            told(KINDS, kind, event)
                .map_or_else(|| short(event), |parts| join(parts.into_iter().chain(ignored).chain(goes_on)))
        }
    }
}

fn update(update: &Value) -> String {
    match update["sessionUpdate"].as_str().unwrap_or("?") {
        "session_info_update" if update["title"].is_string() => format!("title: {}", words(&update["title"])),
        variant => {
            told(UPDATES, variant, update).map_or_else(|| format!("{variant}: {}", short(update)), join)
        }
    }
}

/// The parts that a table has for a kind.
fn told(table: &[(&str, &[&str])], kind: &str, value: &Value) -> Option<Vec<String>> {
    let (_, parts) = table.iter().find(|(name, _)| *name == kind)?;
    let part = |part: &&str| {
        let Some((before, rest)) = part.split_once('{') else { return Some((*part).to_owned()) };
        let (places, after) = rest.split_once('}')?;
        let mut said = places.split('|').filter_map(|place| value.pointer(place)).map(words);
        let said = said.find(|said| !said.is_empty())?;
        Some(format!("{before}{said}{after}"))
    };
    Some(parts.iter().filter_map(part).collect())
}

fn join(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ").replace(" : ", ": ")
}

/// A value in words: what is named in a list, the text of a content block, the author of an answer.
fn words(value: &Value) -> String {
    let named = |one: &Value| ["name", "content"].iter().find_map(|key| Some(one[*key].as_str()?.to_owned()));
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(list) if list.iter().any(|one| one["type"].is_string()) => join(list.iter().map(words)),
        Value::Array(list) => list.iter().filter_map(named).collect::<Vec<_>>().join(", "),
        Value::Object(members) => match value["type"].as_str() {
            Some("text") => words(&value["text"]),
            Some("resource_link") => format!("[{}]", value["uri"].as_str().unwrap_or("link")),
            Some("resource") => format!("[{}]", value["resource"]["uri"].as_str().unwrap_or("resource")),
            Some(other) => format!("[{other}]"),
            // A client, a mode or a cause.
            None => {
                members.iter().next().map(|(kind, who)| format!("{kind} {}", words(who))).unwrap_or_default()
            }
        },
        _ => String::new(),
    }
}

/// A value without words of its own.
fn short(value: &Value) -> String {
    let mut value = value.clone();
    if let Value::Object(members) = &mut value {
        members.retain(|name, _| !["seq", "at", "kind"].contains(&name.as_str()));
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
                "stalled",
                json!({"turn": 2, "silentMs": 300}),
                "stalled                turn 2 silent for 300 ms",
            ),
            (
                "stalled",
                json!({"turn": 2, "silentMs": 400, "goesOn": true}),
                "stalled                turn 2 silent for 400 ms (it goes on)",
            ),
            ("reattached", json!({"gapMs": 1200}), "reattached             after 1200 ms without a daemon"),
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
