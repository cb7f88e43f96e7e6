//! On which node a session begins, and nodes that take none.

use crate::nodes::{Fleet, ROOT, id};
use acpd_e2e::until;
use serde_json::json;

// design fleet, placement: labels and a node are looked for by the node that is asked; without, a session begins there
#[test]
fn sessions_go_where_they_are_wanted() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let of = |more| {
        let answer = a.ask("POST", "/v1/sessions", &a.wanted(&more));
        (answer.status, answer.json())
    };
    let (status, here) = of(json!({}));
    assert_eq!((status, &here["node"]), (201, &json!("a")), "{here}");
    let (status, there) = of(json!({"node": "b", "cwd": b.scratch.work()}));
    assert_eq!((status, &there["node"]), (201, &json!("b")), "{there}");
    // One session is here and two are there, so that there is more room here.
    let of_two = b.create(&json!({}));
    a.sees(&of_two, "it is listed", |_| true);
    until("there is more room here", || {
        (a.knows("b")["room"].as_u64() < a.knows("a")["room"].as_u64()).then_some(())
    });
    let (status, most) = of(json!({"labels": []}));
    assert_eq!((status, &most["node"]), (201, &json!("a")), "{most}");
    for (wanted, why) in [
        (json!({"labels": ["gpu"]}), "has not all the labels"),
        (json!({"node": "x"}), "no node is called x; the fleet has a, b"),
    ] {
        let (status, refused) = of(wanted);
        let detail = refused["detail"].as_str().expect("why");
        assert!(status == 503 && detail.contains(why), "{refused}");
    }
    assert_eq!(of(json!({"node": "no name"})).0, 400);
    // What is wrong there is told as there.
    assert_eq!(of(json!({"node": "b", "cwd": "relative"})).0, 400);
}

// contract 7.1, contract 7.3: a node that drains takes no new sessions, also after a restart; those that it has go on
#[test]
fn a_node_that_drains_takes_none() {
    let mut fleet = Fleet::lasting_two();
    let kept = fleet.nodes[0].create(&json!({}));
    // By the other door.
    let drained = fleet.nodes[1].ask("POST", "/v1/nodes/a/drain", &json!({}));
    assert_eq!((drained.status, &drained.json()["draining"]), (200, &json!(true)), "{drained:?}");
    assert_eq!(fleet.nodes[1].ask("POST", "/v1/nodes/x/drain", &json!({})).status, 404);
    let node = &mut fleet.nodes[0];
    node.daemon.stop();
    node.daemon = node.scratch.serve();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    until("it is told", || {
        (b.knows("a")["draining"] == true && b.knows("a")["reachable"] == true).then_some(())
    });
    until("it knows the other", || (a.knows("b")["reachable"] == true).then_some(()));
    // Another node takes it.
    let elsewhere = a.ask("POST", "/v1/sessions", &b.wanted(&json!({})));
    assert_eq!((elsewhere.status, &elsewhere.json()["node"]), (201, &json!("b")), "{elsewhere:?}");
    // An editor is told.
    let mut client = a.scratch.stdio("example");
    client.initialize();
    let asked = client.request("session/new", &json!({"cwd": a.scratch.work(), "mcpServers": []}));
    let refused = client.answer(&asked);
    assert!(refused.raw.contains("takes no new sessions"), "{}", refused.raw);
    drop(client);
    assert_eq!(
        a.ask("POST", &format!("/v1/sessions/{kept}/resume"), &json!({})).status,
        200,
        "what it has goes on"
    );
    let run = |words: &[&str]| {
        let config = a.scratch.config_file().display().to_string();
        let state = a.scratch.state().display().to_string();
        let mut command = a.scratch.command(acpd_e2e::acpd());
        command.args(words).args(["--config", &config, "--state-dir", &state]).env("ACPD_TOKEN", ROOT);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = run(&["nodes", "drain", "a", "--no-wait"]);
    assert_eq!(
        (code, said.as_str()),
        (
            Some(0),
            "a takes no new sessions; 1 live session goes on; `acpd nodes undrain a` has it take new ones again\n"
        )
    );
    assert_eq!(a.ask("POST", &format!("/v1/sessions/{kept}/close"), &json!({})).status, 204);
    let (code, said) = run(&["nodes", "drain", "a"]);
    let empty = "a takes no new sessions, and none is live there; `acpd nodes undrain a` has it take new ones again\n";
    assert_eq!((code, said.as_str()), (Some(0), empty));
    assert_eq!(run(&["nodes", "undrain", "a"]), (Some(0), "a takes new sessions\n".to_owned()));
    let here = a.ask("POST", "/v1/sessions", &a.wanted(&json!({})));
    assert_eq!((here.status, &here.json()["node"]), (201, &json!("a")), "{here:?}");
    assert_eq!(id(&here), a.lists("?node=a&ended=false")[0]["sessionId"]);
}
