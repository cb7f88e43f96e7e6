//! Quirks of real agents, each played by the example agent, and the behaviour of acpd in front of a client.

use crate::answering::{choose, until_permission, until_withdrawn};
use acpd_e2e::{Asked, Client, Exit, Scratch};
use serde_json::{Value, json};

/// A session whose messages are not judged by the schema, which quirks break.
fn session(scratch: &Scratch) -> (Client, String) {
    let (mut client, session) = scratch.session("example");
    client.tolerant();
    (client, session)
}

/// Plays a quirk, and says "there" behind it.
fn begin(client: &mut Client, session: &str, quirk: &str) -> Asked {
    client.prompt(session, &format!("quirk {quirk}\nthere"))
}

/// Plays a quirk in a turn that ends well: the text of the agent, without what was said behind it.
fn text(client: &mut Client, session: &str, quirk: &str) -> String {
    let asked = begin(client, session, quirk);
    assert_eq!(client.result(&asked)["stopReason"], "end_turn", "{quirk}");
    let text = client.text_since(&asked, session);
    let text = text.strip_suffix("there").unwrap_or_else(|| panic!("{quirk}: the turn went on, and {text}"));
    text.trim_end().to_owned()
}

// quirk discriminator-last
// quirk bytes-before-frame
// quirk kind-in-other-members (agents whose libraries sort members): the kind of an update is that of the update itself
// quirk meta-first (agents with tracing): the update is found behind any amount of metadata
// quirk line-ends-of-windows (programs written for Windows): CR and empty lines are taken for what they are
// quirk not-json (agents that log to standard output): the lines are skipped, and the messages between them are heard
// quirk bad-utf8 (agents that cut text by bytes): the byte is replaced by U+FFFD, and the message is understood
// quirk huge-line (agents that send whole files): a line of up to 64 MiB passes; the limit can be configured
// quirk huge-commands (agents with many skills): the list is kept and sent on whole
// quirk unknown-update (agents ahead of the protocol): clients get it as it came, and `acpd run` names it once
// quirk unknown-notification (agents with extensions of their own): clients get it as it came
// quirk error-without-id (agents that cannot read a line): it is logged, and answers nothing
// quirk unknown-session-update (agents with sub-sessions of their own): it is dropped, with a line in the log
#[test]
fn a_message_is_understood_however_it_is_written() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    for (quirk, expected) in [
        ("discriminator-last", "quince jam and more"),
        ("kind-in-other-members", "medlar jelly"),
        ("meta-first", "damson cheese"),
        ("bytes-before-frame", "colour window nul mark line prompt"),
        ("line-ends-of-windows", "carriage"),
        ("not-json", ""),
        ("bad-utf8", "\u{fffd}"),
        ("huge-line", "00000000 abcdef"),
        ("huge-commands", ""),
        ("unknown-update", ""),
        ("unknown-notification", ""),
        ("error-without-id", ""),
        ("unknown-session-update", ""),
    ] {
        let text = text(&mut client, &session, quirk);
        assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{quirk}: {text}");
    }
    let passed_on = |what: &str| client.received().iter().any(|message| message.raw.contains(what));
    assert!(passed_on("example_weather_update") && passed_on("example/notify/session/weather"));
    assert!(passed_on(&"long text ".repeat(56_000)));
    assert!(!passed_on("nobody-began-this"));
    client.finish();
    // acpd itself has understood them, not the client alone.
    let state = scratch.state().display().to_string();
    let export = ["sessions", "export", &session, "--format", "markdown", "--state-dir", &state];
    let (exit, page, err) = scratch.run(&export);
    assert_eq!(exit, Exit::Code(0), "{err}");
    for words in ["quince jam and more", "Boil quinces", "medlar jelly", "Peel medlars", "damson cheese"] {
        assert!(page.contains(words), "{words:?} is missing: {page}");
    }
}

// quirk half-surrogate
#[test]
fn what_is_cut_in_the_middle_of_a_character_is_shown_and_asked() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    let asked = begin(&mut client, &session, "half-surrogate");
    let question = until_permission(&mut client);
    let params = &question.json["params"];
    assert_eq!(params["toolCall"]["title"], "Greet \u{fffd}");
    assert_eq!(params["options"][0]["name"], "Greet \u{fffd}");
    choose(&mut client, &question, "yes");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let text = client.text_since(&asked, &session);
    assert!(text.starts_with("Good morning \u{fffd}\u{fffd} neighbour"), "{text}");
    client.finish();
}

