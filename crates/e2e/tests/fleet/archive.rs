//! The archive: what is read of a session whose node is gone.

use crate::nodes::{Fleet, Node, token};
use acpd_e2e::until;
use serde_json::{Value, json};

/// The events of a session once all of them are in the archive.
pub(crate) fn archived(node: &Node, by: &Node, session: &str) -> Vec<Value> {
    until("all is in the archive", || {
        let listed = by.lists("").into_iter().find(|listed| listed["sessionId"] == session)?;
        let there = events(node, session);
        (listed["eventCount"] == there.len() && lag(node) == 0).then_some(there)
    })
}

/// The events of a node that are not in the archive.
fn lag(node: &Node) -> u64 {
    let metrics = String::from_utf8_lossy(&node.get("/metrics").body).into_owned();
    let lag = metrics.lines().find_map(|line| line.strip_prefix("acpd_fleet_lag_events "));
    lag.and_then(|lag| lag.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
}

/// All events of a session, page by page.
pub(crate) fn events(node: &Node, session: &str) -> Vec<Value> {
    let path = format!("/v1/sessions/{session}/events?limit=1000");
    let (mut all, mut next) = (Vec::new(), Some(path.clone()));
    while let Some(page) = next {
        let answer = node.get(&page);
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        all.extend(page["events"].as_array().expect("a list").iter().cloned());
        next = page["nextCursor"].as_str().map(|cursor| format!("{path}&after={cursor}"));
    }
    all
}

/// Has the agent say so much, and waits for the end of that turn: the history may have others.
pub(crate) fn prompt(node: &Node, session: &str, text: &str) {
    let mut events = node.events(session);
    let prompted = node.ask("POST", &format!("/v1/sessions/{session}/prompt"), &json!({"prompt": text}));
    assert_eq!(prompted.status, 202, "{prompted:?}");
    let turn = prompted.json()["turn"].clone();
    events.until("the end of the turn", |event| {
        event.event.as_deref() == Some("turn_ended") && event.json()["turn"] == turn
    });
}

// design fleet, log archive: the history of a session is read without its node, by whom that would show it, as it was there
#[test]
fn history_is_read_without_its_node() {
    let of_a = [token("ci", "ci-of-a", "control"), token("look", "look-of-a", "observe")].concat();
    let of_b = [&of_a, &token("boss", "boss-of-b", "admin")[..]].concat();
    let mut fleet = Fleet::start(&[("a", &of_a), ("b", &of_b)]);
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let created = a.ask_as("ci-of-a", "POST", "/v1/sessions", &a.wanted(&json!({})));
    let session = crate::nodes::id(&created);
    let path = |rest: &str| format!("/v1/sessions/{session}{rest}");
    // More than a page, more than a piece of the archive, and a message that is longer than one.
    prompt(a, &session, "stream 3000 400");
    prompt(a, &session, "stream 2 900000");
    let there = archived(a, b, &session);
    let export = a.get(&path("/export")).body;
    let markdown = a.get(&path("/export?format=markdown")).body;
    fleet.nodes[0].daemon.kill();
    let b = &fleet.nodes[1];
    b.sees(&session, "its node is gone", |listed| listed["reachable"] == false);

    assert!(events(b, &session) == there, "they are the same");
    let shown = b.get(&path(""));
    assert_eq!((shown.status, shown.header("acpd-node")), (200, Some("a")), "{shown:?}");
    let shown = shown.json();
    assert!(shown["node"] == "a" && shown["reachable"] == false && shown["snapshot"].is_object(), "{shown}");
    assert!(b.get(&path("/export")).body == export, "it is the same file");
    assert!(b.get(&path("/export?format=markdown")).body == markdown, "it is the same file");
    // A stream goes on behind a cursor, and ends with the reason.
    let mut stream = b.events(&session);
    let closed = stream.until("its end", |event| event.event.as_deref() == Some("closed")).json();
    assert_eq!(closed["reason"], "unreachable", "{closed}");
    assert!(closed["detail"].as_str().is_some_and(|detail| detail.contains("node a")), "{closed}");
    let last = there.len();
    for after in [1, 999, 3000, last - 1] {
        let page = b.get(&path(&format!("/events?limit=1&after={after}"))).json();
        assert_eq!(page["events"], json!([there[after]]), "{after}");
    }
    let beyond = b.get(&path(&format!("/events?after={}", last + 1)));
    assert_eq!((beyond.status, beyond.problem().as_str()), (503, "node_unreachable"), "{beyond:?}");

    // It exists for whom it exists there.
    let status = |secret: &str| b.ask_as(secret, "GET", &path("/events"), &Value::Null).status;
    assert_eq!(["ci-of-a", "look-of-a", "boss-of-b"].map(status), [200, 404, 404]);
    // And nothing can be done to it.
    for (method, rest) in [("POST", "/prompt"), ("POST", "/resume"), ("POST", "/fork"), ("DELETE", "")] {
        let refused = b.ask(method, &path(rest), &json!({"prompt": "hello"}));
        assert_eq!((refused.status, refused.problem().as_str()), (503, "node_unreachable"), "{refused:?}");
    }

    let node = &mut fleet.nodes[0];
    node.daemon = node.scratch.serve();
    let (a, b) = (&fleet.nodes[0], &fleet.nodes[1]);
    b.sees(&session, "it is back", |listed| listed["reachable"] == true);
    let again = archived(a, b, &session);
    assert!(again.len() > last && again[..last] == there[..], "it goes on with what it had");
    assert!(
        until("through its node", || Some(events(b, &session)).filter(|events| *events == again)).len()
            > last
    );
}

// design fleet, engine down: what waits for the archive waits in the log; once the engine is back the archive has all of it
#[test]
fn the_archive_makes_up_for_an_engine_that_was_down() {
    let mut fleet = Fleet::two();
    let session = fleet.nodes[0].create(&json!({}));
    archived(&fleet.nodes[0], &fleet.nodes[1], &session);
    fleet.server.kill();
    prompt(&fleet.nodes[0], &session, "stream 200 40");
    until("it is counted", || (lag(&fleet.nodes[0]) >= 200).then_some(()));
    fleet.server.again();
    let there = archived(&fleet.nodes[0], &fleet.nodes[1], &session);
    fleet.nodes[0].daemon.kill();
    fleet.nodes[1].sees(&session, "its node is gone", |listed| listed["reachable"] == false);
    assert!(events(&fleet.nodes[1], &session) == there, "they are the same");
}
