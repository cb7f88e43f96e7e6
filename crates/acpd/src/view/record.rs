//! One session in full: what it is, and the whole record of how its last run ended.
//!
//! Pure. Nothing of an agent or a daemon gets past the filters of `clean`.

use super::ending;
use super::facts::grouped;
use super::paint::{Paint, Screen};
use super::session_rows::state;
use super::spans::{age, date_and_time};
use crate::clean::line;
use crate::daemon::Session;
use jiff::Timestamp;
use serde_json::Value;

/// Characters of a line that are shown at most.
const WIDTH: usize = 1_000;
/// The room for the names of facts.
const NAMES: usize = 12;

/// A name in front of its value, with a gap even if it is long; nothing without a value.
fn fact_line(name: &str, value: Option<String>, paint: Paint) -> Option<String> {
    let value = value.filter(|value| !value.is_empty())?;
    let gap = if name.chars().count() < NAMES { "" } else { " " };
    Some(format!("{}{value}", paint.dim(format_args!("{name:<NAMES$}{gap}"))))
}

/// A name as a program writes it, as words.
fn spaced(name: &str) -> String {
    let words = name.chars().flat_map(|c| {
        let gap = c.is_ascii_uppercase().then_some(' ');
        gap.into_iter().chain([c.to_ascii_lowercase()])
    });
    words.collect()
}

/// A session for a person, line by line.
pub(crate) fn session_record(session: &Session, now: Timestamp, screen: Screen) -> Vec<String> {
    let paint = Paint::new(screen.colour);
    let mut lines = Vec::new();
    let time = |at: &str| format!("{} UTC ({} ago)", date_and_time(at), age(at, now));
    let mut fact = |name: &str, value: Option<String>| lines.extend(fact_line(name, value, paint));
    let text = |text: &str| Some(line(text, WIDTH));
    let of = |value: &Option<String>| value.as_deref().and_then(text);
    fact("session", text(&session.session_id));
    fact("state", Some(state(session).text));
    fact("agent", text(&session.agent));
    fact("title", of(&session.title));
    fact("cwd", text(&session.cwd));
    fact("model", of(&session.model));
    fact("mode", of(&session.mode));
    fact("created", Some(time(&session.created_at)));
    fact("changed", Some(time(&session.updated_at)));
    fact("events", Some(grouped(session.event_count)));
    fact("agent's id", of(&session.native_session_id));
    for (name, value) in session.metadata.as_object().into_iter().flatten() {
        fact(&spaced(&line(name, 40)), plain(value));
    }
    if let Some(info) = session.termination_info.as_ref().filter(|_| session.ended) {
        lines.push(String::new());
        lines.extend(termination(info, &session.agent, paint));
    }
    lines
}

/// The record of an end, with all there is of the process's stderr.
fn termination(info: &Value, agent: &str, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fact = |name: &str, value: Option<String>| lines.extend(fact_line(name, value, paint));
    let text = |key: &str| info[key].as_str().map(|text| line(text, WIDTH));
    let words = |key: &str| text(key).map(|text| text.replace('_', " "));
    let yes = |key: &str| (info[key].as_bool() == Some(true)).then(|| "yes".to_owned());
    let reason = text("reason").unwrap_or_else(|| "?".to_owned());
    fact("ended", Some(format!("{reason} by {}", text("terminatedBy").unwrap_or_else(|| "?".to_owned()))));
    fact("message", text("message"));
    fact("cause", words("cause"));
    fact("asked by", text("initiator"));
    fact("exit code", info["exitCode"].as_i64().map(|code| code.to_string()));
    fact("signal", text("signal"));
    fact("in a turn", yes("turnActive"));
    fact("last turn", text("lastStopReason"));
    fact("left over", yes("leaked").map(|_| "processes, which were killed".to_owned()));
    fact("stopped by", plain(&info["escalation"]));
    fact("began", text("startedAt").map(|at| format!("{} UTC", date_and_time(&at))));
    fact("at", text("endedAt").map(|at| format!("{} UTC", date_and_time(&at))));
    fact("last event", info["lastEventSeq"].as_u64().map(grouped));
    lines.extend(stderr(&info["stderr"], paint));
    lines.extend(ending::hint(info, &line(agent, 60)).map(|hint| format!("{} {hint}", paint.kind("next:"))));
    lines
}

/// What the record has of a process's stderr.
fn stderr(stderr: &Value, paint: Paint) -> Vec<String> {
    let mut lines = ending::stderr_lines(stderr, [usize::MAX; 2], WIDTH, paint);
    if let Some(head) = lines.first_mut() {
        *head = paint.dim(format_args!("{:<NAMES$}{head}:", "stderr"));
    }
    lines
}

/// A value without its JSON, if it is a simple one or a list of such.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::String(text) => Some(line(text, WIDTH)),
        Value::Array(list) => Some(list.iter().filter_map(plain).collect::<Vec<_>>().join(", ")),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(info: Value) -> String {
        let session = Session {
            session_id: "019a-full".to_owned(),
            agent: "quits".to_owned(),
            state: "ended".to_owned(),
            ended: true,
            title: Some("a\u{1b}[31m title".to_owned()),
            created_at: "2026-11-21T11:00:00Z".to_owned(),
            updated_at: "2026-11-21T11:59:00Z".to_owned(),
            termination_info: Some(info),
            metadata: json!({"createdBy": "ci", "nothing": null, "deep": {"x": 1}}),
            ..Session::default()
        };
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        session_record(&session, now, Screen::default()).join("\n")
    }

    // contract 1.2, contract 6: acpd sessions show prints the whole record of an end, with all of its stderr
    #[test]
    fn the_whole_record_is_told() {
        let lines = |from: u32| (from..from + 50).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let text = shown(json!({
            "reason": "error", "terminatedBy": "agent", "message": "agent exited with exit status: 1",
            "exitCode": 1, "cause": "agent_crash", "initiator": "daemon", "turnActive": true,
            "lastStopReason": "end_turn", "leaked": true, "escalation": ["SIGTERM", "SIGKILL"],
            "startedAt": "2026-11-21T11:00:01Z", "endedAt": "2026-11-21T11:59:00Z", "lastEventSeq": 1234,
            "stderr": {"head": lines(1), "tail": lines(201), "truncated": true, "totalLines": 250},
        }));
        for part in [
            "session     019a-full\nstate       ended: error\nagent       quits\ntitle       a␛[31m title\n",
            "created     2026-11-21 11:00:00 UTC (1h ago)\n",
            "created by  ci\n",
            "ended       error by agent\nmessage     agent exited with exit status: 1\ncause       agent crash\n",
            "asked by    daemon\nexit code   1\nin a turn   yes\nlast turn   end_turn\n",
            "left over   processes, which were killed\nstopped by  SIGTERM, SIGKILL\n",
            "at          2026-11-21 11:59:00 UTC\nlast event  1,234\nstderr      250 lines:\n  │ line 1\n",
            "  │ line 50\n  ┊ 150 lines left out\n  │ line 201\n",
            "  │ line 250\nnext: ",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains("deep"), "{text}");
    }

    // contract 6: nothing of an agent reaches the terminal unfiltered
    #[test]
    fn a_hostile_record_is_harmless() {
        let text = shown(json!({
            "reason": "\u{1b}[2J", "message": "a\nb\u{7}", "escalation": ["\u{9b}"],
            "stderr": {"head": "x\u{1b}]52;c;\u{7}\r\ny", "truncated": false, "totalLines": 2},
        }));
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
