//! Permission requests of one client's session.

use crate::answering::{answer, choose, times_asked, until_permission, until_refused, until_withdrawn};
use acpd_e2e::{Client, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn meta(holder: &Value) -> &Value {
    &holder["_meta"]["sandboxagent.dev"]
}

fn state(client: &mut Client, session: &str) -> Value {
    let status = client.call("session/status", &json!({"sessionId": session}));
    meta(&status)["state"].clone()
}

// contract 2.1, PE-1: the request as it is, and the option as it was chosen
#[test]
fn the_request_and_the_choice_pass_unchanged() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for option in ["allow-once", "allow-always", "reject-once", "reject-always"] {
        let prompt = client.prompt(&session, "ask edit Change it");
        let asked = until_permission(&mut client);
        let params = &asked.json["params"];
        assert_eq!(params["sessionId"], session);
        let names: Vec<&str> =
            params["options"].as_array().unwrap().iter().map(|o| o["optionId"].as_str().unwrap()).collect();
        assert_eq!(names, ["allow-once", "allow-always", "reject-once", "reject-always"]);
        let call = &params["toolCall"];
        assert_eq!((&call["kind"], &call["rawInput"]), (&json!("edit"), &json!({"title": "Change it"})));
        assert_eq!(call["_meta"], json!({"example": {"kind": "edit"}}));
        assert_eq!(params["_meta"], json!({"example": {"asked": "Change it"}}));
        assert!(call["locations"].is_array() && call["content"].is_array());
        choose(&mut client, &asked, option);
        assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
        let text = client.text_since(&prompt, &session);
        assert!(text.contains(&format!("permission selected {option}")), "{text}");
    }
    client.finish();
}

// contract 1.3: a session whose agent waits for an answer is `waiting`
#[test]
fn a_session_that_waits_says_so() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(state(&mut client, &session), "idle");
    let prompt = client.prompt(&session, "ask edit");
    let asked = until_permission(&mut client);
    assert_eq!(state(&mut client, &session), "waiting");
    choose(&mut client, &asked, "allow-once");
    client.result(&prompt);
    assert_eq!(state(&mut client, &session), "idle");
    client.finish();
}

// PE-1, PE-2: what was not offered, or comes late, is refused toward its sender; the question stays open
#[test]
fn a_bad_answer_changes_nothing() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "ask edit");
    let mut asked = until_permission(&mut client);
    for (bad, reason) in [
        (json!({"outcome": {"outcome": "selected", "optionId": "maybe"}}), "\"maybe\" was not offered"),
        (json!({"outcome": {"outcome": "selected"}}), "the id of an option is required"),
        (json!({}), "selected or cancelled is required"),
        (json!("yes"), "selected or cancelled is required"),
    ] {
        answer(&mut client, &asked, &bad);
        let said = until_refused(&mut client);
        assert!(said.contains(reason), "{said}");
        let again = until_permission(&mut client);
        assert_ne!(again.json["id"], asked.json["id"]);
        assert_eq!(again.json["params"], asked.json["params"]);
        asked = again;
    }
    choose(&mut client, &asked, "allow-once");
    client.result(&prompt);
    choose(&mut client, &asked, "reject-once");
    assert_eq!(until_refused(&mut client), "it needs no answer any more");
    // An answer to nothing is nobody's, and no harm.
    client.write_line(r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#);
    client.write_line(r#"{"jsonrpc":"2.0","id":"acpd","result":{}}"#);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}

// PE-2: a client that answers an error decides nothing; the next one to come is asked
#[test]
fn an_error_is_no_answer() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "ask edit");
    let asked = until_permission(&mut client);
    let error = json!({"code": -32601, "message": "not here"});
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}).to_string());
    assert_eq!(state(&mut client, &session), "waiting");
    client.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    let again = until_permission(&mut client);
    choose(&mut client, &again, "reject-once");
    client.result(&prompt);
    client.finish();
}

// PR-5, PR-4: a cancel answers what is open at once, and withdraws it
#[test]
fn a_cancel_answers_what_is_open() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "ask edit");
    let asked = until_permission(&mut client);
    client.notify("session/cancel", &json!({"sessionId": session}));
    until_withdrawn(&mut client, &asked);
    assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
    assert!(client.text_since(&prompt, &session).contains("permission cancelled"));
    choose(&mut client, &asked, "allow-once");
    assert_eq!(until_refused(&mut client), "it needs no answer any more");
    // The next turn asks anew.
    let prompt = client.prompt(&session, "ask edit");
    let asked = until_permission(&mut client);
    choose(&mut client, &asked, "allow-once");
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    client.finish();
}

// PR-5, SE-14, contract 1.1: every end withdraws what is open, before it is told
#[test]
fn an_end_withdraws_what_is_open() {
    for method in ["session/close", "_sandboxagent/session/terminate", "session/delete", ""] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let prompt = client.prompt(&session, "ask edit");
        let asked = until_permission(&mut client);
        if method.is_empty() {
            let pid = i32::try_from(scratch.mark().running("example-agent")[0].pid).unwrap();
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        } else {
            client.request(method, &json!({"sessionId": session}));
        }
        until_withdrawn(&mut client, &asked);
        assert_eq!(client.ends().len(), 0, "{method}: the end comes last");
        client.answer(&prompt);
        while client.ends().is_empty() {
            client.next_message();
        }
        client.is_alone();
        client.finish();
    }
}

