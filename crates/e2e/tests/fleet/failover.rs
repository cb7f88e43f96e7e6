//! Sessions that another node takes up: by whom, when, with what, and what becomes of the first node.

use crate::archive::{archived, events, prompt};
use crate::nodes::{Fleet, Node, id};
use acpd_e2e::{Carries, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Agents end soon, so that the lease of the tests is long enough for them.
const FAILOVER: &str = "partition = \"failover\"";

fn fleet() -> Fleet {
    let fleet = Fleet::start_with(&[("a", ""), ("b", ""), ("c", "")], FAILOVER);
    // A node takes none before it knows that the fleet knows it.
    until("the first node takes sessions", || begins(&fleet.nodes[0]).then_some(()));
    fleet
}

/// Whether a session begins at a node; it is closed then.
fn begins(node: &Node) -> bool {
    let created = node.ask("POST", "/v1/sessions", &node.wanted(&json!({})));
    assert!(matches!(created.status, 201 | 503), "{created:?}");
    if created.status == 503 {
        return false;
    }
    node.ask("DELETE", &format!("/v1/sessions/{}", id(&created)), &Value::Null).status == 204
}

/// Takes a session up again, and has the agent say something.
fn resume(node: &Node, session: &str, text: &str) {
    let resumed = node.ask("POST", &format!("/v1/sessions/{session}/resume"), &Value::Null);
    assert_eq!(resumed.status, 200, "{resumed:?}");
    prompt(node, session, text);
}

/// Closes a session that runs at another node than that of its directory.
fn close(node: &Node, session: &str) {
    assert_eq!(node.ask("POST", &format!("/v1/sessions/{session}/close"), &Value::Null).status, 204);
}

/// The other node that has taken a session up, once one has.
fn taker<'a>(others: [&'a Node; 2], session: &str) -> (&'a Node, &'a Node) {
    let [one, other] = others;
    let listed = one.sees(session, "it is taken up", |listed| {
        listed["node"] != "a" && listed["reachable"] == true && listed["ended"] == true
    });
    match listed["node"] == one.name {
        true => (one, other),
        false => (other, one),
    }
}

/// The text of all that the agent has said.
pub(crate) fn said(events: &[Value]) -> String {
    let chunk =
        |event: &Value| event["message"]["params"]["update"]["content"]["text"].as_str().map(str::to_owned);
    events.iter().filter(|event| event["kind"] == "update").filter_map(chunk).collect()
}

// design fleet, partition: another node takes up a session of a node that was killed, with all its history, and it goes on there;
// the first one learns it and keeps what it had under another id
#[test]
fn a_session_of_a_killed_node_goes_on_at_another() {
    let mut fleet = fleet();
    let (a, b) = (&fleet.nodes[0], &fleet.nodes[1]);
    let session = a.create(&json!({"title": "moves"}));
    prompt(a, &session, "say the first words");
    let there = archived(a, b, &session);
    assert_eq!(a.get(&format!("/v1/sessions/{session}")).json()["partition"], "failover");
    let stays = a.create(&json!({"partition": "local"}));
    b.sees(&stays, "it is listed", |_| true);
    fleet.nodes[0].daemon.kill();

    let (taker, other) = taker([&fleet.nodes[1], &fleet.nodes[2]], &session);
    let here = events(other, &session);
    assert!(
        here.len() > there.len() && here[..there.len()] == there[..],
        "all that was in the archive is there"
    );
    let ended = here.last().expect("there are some");
    assert_eq!(
        (&ended["kind"], &ended["terminationInfo"]["cause"]),
        (&json!("ended"), &json!("daemon_lost"))
    );
    resume(other, &session, "say the last words");
    let goes_on = archived(taker, other, &session);
    assert!(goes_on[..here.len()] == here[..]);
    assert!(said(&goes_on).contains("last words"), "{}", said(&goes_on));
    let shown = other.get(&format!("/v1/sessions/{session}")).json();
    assert_eq!((&shown["node"], &shown["title"]), (&json!(taker.name), &json!("moves")), "{shown}");
    let left = taker.sees(&stays, "it is its node's", |listed| listed["reachable"] == false);
    assert_eq!(left["node"], "a");

    let name = taker.name;
    let node = &mut fleet.nodes[0];
    node.daemon = node.scratch.serve();
    let a = &fleet.nodes[0];
    let aside = until("what it had is set aside", || {
        let aside = |listed: &Value| {
            listed["node"] == "a" && listed["title"].as_str().is_some_and(|title| title.contains(name))
        };
        a.lists("").into_iter().find(aside)
    });
    assert!(aside["title"].as_str().is_some_and(|title| title.starts_with("moves")), "{aside}");
    let aside = events(a, aside["sessionId"].as_str().expect("an id"));
    assert!(aside[..there.len()] == there[..], "nothing that a client has seen is lost");
    assert!(
        events(a, &session)[..goes_on.len()] == goes_on[..],
        "the session itself is read through its node"
    );
    prompt(a, &session, "say it through the first node");
    a.sees(&stays, "its own is its own", |listed| listed["reachable"] == true);
    close(a, &session);
}

