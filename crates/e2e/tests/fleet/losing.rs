//! Nodes and servers that are lost: what is said, how soon, and what goes on.

use crate::nodes::{Fleet, LEASE, Node, ROOT, token};
use acpd_e2e::{Http, Lateness, Stopwatch, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// A request during a partition is answered within that (design fleet).
const ANSWER: Duration = Duration::from_secs(5);

/// A request that is answered in time, whatever the answer.
fn answered(node: &Node, method: &str, path: &str) -> (u16, Value) {
    let (lateness, watch) = (Lateness::measure(), Stopwatch::start());
    let answer = node.ask(method, path, &Value::Null);
    let (took, late) = (watch.passed(), lateness.end());
    assert!(took <= ANSWER + late, "{method} {path} took {took:?}, {late:?} of it late: {answer:?}");
    (answer.status, answer.json())
}

// design fleet: a lost node is shown within its lease and 5 s; what asks for its sessions is told; it comes back as it was
#[test]
fn a_node_that_was_killed_is_shown_and_comes_back() {
    let mut fleet = Fleet::two();
    let session = fleet.nodes[0].create(&json!({}));
    fleet.nodes[1].sees(&session, "it is listed", |_| true);
    let path = format!("/v1/sessions/{session}");
    let mut events = fleet.nodes[1].events(&session);
    fleet.nodes[0].daemon.kill();
    let (lateness, watch) = (Lateness::measure(), Stopwatch::start());
    // At once: no other node knows it yet.
    let (status, problem) = answered(&fleet.nodes[1], "POST", &format!("{path}/cancel"));
    assert_eq!((status, &problem["node"]), (503, &json!("a")), "{problem}");
    let listed = fleet.nodes[1].sees(&session, "it is shown", |listed| listed["reachable"] == false);
    let (took, late) = (watch.passed(), lateness.end());
    assert!(took <= LEASE + ANSWER + late, "{took:?}, {late:?} of it late");
    assert!(listed["unreachableSince"].is_string() && listed["node"] == "a", "{listed}");
    assert_eq!(fleet.nodes[1].knows("a")["reachable"], false);
    let closed = events.until("its end", |event| event.event.as_deref() == Some("closed")).json();
    assert_eq!(closed["reason"], "unreachable");
    assert!(closed["retryMs"].is_number(), "its reader comes again: {closed}");
    assert!(events.next_event().is_none());
    for (method, rest) in [("POST", "/prompt"), ("POST", "/resume"), ("POST", "/cancel"), ("DELETE", "")] {
        let (status, problem) = answered(&fleet.nodes[1], method, &format!("{path}{rest}"));
        let kind = problem["type"].as_str().unwrap_or_default();
        assert_eq!((status, kind.rsplit(':').next()), (503, Some("node_unreachable")), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("since")), "{problem}");
    }
    let node = &mut fleet.nodes[0];
    node.daemon = node.scratch.serve();
    fleet.nodes[1].sees(&session, "it is back", |listed| listed["reachable"] == true);
    until("it answers", || (fleet.nodes[1].get(&path).status == 200).then_some(()));
}

// design fleet: a node that is gone for good is removed, by a token with rights there; it takes its sessions and their history along
#[test]
fn a_node_that_is_gone_for_good_is_removed() {
    let more = token("guest", "admin-of-b-only", "admin");
    let mut fleet = Fleet::start(&[("a", ""), ("b", &more), ("c", "")]);
    let session = fleet.nodes[0].create(&json!({"prompt": "hello"}));
    fleet.nodes[1].sees(&session, "its turn has ended", |listed| listed["state"] == "idle");
    let remove = |node: &Node, token: &str, name: &str| {
        let answer = node.ask_as(token, "DELETE", &format!("/v1/nodes/{name}"), &Value::Null);
        (answer.status, answer.json())
    };
    let (status, there) = remove(&fleet.nodes[1], ROOT, "a");
    assert_eq!((status, there["type"].as_str()), (409, Some("urn:sandbox-agent:error:node_reachable")));
    assert_eq!(remove(&fleet.nodes[1], ROOT, "x").0, 404);
    fleet.nodes[0].daemon.kill();
    let [_, b, c] = &fleet.nodes[..] else { panic!("there are three") };
    until("it is lost", || (b.knows("a")["reachable"] == false).then_some(()));
    assert_eq!(remove(b, "admin-of-b-only", "a").0, 403, "no right is gained");
    let mut command = b.scratch.command(acpd_e2e::acpd());
    command.args(["nodes", "remove", "a", "--config"]).arg(b.scratch.config_file());
    command.arg("--state-dir").arg(b.scratch.state()).env("ACPD_TOKEN", ROOT);
    let removed = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&removed.stdout);
    assert_eq!(said, "a is removed, with 1 session\n", "{}", String::from_utf8_lossy(&removed.stderr));
    for node in [b, c] {
        until("it is forgotten", || (node.known().len() == 2 && node.lists("").is_empty()).then_some(()));
        assert_eq!(node.get(&format!("/v1/sessions/{session}/events")).status, 404);
    }
}