// quirk half-surrogate-prompt (editors in JavaScript): the half is replaced by U+FFFD, and the agent gets the prompt
#[test]
fn a_prompt_that_is_cut_in_the_middle_of_a_character_is_understood() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    let prompt = r#""prompt":[{"type":"text","text":"Good morning \ud83d"}]"#;
    client.write_line(format!(
        r#"{{"jsonrpc":"2.0","id":"half","method":"session/prompt","params":{{"sessionId":"{session}",{prompt}}}}}"#
    ));
    let answer = client.until("the answer", |message| message.json["id"] == "half");
    assert_eq!(answer.json["result"]["stopReason"], "end_turn", "{}", answer.raw);
    client.finish();
}

// quirk question-before-call (most agents): the question is asked with what it has of the tool call
// quirk call-by-id (agents that show the change first): the question is asked as it came; acpd's own views merge the tool
// call into it
// quirk two-of-a-kind (agents with several scopes of "always"): options are told apart by their ids alone
// quirk always-first (agents that offer "always" first): clients get the order of the agent; a mode takes the option that
// holds once, wherever it stands
// quirk text-ids (agents that number with UUIDs): the answer carries the id of the agent, type and all
// quirk reject-ends-turn (agents that take "no" as a cancel): the turn ends as the agent says
#[test]
fn a_question_is_asked_as_it_came_and_answered_with_the_option_that_was_chosen() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    for (quirk, option, stop_reason) in [
        ("question-before-call", "yes", "end_turn"),
        ("call-by-id", "no", "end_turn"),
        ("two-of-a-kind", "session", "end_turn"),
        ("two-of-a-kind", "ever", "end_turn"),
        ("always-first", "once", "end_turn"),
        ("question-as-permission", "tue", "end_turn"),
        ("text-ids", "yes", "end_turn"),
        ("reject-ends-turn", "yes", "end_turn"),
        ("reject-ends-turn", "no", "cancelled"),
    ] {
        let asked = begin(&mut client, &session, quirk);
        let question = until_permission(&mut client);
        let ids: Vec<&Value> = question.json["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["optionId"])
            .collect();
        match quirk {
            "two-of-a-kind" => assert_eq!(ids, ["once", "session", "ever", "no"]),
            "always-first" => assert_eq!(ids, ["always", "once", "no"]),
            _ => assert!(ids.len() > 1),
        }
        choose(&mut client, &question, option);
        assert_eq!(client.result(&asked)["stopReason"], stop_reason, "{quirk} {option}");
        let text = client.text_since(&asked, &session);
        assert_eq!(text, format!("permission selected {option}\nthere"), "{quirk}");
    }
    client.finish();
}

// quirk always-first
// quirk two-of-a-kind
// quirk question-before-call
// quirk call-by-id
#[test]
fn a_mode_takes_what_holds_once_wherever_it_stands() {
    let scratch = Scratch::new();
    for (mode, quirk, option) in [
        ("bypassPermissions", "always-first", "once"),
        ("bypassPermissions", "two-of-a-kind", "once"),
        ("acceptEdits", "question-before-call", "yes"),
        ("deny", "call-by-id", "no"),
    ] {
        let mut client = scratch.stdio("example");
        client.initialize();
        let params = json!({"cwd": scratch.work(), "mcpServers": [],
            "_meta": {"sandboxagent.dev": {"permissionMode": mode}}});
        let session = client.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(text(&mut client, &session, quirk), format!("permission selected {option}"), "{quirk}");
        client.finish();
    }
}

// quirk question-between-turns (agents that work in the background): it is asked like any other, and the next cancel settles it
// quirk unknown-request (agents with extensions of their own): it is answered with -32601 at once, so that the agent goes on
// quirk question-withdrawn
#[test]
fn a_question_needs_no_turn_and_an_unknown_request_has_an_answer() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    let refused = text(&mut client, &session, "unknown-request");
    assert!(refused.starts_with("example/drainMidTurnQueue failed: -32601"), "{refused}");
    assert_eq!(text(&mut client, &session, "question-withdrawn"), "permission cancelled");
    let asked = client.prompt(&session, "quirk question-between-turns");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let question = until_permission(&mut client);
    choose(&mut client, &question, "yes");
    client.until_text("permission selected yes");
    let asked = client.prompt(&session, "quirk question-between-turns");
    client.result(&asked);
    let question = until_permission(&mut client);
    client.notify("session/cancel", &json!({"sessionId": session}));
    until_withdrawn(&mut client, &question);
    client.until_text("permission cancelled");
    client.finish();
}

