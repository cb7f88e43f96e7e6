//! What every engine has to do, by the one in memory: claims, the archive's fence, watches, leases and requests.

use acpd_fleet::{
    Asked, Change, Changes, Directory, Engine, EngineError, Epoch, Expected, Memory, NodeId, NodeName,
    NodeRecord, Piece, Position, Reach, SessionRecord, epoch_of,
};
use acpd_record::SessionId;
use bytes::Bytes;
use serde_json::json;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(20);

fn node(name: &str) -> NodeRecord {
    let name = NodeName::try_from(name.to_owned()).expect("a name");
    NodeRecord::new(name, NodeId("1".to_owned()), "1")
}

fn session(id: &str, owner: &NodeRecord) -> SessionRecord {
    SessionRecord::new(SessionId::parse(id).expect("an id"), owner, json!({"title": "t"}))
}

/// What a watch has told until it was complete.
async fn directory(changes: &mut Changes) -> Directory {
    let mut directory = Directory::new();
    while !directory.is_complete() {
        directory.apply(changes.recv().await.expect("more comes"), Duration::ZERO);
    }
    directory
}

// design fleet, fence: of two claims one is taken, and epochs only grow
#[tokio::test]
async fn one_claim_is_taken() {
    let (one, two) = (Memory::new(LEASE), node("b"));
    let other = one.link();
    let (of_one, of_two) = (session("s", &node("a")), session("s", &two));
    let first = one.put_session(&of_one, Expected::Nothing).await.expect("it is the first");
    assert_eq!(other.put_session(&of_two, Expected::Nothing).await, Err(EngineError::Conflict));
    let epoch = epoch_of(&of_one, first);
    let mut kept = of_one.clone();
    (kept.epoch, kept.seq) = (Some(epoch), 3);
    let second = one.put_session(&kept, Expected::Unchanged(first)).await.expect("it is the owner");
    assert_eq!(epoch_of(&kept, second), epoch, "a change is no claim");
    assert_eq!(other.put_session(&of_two, Expected::Unchanged(first)).await, Err(EngineError::Conflict));
    let taken = other.put_session(&of_two, Expected::Unchanged(second)).await.expect("it has seen the last");
    assert!(epoch_of(&of_two, taken) > epoch);
    assert_eq!(one.put_session(&kept, Expected::Unchanged(second)).await, Err(EngineError::Conflict));
    let found = one.session(&of_two.session).await.expect("it answers");
    assert_eq!(found, Some((of_two.clone(), taken)));
    assert_eq!(one.remove_session(&of_two.session, second).await, Err(EngineError::Conflict));
    one.remove_session(&of_two.session, taken).await.expect("it is as it was");
    assert_eq!(one.session(&of_two.session).await, Ok(None));
}

// design fleet, log archive: what does not follow is refused, so an owner that was replaced appends nothing
#[tokio::test]
async fn an_older_epoch_appends_nothing() {
    let (one, of) = (Memory::new(LEASE), session("s", &node("a")));
    let other = one.link();
    let piece = |epoch: u64, first: u64, last: u64| Piece {
        epoch: Epoch(epoch),
        first,
        last,
        bytes: Bytes::from(format!("{first}-{last}")),
    };
    let id = &of.session;
    assert_eq!(one.last(id).await, Ok(None));
    let first = one.append(id, &piece(1, 1, 4), Position::default()).await.expect("it is the first");
    assert_eq!(other.append(id, &piece(2, 1, 1), Position::default()).await, Err(EngineError::Conflict));
    let opening = Piece::opening(Epoch(2), 4);
    assert!(opening.events().is_empty());
    let opened = other.append(id, &opening, first).await.expect("it follows");
    assert_eq!(one.append(id, &piece(1, 5, 6), first).await, Err(EngineError::Conflict));
    other.append(id, &piece(2, 5, 9), opened).await.expect("it follows");
    let (mut behind, mut read) = (Position::default(), Vec::new());
    while let Some((piece, position)) = one.read(id, behind).await.expect("it answers") {
        read.push((piece.epoch, piece.events()));
        behind = position;
    }
    assert_eq!(read, [(Epoch(1), 1..=4), (Epoch(2), opening.events()), (Epoch(2), 5..=9)]);
    assert_eq!(one.last(id).await, Ok(Some((piece(2, 5, 9), behind))));
}

