//! Watches: entries that leave by their age, changes that were missed, and more of them than wait.

use crate::battery::{directory, node, session};
use crate::server::{LIMIT, Server, Used, soon, until};
use acpd_fleet::{Change, Directory, Engine, Expected};
use acpd_fleet_nats::{Nats, NatsSettings};
use async_nats::jetstream;
use futures_util::{StreamExt, TryStreamExt};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than a busy machine needs for a heartbeat.
const LEASE: Duration = Duration::from_secs(6);

// design fleet, nodes: an entry that is not renewed leaves by its lease, and who watches is told
#[tokio::test]
async fn a_node_that_says_nothing_is_gone() {
    let server = Server::start();
    let settings = NatsSettings { lease: LEASE, ..server.settings() };
    let one = Nats::connect(settings.clone()).await.expect("it can be used");
    let other = Nats::connect(settings).await.expect("it can be used");
    let (renewed, silent) = (node("a"), node("b"));
    one.put_member(&silent).await.expect("it answers");
    let mut changes = other.watch().await.expect("it answers");
    directory(&mut changes).await;
    let mut revision = one.put_node(&renewed, Expected::Nothing).await.expect("it is new");
    one.put_node(&silent, Expected::Nothing).await.expect("it is new");
    // Renewed until the other one has gone, and the last time then.
    let mut heartbeats = tokio::time::interval(LEASE / 8);
    let (mut gone, mut last_renewed) = (Vec::new(), false);
    // The nodes that are told anew, when a busy machine was silent for too long.
    let mut told = Vec::new();
    let watched = async {
        while gone.len() < 2 {
            tokio::select! {
                change = changes.recv() => match change.expect("the watch goes on") {
                    Change::NodeGone(name) if !gone.contains(&name) => gone.push(name),
                    Change::Node(node, _) => told.push(node.name),
                    Change::Again => told.clear(),
                    Change::Complete => {
                        let all = [&silent.name, &renewed.name].into_iter().cloned();
                        let is_missed = |name: &acpd_fleet::NodeName| !told.contains(name) && !gone.contains(name);
                        let missed: Vec<_> = all.filter(is_missed).collect();
                        gone.extend(missed);
                    }
                    Change::NodeGone(_) | Change::Member(_) => {}
                    other => panic!("nothing else happens: {other:?}"),
                },
                _ = heartbeats.tick(), if !last_renewed => {
                    revision = one.put_node(&renewed, Expected::Unchanged(revision)).await.expect("it is there");
                    last_renewed = !gone.is_empty();
                }
            }
        }
    };
    soon(watched).await;
    assert_eq!(gone, [silent.name.clone(), renewed.name.clone()]);
    assert_eq!(one.node(&silent.name).await, Ok(None));
    // That it belongs to the fleet does not leave by its age.
    let known = directory(&mut one.watch().await.expect("it answers")).await;
    assert!(known.member(&silent.name).is_some() && known.member(&renewed.name).is_none());
    assert_eq!(
        one.put_node(&renewed, Expected::Unchanged(revision)).await,
        Err(acpd_fleet::EngineError::Conflict),
        "it has to say so anew"
    );
    let anew = one.put_node(&renewed, Expected::Nothing).await.expect("it has left");
    assert!(anew > revision);
    assert!(
        matches!(soon(changes.recv()).await, Some(Change::Node(node, at)) if *node == renewed && at == anew)
    );
}

// design fleet: what was missed is made up for, since everything is told anew
#[tokio::test]
async fn a_watch_that_missed_something_begins_again() {
    let server = Server::start();
    let (one, other) = server.links().await;
    let (first, second) = (session("s", &node("a")), session("t", &node("a")));
    one.put_session(&first, Expected::Nothing).await.expect("it is new");
    let mut changes = other.watch().await.expect("it answers");
    let mut known = directory(&mut changes).await;
    // What the server keeps for the watch is taken away.
    let stream =
        jetstream::new(server.client().await).get_stream("KV_acpd_sessions").await.expect("it is there");
    let consumers: Vec<String> = stream.consumer_names().try_collect().await.expect("they are told");
    assert_eq!(consumers.len(), 1);
    stream.delete_consumer(&consumers[0]).await.expect("it is there");
    one.put_session(&second, Expected::Nothing).await.expect("it is new");
    assert_eq!(soon(changes.recv()).await, Some(Change::Again));
    known.apply(Change::Again, Duration::ZERO);
    let told = async {
        while !known.is_complete() {
            known.apply(changes.recv().await.expect("the watch goes on"), Duration::ZERO);
        }
    };
    soon(told).await;
    assert!(known.session(&second.session).is_some());
    // A watch that is left takes its consumers with it.
    drop(changes);
    let left = async || {
        let consumers: Vec<String> = stream.consumer_names().try_collect().await.ok()?;
        consumers.is_empty().then_some(())
    };
    until(left).await;
}

