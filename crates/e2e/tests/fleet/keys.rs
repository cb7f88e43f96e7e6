//! What was just done at one door is so at every other: sessions that begin, the keys of requests, and the ends of a node that leaves.

use crate::acp::editor;
use crate::nodes::{Fleet, Node, ROOT, id};
use acpd_e2e::{Answer, Http, connect, until};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A creation under a key.
fn create_under(node: &Node, key: &str, body: &Value) -> Answer {
    create_at(node.daemon.address(), key, body)
}

fn create_at(address: SocketAddr, key: &str, body: &Value) -> Answer {
    let authorization = format!("Bearer {ROOT}");
    let headers =
        [("Authorization", &*authorization), ("Content-Type", "application/json"), ("Idempotency-Key", key)];
    Http::on(connect(address)).request("POST", "/v1/sessions", &headers, &body.to_string())
}

fn turns(node: &Node, session: &str) -> usize {
    let events = node.get(&format!("/v1/sessions/{session}/events")).json();
    let events = events["events"].as_array().expect("a list").clone();
    events.iter().filter(|event| event["kind"] == "prompt").count()
}

// contract 7.3: a new session is there at every door as soon as its creator knows of it
#[test]
fn a_session_that_has_begun_is_at_every_door() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let mut client = editor(b);
    for _ in 0..10 {
        let session = a.create(&json!({}));
        let found = b.get(&format!("/v1/sessions/{session}"));
        assert_eq!((found.status, found.header("acpd-node")), (200, Some("a")), "{found:?}");
        let second = a.create(&json!({}));
        let load = json!({"sessionId": second, "cwd": a.scratch.work(), "mcpServers": []});
        let loaded = client.request("session/load", &load);
        client.result(&loaded);
        assert_eq!(a.ask("DELETE", &format!("/v1/sessions/{session}"), &Value::Null).status, 204);
    }
}

// contract 7.3: a key means one session in the whole fleet, wherever the request comes again, and whatever became of its node
#[test]
fn a_key_means_one_session_at_every_door() {
    let mut fleet = Fleet::start(&[("a", ""), ("b", ""), ("c", "")]);
    let wanted = fleet.nodes[0].wanted(&json!({"prompt": "hello"}));
    // At all doors at once.
    let answers = std::thread::scope(|scope| {
        let addresses: Vec<SocketAddr> = fleet.nodes.iter().map(|node| node.daemon.address()).collect();
        let wanted = &wanted;
        let asked = addresses.into_iter().map(|to| scope.spawn(move || create_at(to, "at-once", wanted)));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|answer| answer.join().expect("it is answered")).collect::<Vec<_>>()
    });
    let session = id(&answers[0]);
    for answer in &answers {
        assert_eq!((answer.status, id(answer)), (201, session.clone()), "{answer:?}");
    }
    let owner = answers[0].json()["node"].as_str().expect("a node").to_owned();
    // Later, at each: the same session at the same node.
    for node in &fleet.nodes {
        let again = create_under(node, "at-once", &wanted);
        assert_eq!((again.status, id(&again), &again.json()["node"]), (201, session.clone(), &json!(owner)));
        let other = create_under(node, "at-once", &json!({"cwd": "/"}));
        assert_eq!(other.problem(), "idempotency_key_reused");
    }
    until("the turn has ended", || {
        (fleet.nodes[0].get(&format!("/v1/sessions/{session}")).json()["state"] == "idle").then_some(())
    });
    assert_eq!(turns(&fleet.nodes[0], &session), 1);
    for node in &fleet.nodes {
        let rows = node.lists("");
        assert_eq!(rows.iter().filter(|row| row["sessionId"] == session).count(), 1, "{rows:?}");
    }
    // A node that drains has it all the same, and one that is lost is not replaced.
    let place = fleet.nodes.iter().position(|node| node.name == owner).expect("it is one of them");
    assert_eq!(fleet.nodes[place].ask("POST", &format!("/v1/nodes/{owner}/drain"), &json!({})).status, 200);
    let again = create_under(&fleet.nodes[place], "at-once", &wanted);
    assert_eq!((again.status, id(&again), &again.json()["node"]), (201, session.clone(), &json!(owner)));
    fleet.nodes[place].daemon.kill();
    let other = &fleet.nodes[(place + 1) % 3];
    until("it is lost", || (other.knows(&owner)["reachable"] == false).then_some(()));
    let lost = create_under(other, "at-once", &wanted);
    assert_eq!((lost.status, lost.problem().as_str()), (503, "node_unreachable"), "{lost:?}");
}

