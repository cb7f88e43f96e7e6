//! Sessions that a door does not know because their node is not heard, or has not told them yet.

use crate::archive::{archived, events, prompt};
use crate::nodes::{Fleet, LEASE, Node, id};
use acpd_e2e::{Carries, NatsServer, until};
use serde_json::{Value, json};

fn status(node: &Node, session: &str) -> (u16, String) {
    let answer = node.get(&format!("/v1/sessions/{session}"));
    (answer.status, if answer.status < 400 { String::new() } else { answer.problem() })
}

fn has_ended(pid: u64) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn is_stale(node: &Node) -> bool {
    node.get("/v1/sessions").json()["stale"] == true
}

// contract 7.3: while a node is not heard, a session that is not known may be one of its: that is 503, not 404, and lists
// say stale; also at a door that starts meanwhile, which knows the node by its sessions; until the node is back or removed
#[test]
fn what_is_not_known_may_be_on_a_node_that_is_not_heard() {
    let mut fleet = Fleet::two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let known = a.create(&json!({}));
    b.sees(&known, "it is listed", |_| true);
    until("all is told", || (!is_stale(b)).then_some(()));
    assert_eq!(status(b, "unknown"), (404, "session_not_found".to_owned()));
    a.link.set(Carries::NoConnection);
    until("it is not heard", || (b.knows("a")["reachable"] == false).then_some(()));
    let begun = a.create(&json!({"title": "begun while nobody heard"}));
    assert_eq!(status(b, &begun), (503, "node_unreachable".to_owned()));
    let asked = b.ask("POST", &format!("/v1/sessions/{begun}/prompt"), &json!({"prompt": "hello"}));
    assert_eq!((asked.status, asked.header("retry-after")), (503, Some("5")), "{asked:?}");
    assert!(is_stale(b));
    // A door that starts anew has never heard it.
    let node = &mut fleet.nodes[1];
    node.daemon.stop();
    node.daemon = node.scratch.serve();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    until("it hears the others", || b.get("/v1/nodes").json()["stale"].as_bool().filter(|stale| !stale));
    until("what it knows is not new", || (status(b, &known).1 != "no_fleet").then_some(()));
    // It finds the entry of a node that is gone if the engine has not taken that away yet, and gives that node a lease.
    let gone = until("it misses the node", || Some(b.knows("a")).filter(|node| node["reachable"] == false));
    assert!(gone["unreachableSince"].is_string(), "{gone}");
    assert_eq!(gone["sessions"], 1, "{gone}");
    until("and is right about what it does not know", || {
        (status(b, &begun) == (503, "node_unreachable".to_owned())).then_some(())
    });
    assert!(is_stale(b));
    a.link.set(Carries::All);
    until("it is back", || (status(b, &begun).0 == 200).then_some(()));
    until("all is told", || (!is_stale(b)).then_some(()));
    assert_eq!(status(b, "unknown"), (404, "session_not_found".to_owned()));
    // A node that leaves has told all that it has.
    fleet.nodes[0].daemon.stop();
    let b = &fleet.nodes[1];
    until("it has left", || (b.knows("a")["reachable"] == false).then_some(()));
    // Its last entry and what is noted of it as a member come in any order.
    until("nothing is missing of it", || {
        ((status(b, "unknown").0, is_stale(b)) == (404, false)).then_some(())
    });
}

// contract 7.3: a request behind a drain goes on to another node that is ready, also when a third one has just gone
#[test]
fn a_request_right_behind_a_drain_goes_on() {
    let mut fleet = Fleet::start(&[("a", ""), ("b", ""), ("c", "")]);
    let busy = fleet.nodes[1].create(&json!({}));
    fleet.nodes[0].sees(&busy, "it is listed", |_| true);
    until("the third has more room", || {
        let a = &fleet.nodes[0];
        (a.knows("b")["room"].as_u64() < a.knows("c")["room"].as_u64()).then_some(())
    });
    fleet.nodes[2].daemon.kill();
    let [a, b, _] = &fleet.nodes[..] else { panic!("there are three") };
    for _ in 0..3 {
        assert_eq!(a.ask("POST", "/v1/nodes/a/drain", &json!({})).status, 200);
        let created = a.ask("POST", "/v1/sessions", &b.wanted(&json!({})));
        assert_eq!((created.status, &created.json()["node"]), (201, &json!("b")), "{created:?}");
        assert_eq!(
            created.header("location"),
            Some(&*format!("/v1/sessions/{}", id(&created))),
            "{created:?}"
        );
        assert_eq!(a.ask("POST", "/v1/nodes/a/undrain", &json!({})).status, 200);
        let created = a.ask("POST", "/v1/sessions", &a.wanted(&json!({})));
        assert_eq!((created.status, &created.json()["node"]), (201, &json!("a")), "{created:?}");
    }
}