// quirk updates-between-turns (most agents): they are recorded, shown and part of the state like any other
// quirk late-text (agents that answer first): the text is recorded and shown behind the answer
// quirk blank-title (agents that title by the first line): the title counts as none
// quirk mode-told-twice (agents with modes and options): both are kept, and agree
#[test]
fn updates_count_whenever_they_come() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    text(&mut client, &session, "blank-title");
    let asked = client.prompt(&session, "quirk late-text\nquirk updates-between-turns");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    client.until_text("better late than never");
    client.until("the mode", |message| message.update_kind() == Some("current_mode_update"));
    assert_eq!(text(&mut client, &session, "mode-told-twice"), "");
    let mut later = client
        .request("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    client.result(&later);
    let again: Vec<&str> = client.since(&later).iter().filter_map(|message| message.update_kind()).collect();
    for kind in ["session_info_update", "usage_update", "available_commands_update", "current_mode_update"] {
        assert!(again.contains(&kind), "{kind} is replayed: {again:?}");
    }
    assert!(client.text_since(&later, &session).contains("better late than never"));
    later = client.request("session/list", &json!({}));
    let listed = client.result(&later)["sessions"][0].clone();
    assert_eq!(listed["title"], "Between turns", "{listed}");
    client.finish();
}

// quirk end-without-text (agents whose model failed): the turn ends as the agent says
// quirk error-as-text (agents whose model failed): the text is shown, and the turn ends as the agent says
// quirk error-code-of-http (agents that pass on their model's errors): the code reaches the client unchanged
// quirk error-with-details (agents in TypeScript): clients get the error unchanged, and `acpd run` shows the details
// quirk unknown-stop-reason (agents ahead of the protocol): the reason reaches the client unchanged, and is recorded
// quirk cancel-ends-turn (agents that are done when the cancel comes): the answer of the agent is the answer
// quirk cancel-fails (agents that are cancelled in a tool): a client that cancelled is answered `cancelled`, which is no error
// quirk text-after-cancel (agents that stream by another thread): it is recorded and shown behind the answer
// quirk cancel-ignored (agents that retry a broken connection): the turn is ended after the time for a cancel
#[test]
fn a_turn_ends_once_whatever_its_answer_is() {
    let scratch = Scratch::new().timeout("cancel", "300ms");
    let (mut client, session) = session(&scratch);
    let asked = client.prompt(&session, "quirk end-without-text");
    assert_eq!(client.result(&asked), json!({"stopReason": "end_turn"}));
    assert_eq!(text(&mut client, &session, "error-as-text"), "API Error: 429 Too Many Requests");
    let asked = client.prompt(&session, "quirk error-code-of-http");
    let error = client.error(&asked);
    assert_eq!((&error["code"], &error["message"]), (&json!(500), &json!("the model's server failed")));
    let asked = client.prompt(&session, "quirk error-with-details");
    assert_eq!(client.error(&asked)["data"]["details"], "429 Too Many Requests: retry in 20 s");
    let asked = client.prompt(&session, "quirk unknown-stop-reason");
    assert_eq!(client.result(&asked)["stopReason"], "example_reason");
    for quirk in ["cancel-ends-turn", "cancel-fails", "text-after-cancel", "cancel-ignored"] {
        let asked = client.prompt(&session, &format!("begun\nquirk {quirk}"));
        client.until_text("begun");
        client.notify("session/cancel", &json!({"sessionId": session}));
        let expected = if quirk == "cancel-ends-turn" { "end_turn" } else { "cancelled" };
        assert_eq!(client.result(&asked)["stopReason"], expected, "{quirk}");
        if quirk == "text-after-cancel" {
            client.until_text("one more thing");
        }
    }
    client.finish();
}

// quirk file-outside (agents that keep plans of their own): it is refused, and the person is told once what would change it;
// the directory of a known agent is served beside the session's
// quirk file-missing (agents that create files by reading them first): -32002 with the path, in words that agents look for
// quirk relative-path (agents whose models shorten paths): it is refused, and the error says that the path is to be absolute
// quirk terminal-without-directory (agents that run a shell): the command runs in the session's directory
// quirk line-as-command
// quirk terminal-left-running (agents that forget their commands): the command ends with the cancelled turn
#[test]
fn files_and_commands_are_served_as_far_as_they_can_be() {
    let scratch = Scratch::new();
    let (mut client, session) = session(&scratch);
    for (quirk, words) in [
        ("file-outside", ["read failed", "outside"]),
        ("file-missing", ["read failed: -32002", "not found"]),
        ("relative-path", ["read failed: -32602", "absolute"]),
        ("terminal-without-directory", ["exit code 0", "/work"]),
        ("line-as-command", ["exit code 0", "one\ntwo"]),
    ] {
        let text = text(&mut client, &session, quirk);
        assert!(words.iter().all(|word| text.contains(word)), "{quirk}: {text}");
    }
    let asked = client.prompt(&session, "quirk terminal-left-running");
    client.until_text("terminal/create");
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.result(&asked)["stopReason"], "cancelled");
    client.is_alone_but_for("example-agent");
    client.finish();
}
