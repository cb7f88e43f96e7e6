//! Directives that need the client, with the test as the client.

use serde_json::{Value, json};

use crate::peer::{Peer, Played};

/// Plays a prompt and answers each request with the next of `answers`; returns the requests too.
fn play(text: &str, answers: &[Result<Value, i64>]) -> (Vec<Value>, Played) {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, text);
    let mut messages = Vec::new();
    let mut requests = Vec::new();
    for answer in answers {
        let request = loop {
            let message = peer.message();
            if message.get("id").is_some() {
                break message;
            }
            messages.push(message);
        };
        assert_eq!(request["params"]["sessionId"], session);
        let id = &request["id"];
        peer.send(&match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(code) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}),
        });
        requests.push(request);
    }
    let mut played = peer.until_answer(prompt);
    played.messages.splice(0..0, messages);
    assert_eq!(played.stop_reason(), "end_turn");
    (requests, played)
}

fn methods(requests: &[Value]) -> Vec<&str> {
    requests.iter().filter_map(|request| request["method"].as_str()).collect()
}

// contract 4, contract 2.1
#[test]
fn ask_offers_four_options_and_reports_the_choice() {
    let selected = json!({"outcome": {"outcome": "selected", "optionId": "allow-always"}});
    let (requests, played) = play("ask edit Change it", &[Ok(selected)]);
    let params = &requests[0]["params"];
    let kinds: Vec<&Value> =
        params["options"].as_array().expect("a list").iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    assert_eq!(
        (&params["toolCall"]["kind"], &params["toolCall"]["title"]),
        (&json!("edit"), &json!("Change it"))
    );
    for member in ["rawInput", "locations", "content", "_meta"] {
        assert!(!params["toolCall"][member].is_null(), "{member}");
    }
    assert_eq!(played.text(), "permission selected allow-always");
    assert_eq!(played.updates()[1]["status"], "completed");

    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(play("ask execute", &[Ok(cancelled)]).1.text(), "permission cancelled");
}

// contract 4, PR-5
#[test]
fn a_cancelled_turn_reports_what_became_of_its_permission() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "ask edit");
    let request = loop {
        let message = peer.message();
        if message["method"] == "session/request_permission" {
            break message;
        }
    };
    peer.notify("session/cancel", json!({"sessionId": session}));
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}));
    let played = peer.until_answer(prompt);
    assert_eq!((played.text().as_str(), played.stop_reason()), ("permission cancelled", "cancelled"));
}

// PR-10
#[test]
fn withdraw_takes_the_request_back() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "withdraw edit");
    let request = loop {
        let message = peer.message();
        if message.get("id").is_some() {
            break message;
        }
    };
    let notification = peer.message();
    assert_eq!(notification["method"], "$/cancel_request");
    assert_eq!(notification["params"], json!({"requestId": request["id"]}));
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}));
    assert_eq!(peer.until_answer(prompt).text(), "permission cancelled");
}

// contract 4, contract 2.2
#[test]
fn files_go_through_the_client() {
    let (requests, played) = play("read /a.txt 3 2", &[Ok(json!({"content": "two\nlines"}))]);
    assert_eq!(requests[0]["method"], "fs/read_text_file");
    let params = &requests[0]["params"];
    assert_eq!(
        (&params["path"], &params["line"], &params["limit"]),
        (&json!("/a.txt"), &json!(3), &json!(2))
    );
    assert_eq!(played.text(), "two\nlines");

    let (requests, played) = play(r"write /a.txt one\ntwo", &[Ok(json!({}))]);
    assert_eq!(requests[0]["method"], "fs/write_text_file");
    assert_eq!(requests[0]["params"]["content"], "one\ntwo");
    assert_eq!(played.text(), "wrote 7 bytes");
}

