//! Leaving a session that lives on (contract 1, "leave").

use acpd_e2e::Scratch;
use serde_json::json;

// PR-12, MC-2: who leaves in the middle of a turn does not end it; the prompt is still answered, and whoever comes later
// sees what was said and how it ended
#[test]
fn a_turn_goes_on_without_its_prompter() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let asked = client.prompt(&session, "before\nsleep 200\nafter");
    client.until_text("before");
    client.call("_sandboxagent/session/detach", &json!({"sessionId": session}));
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.text_since(&asked, &session), "before", "what came after the detach is not shown");

    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let asked = client.request("session/load", &params);
    let result = client.result(&asked);
    assert_eq!(
        result["_meta"]["sandboxagent.dev"],
        json!({"turnActive": false, "lastStopReason": "end_turn"})
    );
    assert!(client.text_since(&asked, &session).contains("after"));
    assert_eq!(client.turn(&session, "again"), "end_turn");
    client.finish();
}

// MC-4: watching is for who is attached; a session that one has left takes no prompts from there
#[test]
fn a_session_that_was_left_has_to_be_attached_again() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let detach = json!({"sessionId": session});
    client.call("_sandboxagent/session/detach", &detach);
    client.call("_sandboxagent/session/detach", &detach);
    let asked = client.prompt(&session, "hello");
    assert_eq!(client.error(&asked)["code"], -32002);
    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    client.call("session/resume", &params);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}