// design fleet, sessions, log archive: a server that takes short messages has all of what a session says, in parts, and a title of any
// length is in no entry
// quirk unbounded-title
#[test]
fn a_server_that_takes_short_messages_has_all() {
    let server = NatsServer::start_at(acpd_e2e::nats_place(1)[0], "max_payload: 64KB", &[]);
    let mut fleet = Fleet::begin(server, &[("a", ""), ("b", "")], "0s", "", LEASE);
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let long = a.create(&json!({}));
    prompt(a, &long, &format!("title {}", "t".repeat(2_000_000)));
    prompt(a, &long, "big 300000");
    let later: Vec<String> = (0..3).map(|_| a.create(&json!({}))).collect();
    for session in &later {
        b.sees(session, "it is listed", |_| true);
    }
    let listed = b.sees(&long, "its title is", |listed| listed["title"].is_string());
    assert_eq!(listed["title"].as_str().map(|title| title.chars().count()), Some(200));
    let there = archived(a, b, &long);
    fleet.nodes[0].daemon.kill();
    let b = &fleet.nodes[1];
    b.sees(&long, "its node is gone", |listed| listed["reachable"] == false);
    assert!(events(b, &long) == there, "all of it is in the archive");
    let metrics = String::from_utf8_lossy(&b.get("/metrics").body).into_owned();
    assert!(metrics.contains("\nacpd_fleet_refused_total{what=\"entry\"} 0"), "{metrics}");
}

// contract 7.2: sessions that another node may take up share no process with those that belong to their node, which go
// on when the daemon is killed
#[test]
fn sessions_of_two_policies_share_no_process() {
    let shared = format!(
        "[agents.shared]\ncommand = {:?}\nargs = [\"example-agent\"]\nshare_process = true\n",
        acpd_e2e::acpd().display().to_string()
    );
    let mut fleet = Fleet::begin(NatsServer::start(), &[("a", &shared), ("b", "")], "10m", "", LEASE);
    let a = &fleet.nodes[0];
    let wanted = |partition: &str| json!({"agent": "shared", "partition": partition});
    let movable = until("the fleet knows the node", || {
        let created = a.ask("POST", "/v1/sessions", &a.wanted(&wanted("failover")));
        (created.status == 201).then(|| id(&created))
    });
    let (local, other) = (a.create(&wanted("local")), a.create(&wanted("local")));
    let pid = |node: &Node, session: &str| {
        let started = events(node, session).into_iter().rev().find(|event| event["kind"] == "run_started");
        started.expect("it runs")["pid"].as_u64().expect("a number")
    };
    let (of_movable, of_local) = (pid(a, &movable), pid(a, &local));
    assert_ne!(of_movable, of_local);
    assert_eq!(of_local, pid(a, &other), "those of one policy share theirs");
    // The keeper of the one ends it in time; the other waits for its daemon.
    fleet.nodes[0].daemon.kill();
    until("the session that may move has ended", || has_ended(of_movable).then_some(()));
    let node = &mut fleet.nodes[0];
    node.daemon = node.scratch.serve();
    let a = &fleet.nodes[0];
    a.sees(&local, "it goes on", |listed| listed["state"] == "idle");
    prompt(a, &local, "say still here");
    assert_eq!(pid(a, &local), of_local);
    for session in [&local, &other] {
        assert_eq!(a.ask("POST", &format!("/v1/sessions/{session}/close"), &Value::Null).status, 204);
    }
    // With the daemon that goes now it would wait for the next.
    until("its process ends with its last session", || has_ended(of_local).then_some(()));
}
