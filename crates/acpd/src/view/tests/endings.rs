//! How turns and sessions end, in words.

use super::*;

fn ended(info: Value) -> String {
    let mut view = piped();
    view.starting("opencode").unwrap();
    view.session_ended(&info).unwrap();
    texts(view).1
}

// contract 6: run says how the turn ended
#[test]
fn the_summary_says_how_the_turn_went() {
    let mut view = piped();
    view.update_value(&text("Hi")).unwrap();
    view.update_value(&call("a", json!({"title": "A", "status": "completed"}))).unwrap();
    view.update_value(&json!({"sessionUpdate": "usage_update", "used": 12_345, "size": 1_000_000,
        "cost": {"amount": 0.00018, "currency": "USD"}}))
        .unwrap();
    view.turn_ended("end_turn", Duration::from_millis(12_345)).unwrap();
    assert_eq!(
        texts(view).1,
        "✓ tool   A\n✓ end_turn · 12.3 s · 1 tool call · 12,345 of 1,000,000 tokens · 0.0002 USD\n"
    );
}

// contract 6: run says why a turn stopped otherwise
#[test]
fn other_stop_reasons_are_explained() {
    for (reason, expected) in [
        ("max_tokens", "the model reached its token limit; the answer may be incomplete"),
        ("max_turn_requests", "the agent reached its limit of model requests for one turn"),
        ("refusal", "the agent refused to go on"),
        ("bored", "the agent gave a reason that acpd does not know"),
    ] {
        let mut view = piped();
        view.update_value(&call("a", json!({"title": "A"}))).unwrap();
        view.turn_ended(reason, Duration::from_secs(125)).unwrap();
        let (_, err) = texts(view);
        assert_eq!(
            err,
            format!(
                "● tool   A\n○ tool   A  not finished\n! {reason} · 2 m 05 s · 1 tool call\n  {expected}\n"
            )
        );
    }
}

// contract 6: a turn that was cancelled says so once
#[test]
fn a_cancelled_turn_is_one_line() {
    let mut view = piped();
    view.turn_ended("cancelled", Duration::from_millis(812)).unwrap();
    assert_eq!(texts(view).1, "! cancelled · 812 ms\n");
    // An agent may end a turn as if it had not been told to.
    let mut view = piped();
    view.cut_turn_ended("end_turn", Duration::from_millis(812)).unwrap();
    assert_eq!(texts(view).1, "! end_turn · 812 ms\n");
}

// contract 6, AU-1: an agent that wants a login is no failed turn; what it says of the ways to log in is told
#[test]
fn a_login_is_told_with_its_ways() {
    let ways = ["Log in with A: run `a login`".to_owned(), "B".to_owned()];
    let command = Some("`acpd agents login a`");
    for (ways, command, last) in [
        (&ways[..1], None, "next: log in, then try again: Log in with A: run `a login`"),
        (&ways[..1], command, "next: `acpd agents login a`, then try again: Log in with A: run `a login`"),
        (
            &ways[..],
            None,
            "next: log in, in one of the ways that a names, then try again:\n    Log in with A: run `a login`\n    B",
        ),
        (
            &ways[..],
            command,
            "next: `acpd agents login a`, in one of the ways that a names, then try again:\n    Log in with A: run \
             `a login`\n    B",
        ),
        (&[], None, "next: log in with the agent's own program, then try again: a names no way"),
        (&[], command, "next: `acpd agents login a`, then try again"),
    ] {
        let mut view = piped();
        view.named("a");
        let details = Some("no key".to_owned());
        let failed = Failed {
            step: Step::Login,
            message: "Authentication required",
            details,
            ended: None,
            logins: ways,
            command: command.map(str::to_owned),
        };
        view.failed(&failed, Duration::from_millis(5)).unwrap();
        assert_eq!(
            texts(view).1,
            format!("✗ the agent wants a login: Authentication required\n  after 5 ms\n  no key\n  {last}\n")
        );
    }
}