// design fleet: what was missed is made up for, also when nothing of the connection is
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_missing_is_seen() {
    let server = Server::start();
    let (one, other) = server.links().await;
    let mine = session("s", &node("a"));
    let revision = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    let stream =
        jetstream::new(server.client().await).get_stream("KV_acpd_sessions").await.expect("it is there");
    let mut changes = other.watch().await.expect("it answers");
    directory(&mut changes).await;
    // As if the server had sent a seventh message, and something that has no number.
    let heartbeat = "HPUB TO 54 54\r\nNATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\n\r\n\r\n";
    let stranger = "PUB TO 0\r\n\r\n";
    for command in [heartbeat, stranger] {
        let to = async || {
            let consumers: Vec<_> = stream.consumers().try_collect().await.ok()?;
            // The one before is there until the server notices.
            consumers.into_iter().max_by_key(|consumer| consumer.created)?.config.deliver_subject
        };
        say(&server, &command.replace("TO", &until(to).await));
        assert_eq!(soon(changes.recv()).await, Some(Change::Again), "{command}");
        let known = soon(directory(&mut changes)).await;
        let told = known.session(&mine.session).map(|(told, revision)| (&**told, revision));
        assert_eq!(told, Some((&mine, revision)), "{command}");
    }
}

/// Sends to a server what no client would.
fn say(server: &Server, command: &str) {
    let mut stream = TcpStream::connect(server.address()).expect("it is there");
    stream.set_read_timeout(Some(LIMIT)).expect("that is long enough");
    write!(stream, "CONNECT {{\"verbose\":false,\"headers\":true}}\r\n{command}PING\r\n")
        .expect("it listens");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("it answers"));
    assert!(lines.any(|line| line == "PONG"), "{command}");
}

// design fleet, load: who watches slowly is told all, each entry once or as it is later
#[tokio::test]
async fn who_is_slow_misses_nothing() {
    // A server that a busy machine holds up says nothing for too long, too. One that does not wait is left each time.
    for _ in 0..2 {
        if slow_watch_is_waited_for().await {
            return;
        }
    }
    assert!(slow_watch_is_waited_for().await, "the server has waited");
}

/// Whether one that did not look while much happened was told all of that, and not anew.
async fn slow_watch_is_waited_for() -> bool {
    const COUNT: usize = 1500;
    let server = Server::start();
    let (one, other) = server.links().await;
    let mut early = other.watch().await.expect("it answers");
    let all: Vec<_> = (0..COUNT)
        .map(|number| {
            let mut mine = session(&format!("s.{number}"), &node("a"));
            mine.info = serde_json::json!({"title": "x".repeat(4096)});
            mine
        })
        .collect();
    let written = futures_util::stream::iter(&all).map(|mine| one.put_session(mine, Expected::Nothing));
    let written: Vec<_> = written.buffer_unordered(64).try_collect().await.expect("they are new");
    assert_eq!(written.len(), COUNT);
    let mut late = other.watch().await.expect("it answers");
    let known = soon(directory(&mut late)).await;
    assert_eq!(known.sessions().count(), COUNT);
    // This one was not looked at while all of it happened.
    let (mut known, mut is_anew) = (Directory::new(), false);
    let told = async {
        while known.sessions().count() < COUNT {
            let change = early.recv().await.expect("the watch goes on");
            is_anew |= change == Change::Again;
            known.apply(change, Duration::ZERO);
        }
    };
    soon(told).await;
    !is_anew
}