// design fleet: a node that is stopped takes connections and says nothing; what asks for it is answered all the same
#[test]
fn a_node_that_is_stopped_holds_up_no_other() {
    let fleet = Fleet::start(&[("a", ""), ("b", ""), ("c", "")]);
    let [a, b, c] = &fleet.nodes[..] else { panic!("there are three") };
    let (stopped, other) = (a.create(&json!({})), c.create(&json!({})));
    for session in [&stopped, &other] {
        b.sees(session, "it is listed", |_| true);
    }
    // A connection is there already, which will not be refused.
    assert_eq!(b.get(&format!("/v1/sessions/{stopped}")).status, 200);
    let mut events = b.events(&stopped);
    a.daemon.suspend();
    // What only reads would come from the archive as soon as the node counts as lost.
    let (status, problem) = answered(b, "POST", &format!("/v1/sessions/{stopped}/cancel"));
    assert_eq!((status, &problem["node"]), (503, &json!("a")), "{problem}");
    assert_eq!(answered(b, "GET", &format!("/v1/sessions/{other}")).0, 200);
    b.sees(&stopped, "it is shown", |listed| listed["reachable"] == false);
    // A stream of it ends, so that its reader comes again and learns it.
    while events.next_event().is_some() {}
    a.daemon.signal(Signal::CONT);
    b.sees(&stopped, "it is back", |listed| listed["reachable"] == true);
    until("it answers", || (b.get(&format!("/v1/sessions/{stopped}")).status == 200).then_some(()));
}

// design fleet, engine down: everything local goes on, lists say that they are stale, nodes still reach each other
#[test]
fn without_the_engine_nodes_go_on() {
    let mut fleet = Fleet::two();
    let session = fleet.nodes[0].create(&json!({}));
    fleet.nodes[1].sees(&session, "it is listed", |_| true);
    fleet.server.kill();
    let stale = |node: &Node| node.get("/v1/sessions").json()["stale"] == true;
    for node in &fleet.nodes {
        until("it is said", || stale(node).then_some(()));
        let nodes = node.get("/v1/nodes").json();
        assert!(nodes["stale"] == true, "{nodes}");
        until("why", || node.get("/v1/nodes").json()["reason"].is_string().then_some(()));
    }
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let ready = a.daemon.until_ready();
    assert_eq!(ready["ready"], true);
    assert!(ready["reason"].as_str().is_some_and(|reason| reason.contains("fleet")), "{ready}");
    let new = a.create(&json!({"title": "meanwhile"}));
    assert_eq!(a.get(&format!("/v1/sessions/{new}")).status, 200);
    // What was known is known, and reached by the nodes' own addresses.
    let listed = b.lists("");
    assert!(
        listed.iter().any(|listed| listed["sessionId"] == *session && listed["reachable"] == true),
        "{listed:?}"
    );
    assert_eq!(b.get(&format!("/v1/sessions/{session}")).status, 200);
    let metrics = a.get("/metrics");
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains("\nacpd_fleet_up 0"), "{metrics}");
    fleet.server.again();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    for node in [a, b] {
        until("it is told again", || (!stale(node)).then_some(()));
    }
    b.sees(&new, "what came meanwhile is listed", |listed| listed["title"] == "meanwhile");
}

// design fleet: a daemon starts while no server can be reached, and is a node as soon as one can
#[test]
fn a_node_starts_without_its_engine() {
    let mut fleet = Fleet::two();
    let others = fleet.nodes[1].create(&json!({}));
    fleet.nodes[0].sees(&others, "it is listed", |_| true);
    fleet.server.kill();
    let node = &mut fleet.nodes[0];
    node.daemon.kill();
    node.daemon = node.scratch.serve();
    let session = fleet.nodes[0].create(&json!({}));
    // It is not said that there is none: this node cannot know.
    for (method, rest) in [("GET", ""), ("GET", "/events"), ("POST", "/resume")] {
        let refused = fleet.nodes[0].ask(method, &format!("/v1/sessions/{others}{rest}"), &Value::Null);
        assert_eq!((refused.status, refused.problem().as_str()), (503, "no_fleet"), "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    let authorization = format!("Bearer {ROOT}");
    let headers = [("Authorization", &*authorization)];
    let alone = Http::on(fleet.nodes[0].daemon.connect()).request("GET", "/v1/sessions", &headers, "").json();
    assert_eq!(
        (&alone["stale"], alone["sessions"].as_array().map(Vec::len)),
        (&json!(true), Some(1)),
        "{alone}"
    );
    fleet.server.again();
    fleet.nodes[1].sees(&session, "it is listed", |listed| listed["node"] == "a");
    until("the other's is reached", || {
        (fleet.nodes[0].get(&format!("/v1/sessions/{others}")).status == 200).then_some(())
    });
}
