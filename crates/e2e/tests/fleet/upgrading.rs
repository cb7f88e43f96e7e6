//! An upgrade of one node after the other, while turns run and prompts come: none is lost, and none runs twice.

use crate::archive::events;
use crate::failover::said;
use crate::nodes::{Fleet, Node, ROOT};
use acpd_e2e::{Http, connect, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Words of a turn that runs over all upgrades, and milliseconds between them.
const WORDS: usize = 400;
const PACE_MS: usize = 20;
/// Such turns on each node.
const LONG: usize = 2;

/// A prompt by a door, sent again under its key until it is taken.
fn keyed(door: SocketAddr, session: &str, key: &str) {
    let authorization = format!("Bearer {ROOT}");
    let headers =
        [("Authorization", &*authorization), ("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let (path, body) = (format!("/v1/sessions/{session}/prompt"), json!({"prompt": key}).to_string());
    until("it is taken", || {
        let answer = Http::on(connect(door)).request("POST", &path, &headers, &body);
        // The node is just being replaced, or has enough to do.
        assert!(matches!(answer.status, 202 | 429 | 503), "{answer:?}");
        (answer.status == 202).then_some(())
    });
}

fn uptime(node: &Node) -> u64 {
    node.get("/v1/health").json()["uptimeMs"].as_u64().expect("a number")
}

/// Replaces a node as an operator does, by the door of another one.
fn upgrade(node: &Node, door: &Node) {
    let drained = door.ask("POST", &format!("/v1/nodes/{}/drain", node.name), &json!({}));
    assert_eq!(drained.status, 200, "{drained:?}");
    let before = uptime(node);
    let handed = node.ask("POST", "/v1/handover", &json!({}));
    assert_eq!(handed.status, 202, "{handed:?}");
    until("it goes on as the next version", || (uptime(node) < before).then_some(()));
    let is_back = |state: &Value| state["reachable"] == true && state["draining"] == true;
    until("it is back", || is_back(&door.knows(node.name)).then_some(()));
    let undrained = door.ask("POST", &format!("/v1/nodes/{}/undrain", node.name), &json!({}));
    assert_eq!(undrained.status, 200, "{undrained:?}");
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

// design fleet, contract 7.1: one node after the other is upgraded under load: 0 turns lost, each prompt runs once
#[test]
fn no_turn_is_lost_over_upgrades_of_all_nodes() {
    let fleet = Fleet::lasting(&[("a", ""), ("b", ""), ("c", "")], "60s");
    let nodes = &fleet.nodes;
    let door_of = |index: usize| &nodes[(index + 1) % nodes.len()];
    let prompt: String = (0..WORDS).map(|word| format!("w{word}\nsleep {PACE_MS}\n")).collect();
    let mut long = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        for _ in 0..LONG {
            let session = node.create(&json!({}));
            door_of(index).sees(&session, "it is listed", |_| true);
            let path = format!("/v1/sessions/{session}/prompt");
            let prompted = door_of(index).ask("POST", &path, &json!({"prompt": prompt}));
            assert_eq!(prompted.status, 202, "{prompted:?}");
            long.push((index, session));
        }
    }
    let short: Vec<_> = nodes.iter().map(|node| node.create(&json!({}))).collect();
    let over = AtomicBool::new(false);
    let ask = |door: SocketAddr, session: &str| {
        let mut asked = Vec::new();
        while !over.load(Ordering::Acquire) {
            let key = format!("{session}-{};", asked.len());
            keyed(door, session, &key);
            asked.push(key);
        }
        asked
    };
    let asked = std::thread::scope(|scope| {
        let mut askers = Vec::new();
        for (index, session) in short.iter().enumerate() {
            door_of(index).sees(session, "it is listed", |_| true);
            let door = door_of(index).daemon.address();
            askers.push(scope.spawn(move || ask(door, session)));
        }
        for (index, node) in nodes.iter().enumerate() {
            upgrade(node, door_of(index));
        }
        over.store(true, Ordering::Release);
        askers.into_iter().map(|asker| asker.join().expect("it asks")).collect::<Vec<_>>()
    });
    let wanted: Vec<String> = (0..WORDS).map(|word| format!("w{word}")).collect();
    for (index, session) in &long {
        let ended = door_of(*index).sees(session, "its turn is over", |listed| listed["state"] == "idle");
        assert_eq!(ended["lastTurn"]["stopReason"], "end_turn", "{ended}");
        let events = events(door_of(*index), session);
        assert_eq!(said(&events).split_whitespace().collect::<Vec<_>>(), wanted, "each once, and in order");
        let counts = ["prompt", "turn_ended", "reattached"].map(|kind| count(&events, kind));
        assert_eq!(counts, [1, 1, 1], "of {session}");
    }
    for (index, (session, keys)) in short.iter().zip(&asked).enumerate() {
        let events = until("all are answered", || {
            let events = events(door_of(index), session);
            (count(&events, "turn_ended") == keys.len()).then_some(events)
        });
        assert_eq!(said(&events), keys.concat());
        assert!(!keys.is_empty() && count(&events, "reattached") >= 1);
    }
    // They would outlive their daemons.
    for session in long.iter().map(|(_, session)| session).chain(&short) {
        let closed = nodes[0].ask("POST", &format!("/v1/sessions/{session}/close"), &Value::Null);
        assert_eq!(closed.status, 204, "{closed:?}");
    }
}
