//! What every engine has to do: claims, the archive's fence, watches and requests. `one` and `other` are two links to an engine
//! that has nothing yet.
//!
//! Not here: what becomes of entries with the time, and of calls that are not answered, which each engine shows in its own way.

use acpd_fleet::{
    Change, Changes, Directory, Engine, EngineError, Epoch, Expected, NodeId, NodeName, NodeRecord, Piece,
    Position, Reach, Run, SessionRecord, epoch_of,
};
use acpd_record::SessionId;
use bytes::Bytes;
use serde_json::json;
use std::time::Duration;

pub(crate) fn node(name: &str) -> NodeRecord {
    let name = NodeName::try_from(name.to_owned()).expect("a name");
    NodeRecord::new(name, NodeId("1".to_owned()), "1")
}

pub(crate) fn session(id: &str, owner: &NodeRecord) -> SessionRecord {
    SessionRecord::new(SessionId::parse(id).expect("an id"), owner, json!({"title": "t"}))
}

pub(crate) fn piece(epoch: u64, first: u64, last: u64) -> Piece {
    let bytes = Bytes::from(format!("{epoch}: {first}-{last}"));
    Piece::of_run(Epoch(epoch), &Run { first, last, bytes }).remove(0)
}

/// What a watch has told until it was complete.
pub(crate) async fn directory(changes: &mut Changes) -> Directory {
    let mut directory = Directory::new();
    while !directory.is_complete() {
        directory.apply(changes.recv().await.expect("more comes"), Duration::ZERO);
    }
    directory
}