// contract 6: run shows the termination record; contract 1.2: stderr is the head and the tail
#[test]
fn a_crash_is_shown_with_its_stderr() {
    let lines =
        |range: std::ops::RangeInclusive<u32>| range.map(|n| format!("line {n}\n")).collect::<String>();
    let info = json!({"reason": "error", "terminatedBy": "agent", "message": "agent exited with exit status: 1",
        "exitCode": 1, "cause": "agent_crash", "leaked": true,
        "stderr": {"head": lines(1..=50), "tail": lines(201..=250), "truncated": true, "totalLines": 250}});
    let stderr = "  stderr of the agent, 250 lines:
  │ line 1
  │ line 2
  │ line 3
  │ line 4
  │ line 5
  │ line 6
  │ line 7
  │ line 8
  ┊ 230 lines left out
  │ line 239
  │ line 240
  │ line 241
  │ line 242
  │ line 243
  │ line 244
  │ line 245
  │ line 246
  │ line 247
  │ line 248
  │ line 249
  │ line 250
";
    let record =
        "  session: error by agent · agent crash · exit code 1 · processes it left behind were killed
  next: its stderr is the best lead; `acpd agents check opencode` shows if it starts at all
";
    assert_eq!(
        ended(info.clone()),
        format!("{stderr}✗ the session failed: agent exited with exit status: 1\n{record}")
    );
    // The same message is not said twice, and what went wrong is never scrolled away by the stderr.
    let mut view = piped();
    view.starting("opencode").unwrap();
    view.failed(&turn_failed("agent exited with exit status: 1", Some(&info)), Duration::from_millis(5))
        .unwrap();
    assert_eq!(
        texts(view).1,
        format!("{stderr}✗ the turn failed: agent exited with exit status: 1\n  after 5 ms\n{record}")
    );
}

// contract 6: what a record says is not told again behind an error that says it, however long it is
#[test]
fn the_reason_of_a_failed_start_is_told_once() {
    for path in ["/bin".to_owned(), "/some/place:".repeat(40)] {
        let reason = format!("command not found: x (looked in PATH: {path})");
        let info =
            json!({"reason": "error", "terminatedBy": "agent", "message": reason, "cause": "spawn_failed"});
        let message = format!("agent a did not start: {reason}");
        let mut view = piped();
        let failed = Failed {
            step: Step::Start,
            message: &message,
            details: None,
            ended: Some(&info),
            logins: &[],
            command: None,
        };
        view.failed(&failed, Duration::ZERO).unwrap();
        let shown = texts(view).1;
        assert!(shown.starts_with("✗ no session was started: agent a did not start: command"), "{shown}");
        assert_eq!(shown.matches("command not found").count(), 1, "{shown}");
    }
}

// contract 1.2: stderr that was not truncated is all in the head
#[test]
fn a_short_stderr_is_shown_in_full() {
    let info = |stderr: &str, total: u64| {
        json!({"reason": "error", "terminatedBy": "daemon", "message": "gone", "signal": "SIGKILL",
            "stderr": {"head": stderr, "truncated": false, "totalLines": total}})
    };
    assert_eq!(
        ended(info("  a\n\tb", 2)),
        "  stderr of the agent, 2 lines:\n  │   a\n  │  b\n✗ the session failed: gone\n  session: error by daemon · killed by SIGKILL\n"
    );
    let long: String = (1..=50).map(|n| format!("{n}\n")).collect();
    let shown = ended(info(&long, 50));
    assert!(
        shown.contains("  │ 8\n  ┊ 30 lines left out\n  │ 39\n") && shown.contains("  │ 50\n✗ the session"),
        "{shown}"
    );
}

