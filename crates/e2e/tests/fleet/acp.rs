//! Editors and other clients of ACP, by the door of another node.

use crate::nodes::{Fleet, Node, ROOT};
use acpd_e2e::{Client, Message, until};
use serde_json::json;

/// An editor on `acpd stdio` of a node, with a token for the others.
pub(crate) fn editor(node: &Node) -> Client {
    let mut command = node.scratch.command(acpd_e2e::acpd());
    command.args(["stdio", "--agent", "example", "--state-dir"]).arg(node.scratch.state());
    command.arg("--config").arg(node.scratch.config_file()).env("ACPD_TOKEN", ROOT);
    let mut client = node.scratch.client(command);
    client.initialize();
    client
}

fn is_question(message: &Message) -> bool {
    message.method() == Some("session/request_permission")
}

// contract 7.3: every request of ACP reaches the owner: list, load, prompt, and what the agent asks
#[test]
fn an_editor_uses_a_session_of_another_node() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = b.create(&json!({"prompt": "say the Größe"}));
    a.sees(&session, "it is listed", |listed| listed["lastTurn"]["stopReason"] == "end_turn");
    let mut client = editor(a);
    let own = client.new_session();
    let listed = client.call("session/list", &json!({}));
    let nodes = listed["sessions"].as_array().expect("a list").iter();
    let mut nodes: Vec<_> = nodes
        .map(|listed| (listed["sessionId"].clone(), listed["_meta"]["sandboxagent.dev"]["node"].clone()))
        .collect();
    nodes.sort_by_key(|(_, node)| node.to_string());
    assert_eq!(nodes, [(json!(own), json!("a")), (json!(session), json!("b"))]);
    let load = json!({"sessionId": session, "cwd": b.scratch.work(), "mcpServers": []});
    let loaded = client.request("session/load", &load);
    client.result(&loaded);
    assert_eq!(client.text_since(&loaded, &session), "say the Größe", "its history");
    let prompted = client.prompt(&session, "ask edit\nsay done");
    let question = client.until("a question", is_question);
    let id = question.json["id"].clone();
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    client.write_line(json!({"jsonrpc": "2.0", "id": id, "result": outcome}).to_string());
    assert_eq!(client.result(&prompted)["stopReason"], "end_turn");
    assert!(client.text_since(&prompted, &session).ends_with("done"));
    assert_eq!(client.turn(&own, "say here"), "end_turn", "its own goes on beside it");
    let kinds = b.get(&format!("/v1/sessions/{session}/events?limit=1000")).json();
    let answered = kinds["events"].as_array().expect("a list").iter();
    assert_eq!(answered.filter(|event| event["kind"] == "permission_resolved").count(), 1, "{kinds}");
}

// design fleet: what was asked of a node that is lost is answered once, with its name, and the client goes on
#[test]
fn a_node_that_is_lost_leaves_no_request_open() {
    let mut fleet = Fleet::two();
    let session = fleet.nodes[1].create(&json!({}));
    fleet.nodes[0].sees(&session, "it is listed", |_| true);
    let mut client = editor(&fleet.nodes[0]);
    let own = client.new_session();
    let load = json!({"sessionId": session, "cwd": fleet.nodes[1].scratch.work(), "mcpServers": []});
    client.call("session/load", &load);
    let prompted = client.prompt(&session, "ask edit");
    client.until("a question", is_question);
    fleet.nodes[1].daemon.kill();
    let refused = client.error(&prompted);
    assert!(refused["message"].as_str().is_some_and(|message| message.contains("node b")), "{refused}");
    assert_eq!(client.turn(&own, "say here"), "end_turn");
    let node = &mut fleet.nodes[1];
    node.daemon = node.scratch.serve();
    // Until then the old address counts.
    until("it is back", || {
        let loaded = client.request("session/load", &load);
        client.answer(&loaded).json["result"].is_object().then_some(())
    });
    assert_eq!(client.turn(&session, "say again"), "end_turn");
}