// design fleet, fence: of two claims one is taken, and epochs only grow
pub(crate) async fn one_claim_is_taken(one: &dyn Engine, other: &dyn Engine) {
    let two = node("b");
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

// design fleet, sessions: what is made anew is another entry, with a greater revision
pub(crate) async fn what_was_removed_can_be_made_anew(one: &dyn Engine, other: &dyn Engine) {
    let (of, mine) = (node("a"), session("s", &node("a")));
    let id = &mine.session;
    let first = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    one.append(id, &piece(first.0, 1, 4), Position::default()).await.expect("it is the first");
    one.remove_session(id, first).await.expect("it is as it was");
    assert_eq!(other.last(id).await, Ok(None), "its archive is gone with it");
    assert_eq!(other.put_session(&mine, Expected::Unchanged(first)).await, Err(EngineError::Conflict));
    let second = other.put_session(&mine, Expected::Nothing).await.expect("nothing is there");
    assert!(second > first);
    assert_eq!(one.put_session(&mine, Expected::Nothing).await, Err(EngineError::Conflict));
    other.append(id, &piece(second.0, 1, 2), Position::default()).await.expect("it is the first again");
    let first = one.put_node(&of, Expected::Nothing).await.expect("it is new");
    one.remove_node(&of.name).await.expect("it leaves");
    one.remove_node(&of.name).await.expect("it has left");
    assert_eq!(one.put_node(&of, Expected::Unchanged(first)).await, Err(EngineError::Conflict));
    let second = one.put_node(&of, Expected::Nothing).await.expect("nothing is there");
    assert!(second > first);
    assert_eq!(other.node(&of.name).await, Ok(Some((of.clone(), second))));
    assert_eq!(
        other.put_node(&of, Expected::Unchanged(Default::default())).await,
        Err(EngineError::Conflict)
    );
}

// design fleet, log archive: what does not follow is refused, so an owner that was replaced appends nothing
pub(crate) async fn an_older_epoch_appends_nothing(one: &dyn Engine, other: &dyn Engine) {
    let of = session("s", &node("a"));
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

// design fleet, log archive: a repeated append is known again, and another node's piece is never taken for it
pub(crate) async fn an_append_that_is_repeated_is_one(one: &dyn Engine, other: &dyn Engine) {
    let of = session("s", &node("a"));
    let (id, none) = (&of.session, Position::default());
    let first = one.append(id, &piece(1, 1, 4), none).await.expect("it is the first");
    assert_eq!(one.append(id, &piece(1, 1, 4), none).await, Ok(first));
    let others = Piece { bytes: Bytes::from_static(b"other"), ..piece(1, 1, 4) };
    assert_eq!(
        other.append(id, &others, none).await,
        Err(EngineError::Conflict),
        "the same events, otherwise"
    );
    assert_eq!(other.append(id, &piece(2, 1, 4), none).await, Err(EngineError::Conflict), "another epoch");
    let opening = Piece::opening(Epoch(2), 4);
    let opened = other.append(id, &opening, first).await.expect("it follows");
    assert_eq!(other.append(id, &opening, first).await, Ok(opened));
    let second = other.append(id, &piece(2, 5, 5), opened).await.expect("it follows what opens its epoch");
    assert_eq!(
        one.append(id, &piece(1, 1, 4), none).await,
        Ok(first),
        "it is there, whatever came behind it"
    );
    assert_eq!(
        one.append(id, &piece(1, 1, 4), opened).await,
        Err(EngineError::Conflict),
        "it is not behind that one"
    );
    assert_eq!(one.last(id).await, Ok(Some((piece(2, 5, 5), second))));
}

// design fleet, sessions: each id has an entry and an archive of its own, whatever characters it has
pub(crate) async fn sessions_of_similar_names_are_apart(one: &dyn Engine, other: &dyn Engine) {
    let ids = ["s", "s.1", "s.1.2", "s_1", "s-1", "S", "s..1", "."];
    let of = node("a");
    let mut changes = other.watch().await.expect("it answers");
    directory(&mut changes).await;
    for (count, id) in (1..).zip(ids) {
        let mut new = session(id, &of);
        new.seq = count;
        let revision = one.put_session(&new, Expected::Nothing).await.expect("it is new");
        one.append(&new.session, &piece(1, 1, count), Position::default()).await.expect("it is the first");
        assert_eq!(changes.recv().await, Some(Change::Session(Box::new(new), revision)));
    }
    for (count, id) in (1..).zip(ids) {
        let id = session(id, &of).session;
        let (found, revision) = other.session(&id).await.expect("it answers").expect("it is there");
        assert_eq!((&found.session, found.seq), (&id, count));
        assert_eq!(
            other.last(&id).await.expect("it answers").map(|(found, _)| found),
            Some(piece(1, 1, count))
        );
        one.remove_session(&id, revision).await.expect("it is as it was");
        assert_eq!(changes.recv().await, Some(Change::SessionGone(id.clone())));
    }
}

// design fleet: a watch tells all that is there, that it was all, and then what changes
pub(crate) async fn a_watch_tells_all(one: &dyn Engine, other: &dyn Engine) {
    let of = node("a");
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

// contract 7.3: a node belongs to the fleet until it is removed, as it was noted last, whether it is there or not
pub(crate) async fn a_member_stays(one: &dyn Engine, other: &dyn Engine) {
    let (first, mut second) = (node("a"), node("a"));
    second.left = true;
    one.remove_member(&first.name).await.expect("there is none");
    for noted in [&first, &second] {
        one.put_member(noted).await.expect("it answers");
    }
    let mut changes = other.watch().await.expect("it answers");
    let mut known = directory(&mut changes).await;
    assert_eq!(known.member(&first.name).map(|member| &**member), Some(&second));
    let seen = known.node(&first.name).map(|(record, reach)| (&**record, reach));
    assert_eq!(seen, Some((&second, Reach::Gone(Duration::ZERO))));
    assert_eq!(other.node(&first.name).await, Ok(None), "it is not there");
    other.put_node(&first, Expected::Nothing).await.expect("so it may be");
    assert!(matches!(changes.recv().await, Some(Change::Node(..))));
    one.put_member(&first).await.expect("it answers");
    assert_eq!(changes.recv().await, Some(Change::Member(Box::new(first.clone()))));
    one.remove_member(&first.name).await.expect("it answers");
    let gone = changes.recv().await.expect("it is told");
    assert_eq!(gone, Change::MemberGone(first.name.clone()));
    known.apply(gone, Duration::ZERO);
    assert_eq!((known.member(&first.name), known.nodes().count()), (None, 0));
}
