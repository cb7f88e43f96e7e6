//! Agents that send what they should not.

use super::*;

/// One update of each kind, with every field that the view reads.
fn one_of_each() -> Vec<Value> {
    vec![
        with(text("answer"), json!({"messageId": "m"})),
        thought("thought"),
        call(
            "a",
            json!({"title": "title", "kind": "brew", "status": "pending", "rawOutput": {"error": "error"},
                "locations": [{"path": "path", "line": 1}]}),
        ),
        call_update(
            "a",
            json!({"status": "completed", "content": [
                {"type": "diff", "path": "path", "oldText": "old\nx", "newText": "new\nx"}]}),
        ),
        call_update(
            "b",
            json!({"title": "b", "status": "failed", "content": [
                {"type": "content", "content": {"type": "text", "text": "reason"}}]}),
        ),
        json!({"sessionUpdate": "plan", "entries": [{"content": "entry", "status": "in_progress"}]}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "mode"}),
        json!({"sessionUpdate": "session_info_update", "title": "title"}),
        json!({"sessionUpdate": "config_option_update", "configOptions": [{"id": "id", "currentValue": "x"}]}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 1.5, "currency": "USD"}}),
        json!({"sessionUpdate": "notice", "severity": "error", "title": "title", "description": "description"}),
        json!({"sessionUpdate": "compaction_update", "status": "failed", "error": "error"}),
        json!({"sessionUpdate": "something_new"}),
    ]
}

/// All values that come from replacing one value inside `value` by what `replace` makes of it.
fn variations(value: &Value, replace: &dyn Fn(&Value) -> Vec<Value>) -> Vec<Value> {
    let mut all = replace(value);
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                for changed in variations(inner, replace) {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), changed);
                    all.push(Value::Object(fields));
                }
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                for changed in variations(inner, replace) {
                    let mut items = items.clone();
                    items[index] = changed;
                    all.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    all
}

fn termination() -> Value {
    json!({"reason": "error", "terminatedBy": "agent", "message": "message", "cause": "agent_crash",
        "signal": "SIGKILL", "initiator": "me", "exitCode": 1, "leaked": true,
        "stderr": {"head": "head", "tail": "tail", "truncated": true, "totalLines": 9}})
}

// contract 6: the terminal view; no escape sequence of an agent reaches the terminal, whatever field it is in
// quirk terminal-control (agents that pass on the output of tools): no control character of an agent reaches a
// terminal; clients and the log have it as it came
#[test]
fn control_characters_are_neutralised_in_every_field() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{8}\u{202e}x";
    let poison = |value: &Value| match value {
        Value::String(text) => vec![json!(HOSTILE), json!(format!("{text}{HOSTILE}"))],
        _ => Vec::new(),
    };
    let check = |text: &str, from: &Value| {
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(harmful), "{from} gave {text:?}");
    };
    for update in one_of_each() {
        for changed in variations(&update, &poison) {
            let mut view = piped();
            view.update_value(&changed).unwrap();
            view.turn_ended(HOSTILE, Duration::ZERO).unwrap();
            let (out, err) = texts(view);
            check(&out, &changed);
            check(&err, &changed);
        }
    }
    for changed in variations(&termination(), &poison) {
        let mut view = piped();
        view.starting(HOSTILE).unwrap();
        view.started(Some(&json!({"name": HOSTILE, "version": HOSTILE})), Duration::ZERO).unwrap();
        view.remark(HOSTILE).unwrap();
        view.failed(&turn_failed(HOSTILE, None), Duration::ZERO).unwrap();
        view.session_ended(&changed).unwrap();
        check(&texts(view).1, &changed);
    }
}

// contract 6: the terminal view; no shape of an update is an error or a panic
#[test]
fn invalid_shapes_are_tolerated() {
    let wrong = |_: &Value| {
        vec![
            json!(null),
            json!(-7),
            json!(1e300),
            json!(""),
            json!([]),
            json!({}),
            json!([null]),
            json!(true),
        ]
    };
    let each = one_of_each();
    for update in &each {
        for changed in variations(update, &wrong) {
            let (_, mut view) = on_terminal();
            view.started(Some(&changed), Duration::ZERO).unwrap();
            for update in each.iter().chain([&changed]).chain(&each) {
                view.update_value(update).unwrap();
            }
            view.turn_ended("end_turn", Duration::MAX).unwrap();
            view.finish().unwrap();
        }
    }
    for changed in variations(&termination(), &wrong) {
        let mut view = piped();
        view.session_ended(&changed).unwrap();
        assert_ne!(texts(view).1, "", "{changed}");
    }
}

// contract 6: the terminal view is bounded: huge fields cost short lines
#[test]
fn huge_fields_cost_short_lines() {
    let huge = "x".repeat(1 << 20);
    let err = remarks(&[
        call(&huge, json!({"title": huge, "kind": huge, "locations": [{"path": huge}]})),
        call_update(&huge, json!({"status": "failed", "rawOutput": huge})),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": huge}),
        json!({"sessionUpdate": huge}),
        json!({"sessionUpdate": "plan", "entries": vec![json!({"content": huge}); 60]}),
    ]);
    assert!(err.lines().all(|line| line.chars().count() < 400), "{} characters", err.len());
    assert!(err.ends_with("\n  ... 10 more\n"));
    assert!(err.len() < 20_000, "{} bytes", err.len());
}

// contract 6: NO_COLOR and pipes get the same text without styles
#[test]
fn styles_are_only_added() {
    let shown = |colour: bool| {
        let screen = Screen { colour, ..PIPES };
        let mut view = View::new(Vec::new(), Vec::new(), screen, None);
        for update in one_of_each() {
            view.update_value(&update).unwrap();
        }
        view.failed(&turn_failed("no", None), Duration::ZERO).unwrap();
        view.session_ended(&termination()).unwrap();
        texts(view)
    };
    let ((plain_out, plain), (out, styled)) = (shown(false), shown(true));
    assert_eq!(out, plain_out);
    assert!(styled.contains("\u{1b}[32m✓\u{1b}[0m"), "{styled}");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    assert_eq!(anstream::adapter::strip_str(&styled).to_string(), plain);
}
