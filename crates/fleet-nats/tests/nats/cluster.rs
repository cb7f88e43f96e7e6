//! Three servers: what each acknowledged is on all of them, and one of them may be killed.

use crate::battery::{node, piece, session};
use crate::server::{Server, Used, soon, until};
use acpd_fleet::{Engine, EngineError, Expected, Piece, Position};
use acpd_fleet_nats::{Nats, NatsSettings};
use acpd_record::SessionId;
use async_nats::jetstream;
use std::time::Duration;

async fn connected(servers: &[Server]) -> Nats {
    let urls = servers.iter().map(|server| format!("nats://{}", server.address())).collect();
    let settings = NatsSettings { urls, replicas: Some(3), ..servers[0].short_settings() };
    // They have to find each other first.
    until(async || match Nats::connect(settings.clone()).await {
        Ok(engine) => Some(engine),
        Err(error) => {
            assert!(error.is_temporary() || error.to_string().contains("no suitable peers"), "{error}");
            None
        }
    })
    .await
}

/// Tries to append until the piece is taken; an append whose outcome was not known may have been taken.
async fn appended(engine: &Nats, id: &SessionId, new: &Piece, behind: Position) -> Position {
    until(async || match engine.append(id, new, behind).await {
        Ok(position) => Some(position),
        Err(EngineError::Unavailable(_)) => None,
        Err(error) => panic!("nobody else appends: {error}"),
    })
    .await
}

// design fleet, NATS: with three replicas the leader of the archive can be killed; what was acknowledged is there, in one order
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_the_archive_can_be_killed() {
    let mut servers = Server::start_three();
    let (one, other) = (connected(&servers).await, connected(&servers).await);
    let mine = session("s.1", &node("a"));
    // Servers that a busy machine holds up choose another leader, and do not answer meanwhile.
    let claimed = until(async || match one.put_session(&mine, Expected::Nothing).await {
        Ok(revision) => Some(revision),
        Err(EngineError::Unavailable(_)) => None,
        // The write before had been done.
        Err(EngineError::Conflict) => {
            one.session(&mine.session).await.ok().flatten().map(|(_, revision)| revision)
        }
        Err(error) => panic!("nobody else writes: {error}"),
    })
    .await;
    let (id, mut at, mut next) = (&mine.session, Position::default(), 1);
    for _ in 0..10 {
        at = appended(&one, id, &piece(claimed.0, next, next), at).await;
        next += 1;
    }
    let mut stream =
        jetstream::new(servers[0].client().await).get_stream("ACPD_LOG").await.expect("it is there");
    let cluster = stream.info().await.expect("it answers").cluster.clone().expect("it is kept by a cluster");
    assert_eq!(cluster.replicas.len(), 2, "{cluster:?}");
    let leader = cluster.leader.expect("it has one");
    let killed = ["one", "two", "three"].iter().position(|name| *name == leader).expect("it is one of them");
    let (mut changes, begun) = (until(async || other.watch().await.ok()).await, Duration::ZERO);
    servers[killed].kill();
    for _ in 0..5 {
        at = appended(&one, id, &piece(claimed.0, next, next), at).await;
        next += 1;
    }
    let mut behind = Position::default();
    for number in 1..next {
        let (found, position) = until(async || other.read(id, behind).await.ok()).await.expect("it is there");
        assert_eq!(found, piece(claimed.0, number, number));
        behind = position;
    }
    assert_eq!(other.read(id, behind).await, Ok(None), "and nothing twice");
    // The directory goes on too, and is watched.
    let later = until(async || match one.put_session(&mine, Expected::Unchanged(claimed)).await {
        Err(EngineError::Unavailable(_)) => None,
        // The write before had been done.
        Ok(_) | Err(EngineError::Conflict) => one.session(id).await.ok().flatten(),
        Err(error) => panic!("nobody else writes: {error}"),
    })
    .await;
    let mut known = acpd_fleet::Directory::new();
    let told = async {
        while known.session(id).is_none_or(|(_, revision)| revision < later.1) {
            known.apply(changes.recv().await.expect("the watch goes on"), begun);
        }
    };
    soon(told).await;
    // The server that was away has what it missed.
    servers[killed].again();
    let is_whole = async || {
        let info = stream.info().await.ok()?;
        let replicas = &info.cluster.as_ref()?.replicas;
        (replicas.len() == 2 && replicas.iter().all(|replica| replica.current && !replica.offline))
            .then_some(())
    };
    until(is_whole).await;
}

// contract 7.2: replicas are as many as there are servers, where nothing is said; what is said is not less
#[tokio::test]
async fn one_server_keeps_one_replica() {
    let server = Server::start();
    let all = NatsSettings { replicas: Some(3), ..server.settings() };
    let error = Nats::connect(all).await.expect_err("there is one server");
    assert!(!error.is_temporary() && error.to_string().contains("replicas"), "{error}");
    let _one = Nats::connect(server.settings()).await.expect("one will do");
    let mut stream =
        jetstream::new(server.client().await).get_stream("KV_acpd_nodes").await.expect("it is there");
    assert_eq!(stream.info().await.expect("it answers").config.num_replicas, 1);
    assert_eq!(stream.info().await.expect("it answers").config.max_age, Duration::from_secs(20));
}