// design fleet: a watch tells all that is there, that it was all, and then what changes
#[tokio::test]
async fn a_watch_tells_all() {
    let (one, of) = (Memory::new(LEASE), node("a"));
    let other = one.link();
    let revision = one.put_node(&of, Expected::Nothing).await.expect("it is the first");
    assert_eq!(other.put_node(&of, Expected::Nothing).await, Err(EngineError::Conflict), "the name is taken");
    one.put_session(&session("s", &of), Expected::Nothing).await.expect("it is new");
    let mut changes = other.watch().await.expect("it answers");
    let known = directory(&mut changes).await;
    assert_eq!((known.nodes().count(), known.sessions().count()), (1, 1));
    one.put_node(&of, Expected::Unchanged(revision)).await.expect("it has not changed");
    assert!(matches!(changes.recv().await, Some(Change::Node(node, _)) if *node == of));
    one.remove_node(&of.name).await.expect("it leaves");
    assert_eq!(changes.recv().await, Some(Change::NodeGone(of.name.clone())));
    assert_eq!(other.node(&of.name).await, Ok(None));
}

// design fleet, nodes: an entry that is not renewed leaves by its lease
#[tokio::test(start_paused = true)]
async fn a_node_that_says_nothing_is_gone() {
    let (one, of) = (Memory::new(LEASE), node("a"));
    let other = one.link();
    let revision = one.put_node(&of, Expected::Nothing).await.expect("it is the first");
    let mut changes = other.watch().await.expect("it answers");
    let mut known = directory(&mut changes).await;
    tokio::time::advance(LEASE / 2).await;
    one.put_node(&of, Expected::Unchanged(revision)).await.expect("it goes on");
    tokio::time::advance(LEASE / 2).await;
    assert!(other.node(&of.name).await.expect("it answers").is_some());
    tokio::time::advance(LEASE / 2).await;
    assert_eq!(other.node(&of.name).await, Ok(None));
    while known.node(&of.name).is_some_and(|(_, reach)| matches!(reach, Reach::Heard(_))) {
        known.apply(changes.recv().await.expect("more comes"), LEASE);
    }
    assert_eq!(known.node(&of.name).map(|(_, reach)| reach), Some(Reach::Gone(LEASE)));
}

// design fleet, requests: each is answered, or fails with what is missing
#[tokio::test]
async fn a_node_answers_what_it_is_asked() {
    let (one, of) = (Memory::new(LEASE), node("a"));
    let other = one.link();
    let body = Bytes::from_static(b"hello");
    assert_eq!(other.call(&of.name, body.clone()).await, Err(EngineError::NoSuchNode(of.name.clone())));
    let mut asked = one.serve(&of.name).await.expect("it answers");
    let serve = async {
        let Asked { body, answer } = asked.recv().await.expect("it is asked");
        answer.send(Bytes::from([&body[..], b" back"].concat())).expect("it waits");
        // A request that is not answered.
        drop(asked.recv().await.expect("it is asked again"));
    };
    let ask = async {
        assert_eq!(other.call(&of.name, body.clone()).await, Ok(Bytes::from_static(b"hello back")));
        assert_eq!(other.call(&of.name, body.clone()).await, Err(EngineError::NoSuchNode(of.name.clone())));
    };
    tokio::join!(serve, ask);
}

// design fleet, engine down: what cannot be asked says so, and changes nothing
#[tokio::test]
async fn a_link_that_is_cut_does_nothing() {
    let (one, of) = (Memory::new(LEASE), node("a"));
    let other = one.link();
    one.cut(true);
    let cut = one.put_node(&of, Expected::Nothing).await;
    assert!(matches!(cut, Err(EngineError::Unavailable(_))), "{cut:?}");
    assert!(matches!(one.watch().await, Err(EngineError::Unavailable(_))));
    assert_eq!(other.node(&of.name).await, Ok(None));
    one.cut(false);
    one.put_node(&of, Expected::Nothing).await.expect("it is mended");
    assert!(other.node(&of.name).await.expect("it answers").is_some());
}
