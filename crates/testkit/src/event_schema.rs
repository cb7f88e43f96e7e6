//! The project's own schemas as judges: of the events that REST shows, of the lines of `acpd run --format json`, and of what
//! hooks are told.
//!
//! Not a judge of order: that is the log's.

use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;

static EVENT: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../../../docs/schema/events.json")));
static LINE: LazyLock<Validator> = LazyLock::new(|| validator(include_str!("../../../docs/schema/run.json")));
static BODY: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../../../docs/schema/hook.json")));

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("it is JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

/// Reads what `acpd run --format json` wrote, and checks every line against `docs/schema/run.json`, and that the last one
/// is the only result.
///
/// # Panics
/// When they are others.
pub fn run_lines(out: &str) -> Vec<Value> {
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for line in &lines {
        assert!(LINE.is_valid(line), "no line of docs/schema/run.json: {line:#}");
    }
    let results: Vec<usize> = (0..lines.len()).filter(|at| lines[*at]["type"] == "result").collect();
    assert_eq!(results, [lines.len() - 1], "{out}");
    lines
}

/// Checks an event against `docs/schema/events.json`.
///
/// # Panics
/// When it is another.
pub fn check_event(event: &Value) {
    assert!(EVENT.is_valid(event), "no event of docs/schema/events.json: {event:#}");
}

/// Reads what a hook was told, and checks it against `docs/schema/hook.json`.
///
/// # Panics
/// When it is something else.
pub fn hook_body(text: &str) -> Value {
    let body = serde_json::from_str(text).expect("JSON");
    assert!(BODY.is_valid(&body), "no body of docs/schema/hook.json: {body:#}");
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 1.6: kinds are told apart, and those of later versions are let through
    #[test]
    fn an_event_is_one_of_its_kind() {
        let event = |kind: &str, more: Value| {
            let mut event = json!({"seq": 1, "kind": kind, "at": "2026-01-01T00:00:00.000Z"});
            event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            event
        };
        check_event(&event("turn_ended", json!({"turn": 1, "stopReason": "end_turn", "later": 1})));
        check_event(&event("of_a_later_version", json!({})));
        for other in [event("turn_ended", json!({})), event("ended", json!({"terminationInfo": {}}))] {
            assert!(!EVENT.is_valid(&other), "{other}");
        }
    }

    // contract 7.1: lines are told apart by their types
    #[test]
    fn a_line_is_one_of_its_type() {
        let result = json!({"type": "result", "stopReason": "end_turn", "durationMs": 1});
        assert_eq!(run_lines(&result.to_string()), [result]);
        for other in [
            json!({"type": "update", "seq": 0, "update": {}}),
            json!({"type": "result"}),
            json!({"type": "x"}),
        ] {
            assert!(!LINE.is_valid(&other), "{other}");
        }
    }

    // contract 7.2: bodies are told apart by their types
    #[test]
    fn a_body_is_one_of_its_type() {
        let session = json!({"id": "s", "agent": "a", "cwd": "/"});
        let body = |more: Value| {
            let mut body = json!({"session": session, "seq": 3, "at": "2026-01-01T00:00:00.000Z"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        let stalled = body(json!({"type": "stalled", "turn": 1, "silentMs": 5, "later": 1}));
        assert_eq!(hook_body(&stalled.to_string()), stalled);
        for other in [
            body(json!({"type": "stalled", "turn": 1})),
            body(json!({"type": "question", "question": 2, "topic": "file"})),
            body(json!({"type": "x"})),
            json!({"type": "stalled", "turn": 1, "silentMs": 5}),
        ] {
            assert!(!BODY.is_valid(&other), "{other}");
        }
    }
}
