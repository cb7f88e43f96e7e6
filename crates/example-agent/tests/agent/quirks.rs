//! Each quirk is played as it is listed, by the program itself.

use serde_json::json;

use crate::peer::Peer;

// contract 4
#[test]
fn the_list_has_one_line_for_each_quirk_and_an_unknown_one_is_refused() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let listed = peer.play(&session, "quirk").text();
    assert_eq!(listed, peer.play(&session, "quirks").text());
    assert!(listed.lines().all(|line| line.contains(": ")), "{listed}");
    assert!(listed.contains("half-surrogate: cuts text"), "{listed}");
    let refused = peer.play(&session, "quirk no-such").answer;
    assert_eq!(refused["error"]["message"], "unknown quirk no-such; `quirk` lists them");
}

// contract 4
#[test]
fn what_a_quirk_sends_is_sent_letter_by_letter_and_again_in_a_replay() {
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut peer = Peer::start_in(state.path(), &[]);
    let session = peer.new_session();
    let text = " and more".repeat(300);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"{session}\",\"update\":{{\"content\":\
         {{\"type\":\"text\",\"text\":\"quince jam{text}\"}},\"sessionUpdate\":\"agent_message_chunk\"}}}}}}\n"
    );
    peer.begin(&session, "quirk discriminator-last");
    assert_eq!(String::from_utf8(peer.line().expect("a line")), Ok(line.clone()));
    let mut again = Peer::start_in(state.path(), &[]);
    while peer.message().get("id").is_none() {}
    peer.close_stdin();
    again.request("session/load", json!({"sessionId": session, "cwd": "/tmp", "mcpServers": []}));
    // The prompt comes first.
    again.message();
    assert_eq!(String::from_utf8(again.line().expect("a line")), Ok(line));
}

// contract 4
#[test]
fn a_request_with_a_text_as_its_id_takes_the_answer_to_that_text() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "quirk text-ids");
    let asked = peer.message();
    assert_eq!(asked["id"], "example-0");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": "example-0", "result": outcome}));
    assert_eq!(peer.until_answer(prompt).text(), "permission selected yes");
}

// contract 4
#[test]
fn late_steps_follow_the_answer_and_an_error_can_be_the_answer() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    assert_eq!(peer.play(&session, "quirk late-text").text(), "");
    assert_eq!(peer.message()["params"]["update"]["content"]["text"], "better late than never");
    let answer = peer.play(&session, "quirk error-code-of-http").answer;
    assert_eq!(answer["error"]["code"], 500);
    let prompt = peer.begin(&session, "quirk cancel-fails");
    peer.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(peer.until_answer(prompt).answer["error"]["code"], -32603);
}