// design fleet, partition: a node that is cut off from the engine ends what another may take up before that does, says so, and runs none
// of it; its other sessions go on
#[test]
fn a_node_that_is_cut_off_ends_first() {
    let fleet = fleet();
    let [a, b, c] = &fleet.nodes[..] else { panic!("there are three") };
    let (moves, stays) = (a.create(&json!({})), a.create(&json!({"partition": "local"})));
    for session in [&moves, &stays] {
        let prompted = a.ask("POST", &format!("/v1/sessions/{session}/prompt"), &json!({"prompt": "hang"}));
        assert_eq!(prompted.status, 202, "{prompted:?}");
        archived(a, b, session);
    }
    let mut stream = a.events(&moves);
    a.link.set(Carries::Nothing);
    let ended = stream.until("it is ended", |event| event.event.as_deref() == Some("ended")).json();
    let how = &ended["terminationInfo"];
    assert_eq!((&how["cause"], &how["terminatedBy"]), (&json!("fenced"), &json!("daemon")), "{how}");
    let listed = b.lists("").into_iter().find(|listed| listed["sessionId"] == *moves).expect("it is listed");
    assert_eq!(listed["node"], "a", "no other node has it yet");
    let (path, hello) = (format!("/v1/sessions/{moves}"), json!({"prompt": "hello"}));
    for (method, path, body) in [
        ("POST", format!("{path}/prompt"), &hello),
        ("POST", format!("{path}/resume"), &Value::Null),
        ("POST", "/v1/sessions".to_owned(), &a.wanted(&json!({}))),
    ] {
        let refused = a.ask(method, &path, body);
        assert_eq!((refused.status, refused.problem().as_str()), (503, "fenced"), "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    assert_eq!(a.get(&format!("/v1/sessions/{stays}")).json()["state"], "running");

    let (taker, _) = taker([b, c], &moves);
    a.link.set(Carries::All);
    a.sees(&moves, "it learns whose it is", |listed| listed["node"] == taker.name);
    until("it takes sessions again", || begins(a).then_some(()));
    resume(a, &moves, "say it at the other node");
    assert_eq!(a.get(&format!("/v1/sessions/{stays}")).json()["state"], "running");
    close(a, &moves);
}

// design fleet, partition: also the agent of a daemon that is stopped ends before another node takes its session up, and so does one
// that is kept for a daemon that is dead
#[test]
fn an_agent_ends_in_time_without_its_daemon() {
    for is_killed in [false, true] {
        let mut fleet = Fleet::start_kept(&["a", "b"], "10m", FAILOVER);
        until("the first node takes sessions", || begins(&fleet.nodes[0]).then_some(()));
        let (a, b) = (&fleet.nodes[0], &fleet.nodes[1]);
        let session = a.create(&json!({}));
        let prompted = a.ask("POST", &format!("/v1/sessions/{session}/prompt"), &json!({"prompt": "hang"}));
        assert_eq!(prompted.status, 202, "{prompted:?}");
        archived(a, b, &session);
        let info = a.get(&format!("/v1/sessions/{session}")).json();
        let pid = info["metadata"]["agentPid"].as_u64().expect("it has a process");
        // It has been said once.
        archived(a, b, &session);
        if is_killed {
            fleet.nodes[0].daemon.kill();
        } else {
            a.daemon.signal(Signal::STOP);
        }
        let b = &fleet.nodes[1];
        until("the agent has ended", || {
            let listed = b.lists("").into_iter().find(|listed| listed["sessionId"] == *session)?;
            // Whether it runs, waits or is dead, and what it is, should it have another's number.
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            let is_gone = stat.is_err();
            assert!(is_gone || listed["node"] == "a", "{is_killed}: it lives, {stat:?}, and {listed}");
            is_gone.then_some(())
        });
        b.sees(&session, "it is taken up", |listed| listed["node"] == "b" && listed["reachable"] == true);
        if !is_killed {
            fleet.nodes[0].daemon.signal(Signal::CONT);
            let aside = |listed: &Value| {
                listed["title"].as_str().is_some_and(|title| title.contains("until b took it up"))
            };
            until("what it had is set aside", || fleet.nodes[0].lists("").into_iter().find(aside));
        }
    }
}
