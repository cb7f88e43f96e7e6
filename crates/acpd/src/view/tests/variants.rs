//! Each kind of update, on pipes.

use super::*;

// contract 6: run streams text; the answer alone goes to stdout and ends with a newline
#[test]
fn the_answer_goes_to_stdout_and_the_rest_to_stderr() {
    let (out, err) = shown(&[
        thought("hm\nwell"),
        text("Hello, "),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
        text("world.\n\nBye"),
    ]);
    assert_eq!(out, "Hello, world.\n\nBye\n");
    assert_eq!(err, "┆ hm\n┆ well\nmode: plan\n");
}

// contract 6: run streams text; each piece is written when it comes
#[test]
fn text_is_written_as_it_comes() {
    let (terminal, mut view) = on_terminal();
    view.update_value(&text("Hel")).unwrap();
    assert_eq!(terminal.text(), "Hel");
    view.update_value(&text("lo")).unwrap();
    assert_eq!(terminal.text(), "Hello");
}

// contract 6: run streams text; two messages, or text around a tool call, do not run into one
#[test]
fn messages_are_lines_of_their_own() {
    let message = |id: &str, piece: &str| with(text(piece), json!({"messageId": id}));
    let (out, _) = shown(&[
        message("1", "one"),
        message("1", " and a half"),
        message("2", "two"),
        call("a", json!({"status": "completed"})),
        message("2", "three"),
    ]);
    assert_eq!(out, "one and a half\ntwo\nthree\n");
}

// contract 6: run streams text; links and embedded text are part of the answer, images cannot be
#[test]
fn other_content_is_told() {
    let content = |content: Value| json!({"sessionUpdate": "agent_message_chunk", "content": content});
    let (out, err) = shown(&[
        content(json!({"type": "resource_link", "name": "n", "uri": "file:///x"})),
        content(json!({"type": "resource", "resource": {"uri": "u", "text": " body\n"}})),
        content(json!({"type": "resource", "resource": {"uri": "u", "blob": "AA=="}})),
        content(json!({"type": "image", "mimeType": "image/png", "data": "AA=="})),
        content(json!({"type": "hologram"})),
    ]);
    assert_eq!(out, "file:///x body\n");
    assert_eq!(err, "[resource u]\n[image image/png]\n[hologram]\n");
}

// contract 6: run streams tool calls
#[test]
fn a_tool_call_is_a_line_when_it_opens_and_one_when_it_ends() {
    let done = json!({"status": "completed"});
    let err = remarks(&[
        call("a", json!({"title": "Terminal", "kind": "execute", "status": "pending"})),
        call_update(
            "a",
            json!({"title": "ls\n  -l", "status": "in_progress", "locations": [{"path": "/src"}]}),
        ),
        call_update("a", done.clone()),
        call_update("a", done.clone()),
        call(
            "b",
            json!({"title": "Read x", "kind": "read", "status": "completed", "locations": [
            {"path": "/src/x"}, {"path": "/src/y.rs", "line": 7}, {"path": "/etc/z"}, {"path": "/1"}, {"path": "/2"}]}),
        ),
    ]);
    assert_eq!(err, "● run    Terminal\n✓ run    ls -l\n✓ read   Read x  y.rs:7  /etc/z  /1  +1\n");
}

// contract 6: run streams tool calls, also those of agents that report before they announce
#[test]
fn an_update_of_an_unknown_call_opens_it() {
    let err = remarks(&[
        call_update("a", json!({"status": "in_progress"})),
        call_update("b", json!({"title": "B", "kind": "brew", "status": "completed"})),
        call("a", json!({"title": "A", "kind": "other", "status": "completed"})),
        call("b", json!({"title": "B again", "status": "completed"})),
        call("b", json!({"title": "new B", "status": "pending"})),
    ]);
    assert_eq!(err, "● tool   a\n✓ brew   B\n✓ tool   A\n● tool   new B\n○ tool   new B  not finished\n");
}

// contract 6: run streams tool calls; a failed one says why
#[test]
fn a_failed_call_gives_its_reason() {
    let reason = "```\n\nline 1\nline 2\nline 3\nline 4\n```";
    let err = remarks(&[
        call(
            "a",
            json!({"title": "A", "status": "failed", "rawOutput": "unused", "content": [
            {"type": "content", "content": {"type": "text", "text": reason}}]}),
        ),
        call("b", json!({"title": "B", "status": "failed", "rawOutput": {"error": "refused"}})),
        call("c", json!({"title": "C", "status": "failed"})),
    ]);
    assert_eq!(err, "✗ tool   A\n    line 1\n    line 2\n    line 3\n✗ tool   B\n    refused\n✗ tool   C\n");
}