// contract 7.3: a request that is refused keeps no key from its next try at another node
#[test]
fn a_key_of_which_no_session_came_is_free() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let wrong = json!({"agent": "example", "cwd": "/nowhere"});
    assert_eq!(create_under(a, "k", &wrong).status, 400);
    // At the node where it failed, as long as that may be at it, or at this one.
    let created = create_under(b, "k", &b.wanted(&json!({})));
    assert_eq!(created.status, 201, "{created:?}");
    b.sees(&id(&created), "it is listed", |_| true);
    assert_eq!(b.lists("").len(), 1);
}

// design fleet: a key that begins a session on two nodes that do not hear of one another leaves one of that id, and the other beside it
#[test]
fn two_sessions_of_one_key_are_told_apart() {
    let mut fleet = Fleet::two();
    fleet.server.kill();
    for node in &fleet.nodes {
        until("it is said", || (node.get("/v1/sessions").json()["stale"] == true).then_some(()));
    }
    let created: Vec<String> =
        fleet.nodes.iter().map(|node| id(&create_under(node, "k", &node.wanted(&json!({}))))).collect();
    assert_eq!(created[0], created[1]);
    fleet.server.again();
    let aside = until("one of them is set aside", || {
        let rows = fleet.nodes[0].lists("");
        let aside = rows.iter().find(|row| row["metadata"]["setAsideFrom"] == *created[0]).cloned()?;
        let kept = rows.iter().filter(|row| row["sessionId"] == *created[0]).count();
        (kept == 1 && rows.len() == 2).then_some(aside)
    });
    assert_eq!(aside["state"], "ended", "it does not go on: {aside}");
}

// design fleet: what NATS was not told is not told to be gone
#[test]
fn a_session_that_began_without_the_engine_may_be_there() {
    let mut fleet = Fleet::two();
    fleet.server.kill();
    for node in &fleet.nodes {
        until("it is said", || (node.get("/v1/sessions").json()["stale"] == true).then_some(()));
    }
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let created = b.ask("POST", "/v1/sessions", &a.wanted(&json!({"node": "a"})));
    assert_eq!((created.status, &created.json()["node"]), (201, &json!("a")), "{created:?}");
    let unknown = b.get(&format!("/v1/sessions/{}", id(&created)));
    assert_eq!((unknown.status, unknown.problem().as_str()), (503, "no_fleet"), "{unknown:?}");
    let path = format!("/v1/sessions/{}", id(&created));
    assert_eq!(a.get(&path).status, 200);
    fleet.server.again();
    let b = &fleet.nodes[1];
    until("it is told", || {
        let found = b.get(&path);
        assert!(found.status == 200 || found.problem() == "no_fleet", "{found:?}");
        (found.status == 200).then_some(())
    });
}

// design fleet: a node that is shut down has told how its sessions ended, and its last events are in the archive
#[test]
fn a_node_that_is_stopped_tells_how_its_sessions_ended() {
    let mut fleet = Fleet::two();
    let sessions: Vec<String> = (0..5).map(|_| fleet.nodes[0].create(&json!({"prompt": "hello"}))).collect();
    fleet.nodes[0].daemon.stop();
    let b = &fleet.nodes[1];
    until("it has left", || (b.knows("a")["reachable"] == false).then_some(()));
    for session in &sessions {
        let row = b.lists("").into_iter().find(|row| row["sessionId"] == *session).expect("it is listed");
        assert_eq!((&row["state"], &row["reachable"]), (&json!("ended"), &json!(false)), "{row}");
        let events = b.get(&format!("/v1/sessions/{session}/events?limit=1000")).json();
        let last = events["events"].as_array().and_then(|events| events.last()).cloned().unwrap_or_default();
        assert_eq!(last["kind"], "ended", "{events}");
    }
}
