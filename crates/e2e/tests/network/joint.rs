//! Clients on different transports, at one daemon.

use acpd_e2e::{Client, Scratch};
use serde_json::json;

fn load(client: &mut Client, scratch: &Scratch, session: &str) {
    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    client.call("session/load", &params);
}

// HT-1, WS-1: a turn over each transport, as an ordinary client has it
#[test]
fn each_transport_has_its_turns() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for mut client in [daemon.over_websocket(&scratch, "/acp"), daemon.over_http(&scratch, "/acp")] {
        client.initialize();
        let session = client.new_session();
        let asked = client.prompt(&session, "hello over the network");
        let result = client.result(&asked);
        assert_eq!(result["stopReason"], "end_turn");
        assert_eq!(client.text_since(&asked, &session), "hello over the network");
        client.close_input();
        client.read_to_end();
    }
    daemon.stop();
}

// MC-1: two clients on different transports are attached to one session, and both see what comes
#[test]
fn two_transports_see_one_session() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut one = daemon.over_websocket(&scratch, "/acp");
    one.initialize();
    let session = one.new_session();
    let mut other = daemon.over_http(&scratch, "/acp");
    other.initialize();
    load(&mut other, &scratch, &session);
    one.turn(&session, "seen by both");
    other.until_text("both");
    other.turn(&session, "and back");
    one.until_text("back");
    daemon.stop();
}

// FR-2: two clients use one id at once, and each gets its own answer
#[test]
fn one_id_is_two_requests_of_two_clients() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut clients = [daemon.over_websocket(&scratch, "/acp"), daemon.over_http(&scratch, "/acp")];
    let mut asked = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        client.initialize();
        let session = client.new_session();
        let params =
            json!({"sessionId": session, "prompt": [{"type": "text", "text": format!("number {number}")}]});
        asked.push((client.request_as("\"same\"", "session/prompt", &params), session));
    }
    for (number, (client, (asked, session))) in clients.iter_mut().zip(&asked).enumerate() {
        assert_eq!(client.result(asked)["stopReason"], "end_turn");
        assert_eq!(client.text_since(asked, session), format!("number {number}"));
    }
    daemon.stop();
}