// PR-10: what the agent takes back is answered `cancelled`, and withdrawn
// quirk question-withdrawn (agents that stop what they asked for): it is closed in every client, and answered
// `cancelled`
#[test]
fn what_the_agent_takes_back_is_withdrawn() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "withdraw edit");
    let asked = until_permission(&mut client);
    until_withdrawn(&mut client, &asked);
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    assert!(client.text_since(&prompt, &session).contains("permission cancelled"));
    client.finish();
}

// PE-4: nobody answers in time: the agent's own way of saying no, and never an allow option
#[test]
fn a_timeout_rejects() {
    let scratch = Scratch::new().timeout("permission", "200ms");
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "ask edit");
    let asked = until_permission(&mut client);
    until_withdrawn(&mut client, &asked);
    client.result(&prompt);
    assert!(client.text_since(&prompt, &session).contains("permission selected reject-once"));
    client.finish();
}

// contract 2.1: what a mode answers, nobody is asked; each answer is in the log, with the mode
#[test]
fn a_mode_answers_by_itself() {
    for (mode, kind, option) in [
        ("bypassPermissions", "execute", Some("allow-once")),
        ("acceptEdits", "edit", Some("allow-once")),
        ("acceptEdits", "execute", None),
        ("deny", "edit", Some("reject-once")),
        ("default", "edit", None),
    ] {
        let scratch = Scratch::new();
        let mut client = scratch.stdio("example");
        client.initialize();
        let params = json!({"cwd": scratch.work(), "mcpServers": [],
            "_meta": {"sandboxagent.dev": {"permissionMode": mode}}});
        let session = client.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned();
        let prompt = client.prompt(&session, &format!("ask {kind}"));
        if option.is_none() {
            let asked = until_permission(&mut client);
            choose(&mut client, &asked, "reject-always");
        }
        client.result(&prompt);
        assert_eq!(times_asked(&client, "session/request_permission"), usize::from(option.is_none()));
        let expected = format!("permission selected {}", option.unwrap_or("reject-always"));
        assert!(client.text_since(&prompt, &session).contains(&expected), "{mode} {kind}");
        client.finish();
        let events = crate::together::events(&scratch, &session);
        let of = |kind: u16| events.iter().find(|event| event.0 == kind).expect("it is in the log").1.clone();
        let (requested, resolved) = (of(12), of(13));
        assert_eq!(requested["message"]["params"]["toolCall"]["kind"], kind);
        assert_eq!(requested["request"], resolved["request"]);
        let by = match option {
            Some(_) => json!({"mode": mode}),
            None => json!({"client": "e2e"}),
        };
        assert_eq!(resolved["by"], by);
        assert_eq!(resolved["result"]["outcome"]["outcome"], "selected");
    }
}

// PE-3, MC-2: nobody is there: the question waits, and whoever comes is asked
#[test]
fn a_question_waits_for_somebody() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "sleep 100\nask edit");
    let left = client.request("_sandboxagent/session/detach", &json!({"sessionId": session}));
    client.result(&left);
    while state(&mut client, &session) != "waiting" {}
    assert_eq!(times_asked(&client, "session/request_permission"), 0);
    for method in ["session/load", "session/resume"] {
        let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
        let joined = client.request(method, &params);
        let asked = until_permission(&mut client);
        client.result(&joined);
        // Who leaves does not answer.
        let left = client.request("_sandboxagent/session/detach", &json!({"sessionId": session}));
        until_withdrawn(&mut client, &asked);
        client.result(&left);
        assert_eq!(state(&mut client, &session), "waiting", "{method}");
    }
    client.call("session/resume", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    let asked = until_permission(&mut client);
    choose(&mut client, &asked, "allow-once");
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    client.finish();
}

// PR-5: a question ends with its turn, if the agent does not wait for it; a cancel settles one that has no turn
// quirk question-between-turns
#[test]
fn a_question_does_not_outlive_its_turn() {
    let ask = |id: u32| {
        format!(
            r#"printf '{{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"shell-1","toolCall":{{"toolCallId":"t"}},"options":[{{"optionId":"a","name":"A","kind":"allow_once"}}]}}}}\n'"#
        )
    };
    let body = format!(
        "take; prompt=$id\n{}\nid=$prompt; answer '{{\"stopReason\":\"end_turn\"}}'\ntake\n{}\ntake; take; take",
        ask(71),
        ask(72)
    );
    let scratch = Scratch::new().shell("asker", &acpd_e2e::shell_agent(&body));
    let (mut client, session) = scratch.session("asker");
    let prompt = client.prompt(&session, "go");
    let asked = until_permission(&mut client);
    until_withdrawn(&mut client, &asked);
    client.result(&prompt);
    let asked = until_permission(&mut client);
    assert_eq!(state(&mut client, &session), "waiting");
    client.notify("session/cancel", &json!({"sessionId": session}));
    until_withdrawn(&mut client, &asked);
    assert_eq!(state(&mut client, &session), "idle");
    client.finish();
}

// PE-2: a client that knows nothing but nonsense is not asked for ever
#[test]
fn nonsense_is_refused_a_few_times() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "ask edit");
    for _ in 0..5 {
        let asked = until_permission(&mut client);
        answer(&mut client, &asked, &json!({}));
        until_refused(&mut client);
    }
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
    assert_eq!(times_asked(&client, "session/request_permission"), 5);
    client.finish();
}
