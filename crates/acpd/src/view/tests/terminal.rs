//! The view on a terminal that shows both streams: redrawing, and lines that do not break into each other.

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// contract 6: run shows progress while the agent starts, and takes it away
#[test]
fn the_start_is_shown_and_cleared() {
    let (terminal, mut view) = on_terminal();
    view.starting("opencode").unwrap();
    assert_eq!(terminal.text(), "⠋ starting opencode...");
    view.tick(Duration::from_millis(3_200)).unwrap();
    assert_eq!(terminal.text(), "⠹ starting opencode... 3 s");
    view.started(Some(&json!({"name": "oc", "title": "OpenCode", "version": "1.18.33"})), seconds(4))
        .unwrap();
    assert_eq!(terminal.text(), "OpenCode 1.18.33 started in 4.0 s");
    view.tick(seconds(2)).unwrap();
    assert_eq!(terminal.text(), "OpenCode 1.18.33 started in 4.0 s\n⠋ working... 2 s");
    view.update_value(&text("Hi")).unwrap();
    view.tick(seconds(3)).unwrap();
    view.finish().unwrap();
    assert_eq!(terminal.text(), "OpenCode 1.18.33 started in 4.0 s\n\nHi");
}

// contract 6: progress is for terminals; a pipe gets plain lines
#[test]
fn a_pipe_gets_no_progress() {
    let mut view = piped();
    view.starting("opencode").unwrap();
    view.tick(seconds(3)).unwrap();
    view.started(None, seconds(4)).unwrap();
    view.tick(seconds(9)).unwrap();
    assert_eq!(texts(view), (String::new(), "opencode started in 4.0 s\n".to_owned()));
    // What a daemon says of an agent that it has not started.
    let mut view = piped();
    view.starting("example").unwrap();
    view.started(Some(&json!({"name": "example", "version": "unknown"})), seconds(4)).unwrap();
    assert_eq!(texts(view), (String::new(), "example started in 4.0 s\n".to_owned()));
}

// contract 6: an open tool call is redrawn in place until it ends
#[test]
fn open_tool_calls_are_redrawn() {
    let (terminal, mut view) = on_terminal();
    view.started(None, seconds(0)).unwrap();
    view.update_value(&text("I look.")).unwrap();
    view.update_value(&call("a", json!({"title": "Terminal", "kind": "execute"}))).unwrap();
    view.update_value(&call("b", json!({"title": "Read", "kind": "read"}))).unwrap();
    let head = "the agent started in 0 ms\n\nI look.\n\n";
    assert_eq!(terminal.text(), format!("{head}⠋ run    Terminal\n⠋ read   Read"));
    view.update_value(&call_update("a", json!({"title": "ls"}))).unwrap();
    view.tick(Duration::from_millis(100)).unwrap();
    assert_eq!(terminal.text(), format!("{head}⠙ run    ls\n⠙ read   Read"));
    view.update_value(&call_update("b", json!({"status": "completed"}))).unwrap();
    assert_eq!(terminal.text(), format!("{head}✓ read   Read\n⠙ run    ls"));
    view.update_value(&text("Meanwhile")).unwrap();
    assert_eq!(terminal.text(), format!("{head}✓ read   Read\n\nMeanwhile"));
    view.update_value(&text(" this.\n")).unwrap();
    assert_eq!(terminal.text(), format!("{head}✓ read   Read\n\nMeanwhile this.\n\n⠙ run    ls"));
    view.update_value(&call_update("a", json!({"status": "failed"}))).unwrap();
    view.turn_ended("end_turn", seconds(5)).unwrap();
    view.finish().unwrap();
    assert_eq!(
        terminal.text(),
        format!(
            "{head}✓ read   Read\n\nMeanwhile this.\n\n✗ run    ls\n\n✓ end_turn · 5.0 s · 2 tool calls, 1 failed"
        )
    );
}

// contract 6: the view stays within a screen, however many calls are open
#[test]
fn few_open_calls_are_drawn() {
    let (terminal, mut view) = on_terminal();
    view.started(None, seconds(0)).unwrap();
    for index in 0..1_000 {
        view.update_value(&call(&index.to_string(), json!({}))).unwrap();
    }
    let drawn = terminal.text();
    assert_eq!(drawn.lines().count(), 1 + 6, "{drawn}");
    assert!(drawn.ends_with("\n  and 507 more"), "{drawn}");
}

// contract 6: a line of the view is one row, so that redrawing takes away what it drew
#[test]
fn live_lines_do_not_wrap() {
    let (terminal, mut view) = on_terminal();
    view.started(None, seconds(0)).unwrap();
    view.update_value(&call("a", json!({"title": "漢".repeat(300)}))).unwrap();
    let raw = terminal.raw.borrow();
    let line = raw.rsplit_once("\u{1b}[?7l").expect("wrapping is switched off").1;
    assert!(line.ends_with("\u{1b}[?7h") && !line.contains('\n'), "{line}");
}

// contract 6: a remark waits for the end of the line; a thought does not run into the answer
#[test]
fn nothing_breaks_into_a_line() {
    let (terminal, mut view) = on_terminal();
    for update in [
        thought("hm"),
        json!({"sessionUpdate": "session_info_update", "title": "T"}),
        thought("m"),
        text("Hel"),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
        text("lo\nBye"),
        json!({"sessionUpdate": "session_info_update", "title": "T2"}),
        thought("\n\nso"),
    ] {
        view.update_value(&update).unwrap();
    }
    view.finish().unwrap();
    assert_eq!(terminal.text(), "┆ hmm\n\ntitle: T\n\nHello\nBye\n\nmode: plan\ntitle: T2\n\n┆ so");
}

// contract 6: what the person has to read now does not wait for the end of the agent's line
#[test]
fn an_announcement_does_not_wait_for_the_line() {
    let terminal = Terminal::default();
    let mut view = View::new(terminal.clone(), terminal.clone(), TERMINAL, None);
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "half a li"}});
    view.update_value(&chunk).unwrap();
    view.announce("cancelling").unwrap();
    assert!(terminal.text().contains("half a li\n\ncancelling"), "{}", terminal.text());
    view.interrupted().unwrap();
    assert!(terminal.text().ends_with("cancelling\n") || terminal.text().ends_with("cancelling"));
}
