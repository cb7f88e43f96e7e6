//! Cancelling turns and answering questions over REST.

use crate::door::{JSON, bearer, client, entry};
use acpd_e2e::{Answer, Client, Daemon, Event, Http, Scratch};
use serde_json::{Value, json};

fn scratch() -> Scratch {
    let tokens = [entry("o", "scope = \"observe\"\nsees = \"all\""), entry("c", "scope = \"control\"")];
    Scratch::new().config(&tokens.join("\n"))
}

fn post(daemon: &Daemon, who: &str, session: &str, what: &str, body: &str) -> Answer {
    let headers = [JSON, ("Authorization", &bearer(who))];
    Http::on(daemon.connect()).request("POST", &format!("/v1/sessions/{session}/{what}"), &headers, body)
}

fn answer(daemon: &Daemon, session: &str, question: u64, outcome: &Value) -> Answer {
    let body = json!({"question": question, "outcome": outcome}).to_string();
    post(daemon, "c", session, "answer", &body)
}

/// The first event of a kind in a session.
fn first(daemon: &Daemon, session: &str, kind: &str) -> Event {
    let path = format!("/v1/sessions/{session}/events");
    let events = Http::on(daemon.connect()).events(&path, &[("Authorization", &bearer("c"))]);
    events.expect("a stream").until(kind, |event| event.event.as_deref() == Some(kind))
}

fn asked(daemon: &Daemon, session: &str, kind: &str) -> u64 {
    first(daemon, session, kind).id.expect("it has a number").parse().expect("a number")
}

fn is_refused(answer: &Answer, status: u16, kind: &str, words: &str) {
    assert_eq!((answer.status, &*answer.problem()), (status, kind), "{}", answer.json());
    assert!(answer.json()["detail"].as_str().expect("words").contains(words), "{}", answer.json());
}

/// A client, its session, and a prompt that it waits for.
fn prompted(daemon: &Daemon, scratch: &Scratch, text: &str) -> (Client, String, acpd_e2e::Asked) {
    let mut client = client(daemon, scratch, "c");
    let session = client.new_session();
    let prompt = client.prompt(&session, text);
    (client, session, prompt)
}

// contract 7.3: a cancel over REST is that of ACP; it needs control, and a session that goes on
#[test]
fn a_turn_is_cancelled() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (mut client, session, prompt) = prompted(&daemon, &scratch, "working\nhang");
    client.until_text("working");
    assert_eq!(post(&daemon, "o", &session, "cancel", "").status, 403);
    assert_eq!(post(&daemon, "c", &session, "cancel", "").status, 202);
    assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
    assert_eq!(first(&daemon, &session, "cancel_requested").json()["by"], "REST (c)");
    assert_eq!(post(&daemon, "c", &session, "cancel", "").status, 202, "without a turn too");
    assert_eq!(post(&daemon, "c", "unknown", "cancel", "").problem(), "session_not_found");
    client.call("session/close", &json!({"sessionId": session}));
    is_refused(&post(&daemon, "c", &session, "cancel", ""), 409, "session_ended", "ended");
    daemon.stop();
}

// contract 7.3: a permission is answered by the number of its event; what is wrong leaves it open
#[test]
fn a_permission_is_answered() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let (mut client, session, prompt) = prompted(&daemon, &scratch, "ask edit");
    let request = client.until("a question", |it| it.method() == Some("session/request_permission"));
    let question = asked(&daemon, &session, "permission_requested");
    let selected = |option: &Value| json!({"outcome": "selected", "optionId": option});
    let wrong = answer(&daemon, &session, question, &selected(&json!("none")));
    is_refused(&wrong, 422, "not_offered", "outcome.optionId: \"none\" was not offered; choose one of");
    let wrong = answer(&daemon, &session, question, &json!({"action": "accept"}));
    is_refused(&wrong, 422, "not_offered", "outcome.outcome: selected or cancelled is required");
    is_refused(&answer(&daemon, &session, question, &json!("selected")), 400, "bad_request", "outcome: ");
    is_refused(&answer(&daemon, &session, 1, &selected(&json!("x"))), 409, "question_closed", "question: 1 ");
    for (body, field) in [
        (json!({"question": question}), "`outcome`"),
        (json!({"question": "1", "outcome": {}}), "invalid type"),
        (json!({"question": question, "outcome": {}, "by": "me"}), "`by`"),
    ] {
        let wrong = post(&daemon, "c", &session, "answer", &body.to_string());
        is_refused(&wrong, 400, "bad_request", field);
    }
    let options = request.json["params"]["options"].as_array().expect("options");
    let reject = options.iter().find(|option| option["kind"] == "reject_once").expect("it is offered");
    let right = json!({"question": question, "outcome": selected(&reject["optionId"])}).to_string();
    assert_eq!(post(&daemon, "o", &session, "answer", &right).status, 403);
    assert_eq!(post(&daemon, "c", &session, "answer", &right).status, 204);
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    assert!(client.text_since(&prompt, &session).contains("reject"));
    let resolved = first(&daemon, &session, "permission_resolved").json();
    assert_eq!(resolved["by"], json!({"client": "REST (c)"}));
    is_refused(&post(&daemon, "c", &session, "answer", &right), 409, "question_closed", "answered");
    client.call("session/close", &json!({"sessionId": session}));
    is_refused(&post(&daemon, "c", &session, "answer", &right), 409, "session_ended", "ended");
    daemon.stop();
}

// contract 7.3: a form is filled in
#[test]
fn a_form_is_answered() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    let mut client = crate::door::silent(&daemon, &scratch, "c");
    let forms = json!({"elicitation": {"form": {}}});
    let info = json!({"name": "e2e", "version": "1"});
    client
        .call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": forms, "clientInfo": info}));
    let session = client.new_session();
    let prompt = client.prompt(&session, "elicit What is it?");
    let question = asked(&daemon, &session, "elicitation_requested");
    let wrong = answer(&daemon, &session, question, &json!({"outcome": "cancelled"}));
    is_refused(&wrong, 422, "not_offered", "action: accept, decline or cancel is required");
    let right = json!({"action": "accept", "content": {"answer": "this"}});
    assert_eq!(answer(&daemon, &session, question, &right).status, 204);
    client.result(&prompt);
    let text = client.text_since(&prompt, &session);
    assert!(text.contains(r#"elicitation accept {"answer":"this"}"#), "{text}");
    daemon.stop();
}