// contract 6: run streams tool calls; an edit shows what it changed, once, when it is done
#[test]
fn an_edit_shows_its_diff() {
    let diff =
        json!({"type": "diff", "path": "/src/a.txt", "oldText": "one\ntwo\n", "newText": "one\n2\nthree\n"});
    let created = json!({"type": "diff", "path": "/tmp/b", "oldText": null, "newText": "new\n"});
    let note = json!({"type": "content", "content": {"type": "text", "text": "written"}});
    let err = remarks(&[
        call("a", json!({"title": "Edit", "kind": "edit", "content": [diff, created]})),
        call_update("a", json!({"status": "completed", "content": [note]})),
    ]);
    assert_eq!(
        err,
        "● edit   Edit\n✓ edit   Edit\n    a.txt +2 -1\n    - two\n    + 2\n    + three\n    /tmp/b +1 -0\n    + new\n"
    );
}

// contract 6: the terminal view shows the plan, again when it changes
#[test]
fn the_plan_is_a_checklist() {
    let plan = |status: &str| {
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "a", "status": "completed", "priority": "high"},
            {"content": "b\nb", "status": status, "priority": "low"}]})
    };
    let err = remarks(&[plan("pending"), plan("pending"), plan("in_progress")]);
    assert_eq!(err, "plan\n  ✓ a\n  ○ b b\nplan\n  ✓ a\n  ▸ b b\n");
    assert_eq!(remarks(&[json!({"sessionUpdate": "plan", "entries": []})]), "plan: empty\n");
}

// contract 6: the terminal view keeps facts about the session short
#[test]
fn facts_are_told_when_they_change() {
    let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"});
    let title = json!({"sessionUpdate": "session_info_update", "title": "A title"});
    let option = |value: Value| {
        json!({"sessionUpdate": "config_option_update", "configOptions": [
            {"id": "model", "currentValue": value}, {"id": "fast", "currentValue": true}]})
    };
    let err = remarks(&[
        mode.clone(),
        mode,
        title.clone(),
        title,
        json!({"sessionUpdate": "session_info_update", "title": null}),
        json!({"sessionUpdate": "session_info_update", "_meta": {}}),
        option(json!("small")),
        option(json!("big")),
        option(json!("big")),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "x"}]}),
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "me"}}),
    ]);
    assert_eq!(err, "mode: ask\ntitle: A title\nmodel: big\n");
}

// contract 6: the terminal view shows notices and compactions
#[test]
fn notices_and_compactions_are_remarks() {
    let notice = |severity: &str| json!({"sessionUpdate": "notice", "severity": severity, "title": "T", "description": "d"});
    let compaction = |status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": status, "error": "no room"});
    let err = remarks(&[
        notice("info"),
        notice("warning"),
        notice("error"),
        json!({"sessionUpdate": "notice", "severity": "info", "title": "alone"}),
        compaction("in_progress"),
        compaction("completed"),
        compaction("failed"),
        compaction("cancelled"),
        json!({"sessionUpdate": "compaction_summary_chunk", "content": {"type": "text", "text": "long"}}),
    ]);
    assert_eq!(
        err,
        "notice: T: d\nwarning: T: d\nerror: T: d\nnotice: alone\ncompacting the conversation...\n\
         conversation compacted\nwarning: compaction failed: no room\ncompaction cancelled: no room\n"
    );
}

// FR-8: an unknown update is not lost; the view names each once
// quirk unknown-update
#[test]
fn an_unknown_update_is_named() {
    let unknown = json!({"sessionUpdate": "subagent_update", "sessionId": "s"});
    let mut view = piped();
    view.update_value(&unknown).unwrap();
    view.update_value(&unknown).unwrap();
    view.update("{\"sessionUpdate\":\"plan_update\"}").unwrap();
    view.update("not json").unwrap();
    view.update("[1]").unwrap();
    view.update_value(&json!({"sessionUpdate": "tool_call", "title": "no id"})).unwrap();
    assert_eq!(
        texts(view).1,
        "· subagent_update\n· plan_update\n· an update that is not JSON\n· an update without a name\n\
         · a tool call without toolCallId\n"
    );
}
