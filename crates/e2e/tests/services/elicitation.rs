//! What the agent asks of the user: forms, and URLs to open.

use crate::answering::{answer, times_asked, until_asked, until_withdrawn};
use acpd_e2e::{Client, Scratch, shell_agent};
use serde_json::{Value, json};

const METHOD: &str = "elicitation/create";

/// A client that offers modes.
fn offering(scratch: &Scratch, agent: &str, modes: &Value) -> (Client, String) {
    let mut client = scratch.stdio(agent);
    // The schema's union of modes is more than the oracle can follow.
    client.tolerant();
    client.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": modes}, "clientInfo": {"name": "e2e", "version": "1"}}),
    );
    let session = client.new_session();
    (client, session)
}

// PE-5: a form goes to who can fill it in, and comes back as it is
#[test]
fn a_form_is_filled_in() {
    let scratch = Scratch::new();
    let (mut client, session) = offering(&scratch, "example", &json!({"form": {}}));
    let prompt = client.prompt(&session, "elicit What is it?");
    let asked = until_asked(&mut client, METHOD);
    assert_eq!(asked.json["params"]["message"], "What is it?");
    assert_eq!(asked.json["params"]["sessionId"], session);
    answer(&mut client, &asked, &json!({"action": "accept", "content": {"answer": "this"}}));
    client.result(&prompt);
    let text = client.text_since(&prompt, &session);
    assert!(text.contains(r#"elicitation accept {"answer":"this"}"#), "{text}");
    client.finish();
}

// PE-5: nobody can: declined at once
#[test]
fn without_anybody_it_is_declined() {
    for modes in [json!({}), json!({"url": {}}), Value::Null] {
        let scratch = Scratch::new();
        let (mut client, session) = offering(&scratch, "example", &modes);
        let prompt = client.prompt(&session, "elicit What?");
        assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
        assert!(client.text_since(&prompt, &session).contains("elicitation decline"));
        assert_eq!(times_asked(&client, METHOD), 0);
        client.finish();
    }
}

// PR-5: a cancel cancels it
#[test]
fn a_cancel_cancels_it() {
    let scratch = Scratch::new();
    let (mut client, session) = offering(&scratch, "example", &json!({"form": {}}));
    let prompt = client.prompt(&session, "elicit What?");
    let asked = until_asked(&mut client, METHOD);
    client.notify("session/cancel", &json!({"sessionId": session}));
    until_withdrawn(&mut client, &asked);
    assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
    assert!(client.text_since(&prompt, &session).contains("elicitation cancel"));
    client.finish();
}

// PE-5: a URL is for one client, and only that one is told that it is done; an unknown id is nobody's
#[test]
fn a_url_is_opened_by_one() {
    let body = r#"
take; prompt=$id
printf '{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"sessionId":"shell-1","mode":"url","message":"log in","url":"https://example.invalid/","elicitationId":"e-1"}}\n'
take
printf '{"jsonrpc":"2.0","method":"elicitation/complete","params":{"sessionId":"shell-1","elicitationId":"e-2"}}\n'
printf '{"jsonrpc":"2.0","method":"elicitation/complete","params":{"sessionId":"shell-1","elicitationId":"e-1"}}\n'
id=$prompt; answer '{"stopReason":"end_turn"}'
take"#;
    let scratch = Scratch::new().shell("asker", &shell_agent(body));
    let (mut client, session) = offering(&scratch, "asker", &json!({"url": {}}));
    let prompt = client.prompt(&session, "go");
    let asked = until_asked(&mut client, METHOD);
    assert_eq!(asked.json["params"]["url"], "https://example.invalid/");
    answer(&mut client, &asked, &json!({"action": "accept"}));
    client.result(&prompt);
    let done: Vec<&Value> = client
        .received()
        .iter()
        .filter(|message| message.method() == Some("elicitation/complete"))
        .map(|message| &message.json["params"]["elicitationId"])
        .collect();
    assert_eq!(done, ["e-1"]);
    client.finish();
}
