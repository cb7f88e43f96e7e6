//! What is asked of a session right behind its load or resume, without waiting for the answer.

use acpd_e2e::{Asked, Client, Gate, Scratch, taking_shell_agent};
use serde_json::{Value, json};

/// A shell agent that waits at a gate before it takes its session up.
fn slow(scratch: Scratch) -> (Scratch, Gate) {
    let gate = Gate::new(scratch.path("gate"));
    let body = r#"
        take; answer '{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}'
        while take; do case $line in
        *'"session/new"'*) answer '{"sessionId":"shell-1"}';;
        *'"session/resume"'*) GATE; answer '{}';;
        *'"session/cancel"'*) ;;
        *'hang"'*) hanging=$id; take; id=$hanging; answer '{"stopReason":"cancelled"}';;
        *) update said; answer '{"stopReason":"end_turn"}';;
        esac; done"#;
    let body = body.replace("GATE", &gate.line());
    (scratch.shell("slow", &taking_shell_agent(&body)), gate)
}

fn closed_session(client: &mut Client) -> String {
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "before"), "end_turn");
    client.call("session/close", &json!({"sessionId": session}));
    session
}

fn ids(client: &Client, asked: &Asked) -> Vec<Value> {
    let answers = client.since(asked).iter().filter(|message| message.is_answer());
    answers.map(|message| message.json["id"].clone()).collect()
}

/// Prompts right behind a load and a resume wait for it; so does a cancel, and one that is withdrawn never begins.
fn is_served(scratch: &Scratch, gate: &Gate, client: &mut Client) {
    let session = closed_session(client);
    for method in ["session/load", "session/resume"] {
        let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
        let joined = client.request(method, &params);
        let prompted = client.prompt(&session, "right behind");
        let withdrawn = client.request_as(
            "\"w\"",
            "session/prompt",
            &json!({
            "sessionId": session, "prompt": [{"type": "text", "text": "never"}]}),
        );
        client.notify("$/cancel_request", &json!({"requestId": "w"}));
        let hanging = client.prompt(&session, "hang");
        client.notify("session/cancel", &json!({"sessionId": session}));
        assert_eq!(
            client.result(&withdrawn),
            json!({"stopReason": "cancelled"}),
            "before anything was taken up"
        );
        gate.let_one_through();
        client.result(&joined);
        // The cancel ended the first, which ran by then, or found the agent done with it.
        let first = client.result(&prompted)["stopReason"].clone();
        assert!(first == "end_turn" || first == "cancelled", "{first}");
        client.notify("session/cancel", &json!({"sessionId": session}));
        assert_eq!(client.result(&hanging)["stopReason"], "cancelled");
        let order = ids(client, &joined);
        assert_eq!(order.len(), 4, "{order:?}");
        assert_eq!(order[0], "w");
        client.call("session/close", &json!({"sessionId": session}));
    }
}

// contract 7.3: over stdio
#[test]
fn a_prompt_behind_a_load_waits_on_pipes() {
    let (scratch, gate) = slow(Scratch::new());
    let mut client = scratch.stdio("slow");
    is_served(&scratch, &gate, &mut client);
    client.finish();
}

// contract 7.3: over a WebSocket, and over HTTP
#[test]
fn a_prompt_behind_a_load_waits_over_the_network() {
    let (scratch, gate) = slow(Scratch::new());
    let mut daemon = scratch.serve();
    for over_http in [false, true] {
        let mut client = match over_http {
            true => daemon.over_http(&scratch, "/acp?agent=slow"),
            false => daemon.over_websocket(&scratch, "/acp?agent=slow"),
        };
        is_served(&scratch, &gate, &mut client);
        client.close_input();
        client.read_to_end();
    }
    daemon.stop();
}

// contract 7.3: what waits behind a resume that fails is told so
#[test]
fn what_waits_for_nothing_is_answered() {
    let scratch = Scratch::new().example("forgetful", &["--without", "load,resume"]);
    let mut client = scratch.stdio("forgetful");
    let session = closed_session(&mut client);
    for (method, reason) in
        [("session/resume", "session has ended"), ("session/load", "can neither resume nor load")]
    {
        let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
        let joined = client.request(method, &params);
        let prompted = client.prompt(&session, "right behind");
        let error = client.error(&prompted);
        assert!(error["message"].as_str().unwrap().contains(reason), "{method}: {error}");
        client.answer(&joined);
    }
    client.finish();
}