// contract 4, contract 2.3
#[test]
fn run_creates_waits_reads_and_releases() {
    let exit = json!({"exitCode": 3, "signal": null});
    let output = json!({"output": "hi\n", "truncated": true});
    let created = json!({"terminalId": "t1"});
    let (requests, played) =
        play("run sh -c 'echo hi; exit 3'", &[Ok(created), Ok(exit), Ok(output), Ok(json!({}))]);
    let expected = ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"];
    assert_eq!(methods(&requests), expected);
    assert_eq!(requests[0]["params"]["args"], json!(["-c", "echo hi; exit 3"]));
    assert!(requests[1..].iter().all(|request| request["params"]["terminalId"] == "t1"));
    assert_eq!(played.text(), "exit code 3 (truncated)\nhi\n");
    assert_eq!(played.updates()[0]["content"], json!([{"type": "terminal", "terminalId": "t1"}]));
}

/// Serves the terminal of one command that never ends by itself until it is released; returns the methods.
fn serve_endless_command(peer: &mut Peer, mut waiting: impl FnMut(&mut Peer)) -> Vec<String> {
    let mut wait = Value::Null;
    let mut methods = Vec::new();
    while methods.last().is_none_or(|method| method != "release") {
        let request = peer.message();
        let (id, method) = (&request["id"], request["method"].as_str().expect("only requests and updates"));
        let answer = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        match method {
            "session/update" => continue,
            "terminal/create" => peer.send(&answer(id, json!({"terminalId": "t"}))),
            "terminal/wait_for_exit" => {
                wait = id.clone();
                waiting(peer);
            }
            "terminal/output" => peer.send(&answer(id, json!({"output": "", "truncated": false}))),
            _ => peer.send(&answer(id, json!({}))),
        }
        if method == "terminal/kill" {
            peer.send(&answer(&wait, json!({"exitCode": null, "signal": "SIGTERM"})));
        }
        methods.push(method.trim_start_matches("terminal/").to_owned());
    }
    methods
}

// contract 4, contract 2.3
#[test]
fn run_timeout_kills_and_still_reports() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "run-timeout 1 sleep 1000");
    let methods = serve_endless_command(&mut peer, |_| {});
    assert_eq!(methods, ["create", "wait_for_exit", "kill", "output", "release"]);
    assert_eq!(peer.until_answer(prompt).text(), "timed out after 1 ms: signal SIGTERM\n");
}

// contract 4, PR-4
#[test]
fn a_cancelled_run_kills_and_releases() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "run sleep 1000\nnever said");
    let cancel = |peer: &mut Peer| peer.notify("session/cancel", json!({"sessionId": session}));
    let methods = serve_endless_command(&mut peer, cancel);
    assert_eq!(methods, ["create", "wait_for_exit", "kill", "output", "release"]);
    let played = peer.until_answer(prompt);
    assert_eq!((played.text().as_str(), played.stop_reason()), ("", "cancelled"));
}

// contract 4
#[test]
fn elicit_is_a_form() {
    let accepted = json!({"action": "accept", "content": {"answer": "42"}});
    let (requests, played) = play("elicit What is it?", &[Ok(accepted)]);
    assert_eq!(requests[0]["method"], "elicitation/create");
    let params = &requests[0]["params"];
    assert_eq!((&params["mode"], &params["message"]), (&json!("form"), &json!("What is it?")));
    assert_eq!(params["requestedSchema"]["properties"]["answer"]["type"], "string");
    assert_eq!(played.text(), r#"elicitation accept {"answer":"42"}"#);
}

// contract 4
#[test]
fn an_error_of_the_client_is_text() {
    for (text, what) in [
        ("ask edit", "permission"),
        ("read /a", "read"),
        ("write /a b", "write"),
        ("run ls", "run"),
        ("run-timeout 5 ls", "run"),
        ("elicit hm", "elicitation"),
    ] {
        assert_eq!(play(text, &[Err(-32601)]).1.text(), format!("{what} failed: -32601 no"));
    }
}