// contract 6: run says how the session ended, and what to do about it
#[test]
fn each_bad_end_has_a_hint() {
    for (cause, expected) in [
        ("spawn_failed", "is the command of [agents.opencode] installed"),
        ("initialize_timeout", "`[timeouts] initialize`"),
        ("protocol_error", "speak ACP on stdout"),
        ("agent_exit", "`acpd agents check opencode`"),
        ("out_of_memory", "more memory"),
        ("daemon_lost", "run the prompt again"),
        ("daemon_upgrade", "run the prompt again"),
        ("fenced", "cut off from its fleet"),
        ("superseded", "this state directory"),
    ] {
        let shown =
            ended(json!({"reason": "error", "terminatedBy": "agent", "message": "m", "cause": cause}));
        let hint = shown.lines().last().unwrap_or_default();
        assert!(hint.starts_with("  next: ") && hint.contains(expected), "{cause}: {shown}");
    }
    let killed = json!({"reason": "error", "message": "m", "cause": "agent_crash", "signal": "SIGKILL"});
    assert!(ended(killed).contains("out-of-memory killer"));
    // What no program does to itself is not to be looked for in its stderr; a fault of its own is.
    for (signal, is_outside) in [
        ("SIGTERM", true),
        ("SIGINT", true),
        ("SIGHUP", true),
        ("SIGQUIT", true),
        ("SIGSEGV", false),
        ("SIGABRT", false),
    ] {
        let stderr = json!({"head": "x\n", "tail": null, "totalLines": 1});
        let crashed = json!({"reason": "error", "message": "m", "cause": "agent_crash", "signal": signal, "stderr": stderr});
        let shown = ended(crashed);
        let says_so = shown.contains(&format!("something outside ended it with {signal}"));
        assert_eq!((says_so, shown.contains("best lead")), (is_outside, !is_outside), "{shown}");
    }
}

// contract 1.2: completed, error, terminated
#[test]
fn a_good_end_is_one_line() {
    assert_eq!(
        ended(json!({"reason": "completed", "terminatedBy": "daemon", "cause": "client_close"})),
        "session completed by daemon\n"
    );
    assert_eq!(
        ended(json!({"reason": "terminated", "terminatedBy": "daemon", "initiator": "ci"})),
        "! session terminated by ci\n"
    );
    assert_eq!(ended(json!(null)), "✗ the session failed: no message\n  session: ended by ?\n");
}

// contract 6: run says what a turn came to: what was changed, but not what failed, bounded
#[test]
fn the_summary_names_what_was_changed() {
    let diff =
        |path: &str, new: &str| json!([{"type": "diff", "path": path, "oldText": "a\n", "newText": new}]);
    let done = |id: &str, kind: &str, fields: Value| {
        call(id, with(json!({"kind": kind, "status": "completed"}), fields))
    };
    let mut view = piped();
    for update in [
        done("1", "edit", json!({"content": diff("/src/a", "b\nc\n")})),
        done("2", "edit", json!({"content": diff("/src/a", "a\nd\n")})),
        done("3", "delete", json!({"locations": [{"path": "/src/b", "line": 3}]})),
        done("4", "move", json!({"locations": [{"path": "/src/c"}, {"path": "/d"}]})),
        done("5", "read", json!({"locations": [{"path": "/src/e"}]})),
        call("6", json!({"kind": "edit", "status": "failed", "content": diff("/src/f", "x")})),
        call("7", json!({"kind": "edit", "content": diff("/src/g", "x")})),
    ] {
        view.update_value(&update).unwrap();
    }
    view.turn_ended("end_turn", Duration::ZERO).unwrap();
    let shown = texts(view).1;
    let summary = "  edited   a +3 -1\n  deleted  b\n  moved    c\n  moved    /d\n\
                   ✓ end_turn · 0 ms · 7 tool calls, 1 failed\n";
    assert!(shown.ends_with(summary) && shown.matches("  edited").count() == 1, "{shown}");

    let mut view = piped();
    for n in 0..1_000 {
        let path = format!("/src/{n}");
        view.update_value(&done(&path, "edit", json!({"locations": [{"path": path}]}))).unwrap();
    }
    view.failed(&turn_failed("no", None), Duration::ZERO).unwrap();
    let shown = texts(view).1;
    assert!(shown.contains("  edited   9\n  and 990 more files\n✗ the turn failed: no\n"), "{shown}");
}
