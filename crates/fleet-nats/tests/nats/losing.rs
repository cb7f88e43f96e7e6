//! Servers that are killed and stand still: every call ends, a watch is told anew, and what was acknowledged is there.

use crate::battery::{node, piece, session};
use crate::server::{SHORT, Server, Used, linked, soon, until};
use acpd_fleet::{Change, Changes, Directory, Engine, EngineError, Epoch, Expected, Piece, Position};
use acpd_fleet_nats::Nats;
use bytes::Bytes;
use std::time::Duration;

/// What a call may take beyond its patience on a machine that has much to do.
const MORE: Duration = Duration::from_secs(10);

/// The next change is that everything is told anew; what is known then.
async fn told_anew(changes: &mut Changes, known: &mut Directory) {
    let mut is_anew = false;
    while !(is_anew && known.is_complete()) {
        let change = changes.recv().await.expect("the watch goes on");
        is_anew |= change == Change::Again;
        known.apply(change, Duration::ZERO);
    }
}

/// Each of the ten calls says in time that there is no answer.
async fn nothing_is_answered(engine: &Nats) {
    let (of, mine, first) = (node("x"), session("x", &node("x")), piece(1, 1, 1));
    let (id, none) = (&mine.session, Position::default());
    let calls = [
        ("put_node", unanswered(engine.put_node(&of, Expected::Nothing))),
        ("remove_node", unanswered(engine.remove_node(&of.name))),
        ("node", unanswered(engine.node(&of.name))),
        ("put_session", unanswered(engine.put_session(&mine, Expected::Nothing))),
        ("remove_session", unanswered(engine.remove_session(id, acpd_fleet::Revision(1)))),
        ("session", unanswered(engine.session(id))),
        ("watch", unanswered(engine.watch())),
        ("append", unanswered(engine.append(id, &first, none))),
        ("read", unanswered(engine.read(id, none))),
        ("last", unanswered(engine.last(id))),
    ];
    let all = calls.map(|(name, call)| async move {
        let result = tokio::time::timeout(SHORT + MORE, call).await;
        let result = result.unwrap_or_else(|_| panic!("{name} does not end in time"));
        assert!(matches!(result, Some(EngineError::Unavailable(_))), "{name}: {result:?}");
    });
    futures_util::future::join_all(all).await;
}

type Ended<'a> = std::pin::Pin<Box<dyn Future<Output = Option<EngineError>> + 'a>>;

fn unanswered<'a, T: 'a>(call: acpd_fleet::Pending<'a, Result<T, EngineError>>) -> Ended<'a> {
    Box::pin(async move { call.await.err() })
}

// design fleet, engine down: calls say so in time, a watch is told anew, and nothing that was acknowledged is lost
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing() {
    let mut server = Server::start();
    let (one, other) = linked(server.short_settings()).await;
    let (mut changes, mut known) = (other.watch().await.expect("it answers"), Directory::new());
    let mut written = Vec::new();
    for count in 1..=20u64 {
        let mut mine = session(&format!("s.{count}"), &node("a"));
        mine.seq = count;
        let revision = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
        let place = one.append(&mine.session, &piece(revision.0, 1, count), Position::default()).await;
        written.push((mine, revision, place.expect("it is the first")));
    }
    server.kill();
    // What was on its way at this moment may be done later. From when on the loss is known nothing is sent.
    let is_known = async || match one.node(&node("x").name).await {
        Err(EngineError::Unavailable(why)) => why.contains("no connection").then_some(()),
        answer => panic!("the server is dead: {answer:?}"),
    };
    until(is_known).await;
    nothing_is_answered(&one).await;
    server.again();
    soon(told_anew(&mut changes, &mut known)).await;
    assert_eq!(known.sessions().count(), written.len());
    for (mine, revision, place) in &written {
        let (id, revision) = (&mine.session, *revision);
        assert_eq!(other.session(id).await, Ok(Some((mine.clone(), revision))));
        assert_eq!(other.last(id).await, Ok(Some((piece(revision.0, 1, mine.seq), *place))));
    }
    // Nothing of what was not answered was done when the server was there again.
    let found = until(async || one.node(&node("x").name).await.ok()).await;
    assert_eq!(found, None, "and the other link is there again, too");
    assert_eq!(one.last(&session("x", &node("x")).session).await, Ok(None));
    // Everything goes on.
    let (mine, revision, place) = &written[0];
    let next = piece(revision.0, mine.seq + 1, 9);
    one.append(&mine.session, &next, *place).await.expect("it follows");
    let claimed = other.put_session(mine, Expected::Unchanged(*revision)).await.expect("nobody was first");
    let told = async {
        while known.session(&mine.session).is_none_or(|(_, known)| known != claimed) {
            known.apply(changes.recv().await.expect("the watch goes on"), Duration::ZERO);
        }
    };
    soon(told).await;
    drop(other);
    let ends = async { while changes.recv().await.is_some() {} };
    soon(ends).await;
}

// design fleet, engine wedged: a server that takes connections and says nothing holds no call up
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_holds_nothing_up() {
    let server = Server::start();
    let (one, other) = linked(server.short_settings()).await;
    let mine = session("s", &node("a"));
    let first = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    let (mut changes, mut known) = (other.watch().await.expect("it answers"), Directory::new());
    server.stop(true);
    nothing_is_answered(&one).await;
    let connect = tokio::time::timeout(SHORT + MORE, Nats::connect(server.short_settings())).await;
    let error = connect.expect("it ends in time").expect_err("nobody answers");
    assert!(error.is_temporary(), "{error}");
    // It is seen by its silence, over a connection that still is one.
    let again = async { while changes.recv().await.expect("the watch goes on") != Change::Again {} };
    soon(again).await;
    known.apply(Change::Again, Duration::ZERO);
    server.stop(false);
    let second = until(async || one.put_session(&mine, Expected::Unchanged(first)).await.ok()).await;
    let told = async {
        while !known.is_complete() || known.session(&mine.session).map(|(_, known)| known) != Some(second) {
            known.apply(changes.recv().await.expect("the watch goes on"), Duration::ZERO);
        }
    };
    soon(told).await;
}

// design fleet, fence: a node that was away and did not hear of another's claim writes and appends nothing
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_late_changes_nothing() {
    let server = Server::start();
    let (one, other) = server.links().await;
    let (of, mine) = (node("a"), session("s", &node("a")));
    let claimed = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    let at = one
        .append(&mine.session, &piece(claimed.0, 1, 3), Position::default())
        .await
        .expect("it is the first");
    let taken = other.put_session(&session("s", &node("b")), Expected::Unchanged(claimed)).await;
    let taken = taken.expect("nobody was first");
    let opened =
        other.append(&mine.session, &Piece::opening(Epoch(taken.0), 3), at).await.expect("it follows");
    assert_eq!(one.append(&mine.session, &piece(claimed.0, 4, 9), at).await, Err(EngineError::Conflict));
    assert_eq!(one.put_session(&mine, Expected::Unchanged(claimed)).await, Err(EngineError::Conflict));
    assert_eq!(one.remove_session(&mine.session, claimed).await, Err(EngineError::Conflict));
    let last = other.last(&mine.session).await.expect("it answers").expect("it is there");
    assert_eq!(last, (Piece::opening(Epoch(taken.0), 3), opened), "nothing of the archive went with it");
    // A removal that is repeated is known again, and one of an entry that is there anew is none.
    other.remove_session(&mine.session, taken).await.expect("it is as it was");
    other.remove_session(&mine.session, taken).await.expect("it was its own");
    assert_eq!(one.remove_session(&mine.session, claimed).await, Err(EngineError::Conflict));
    let anew = one.put_session(&mine, Expected::Nothing).await.expect("nothing is there");
    assert_eq!(other.remove_session(&mine.session, taken).await, Err(EngineError::Conflict));
    assert_eq!(one.session(&mine.session).await, Ok(Some((mine, anew))));
    one.put_node(&of, Expected::Nothing).await.expect("it is new");
}

// design fleet, log archive: the server knows a message id again; what it says of that other message is no success of this one
#[tokio::test]
async fn a_piece_that_is_taken_for_another_is_refused() {
    let server = Server::start();
    let (one, _other) = server.links().await;
    let mine = session("s", &node("a"));
    let (id, none) = (&mine.session, Position::default());
    let claimed = one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    let first = one.append(id, &piece(1, 1, 4), none).await.expect("it is the first");
    let second = one.append(id, &piece(1, 5, 9), first).await.expect("it follows");
    // It is expected to follow what is there, and was appended before that.
    assert_eq!(one.append(id, &piece(1, 1, 4), second).await, Err(EngineError::Conflict));
    let others = Piece { bytes: Bytes::from_static(b"other"), ..piece(1, 1, 4) };
    assert_eq!(one.append(id, &others, second).await, Err(EngineError::Conflict));
    assert_eq!(one.last(id).await, Ok(Some((piece(1, 5, 9), second))));
    // What is known again is not there any more.
    one.remove_session(id, claimed).await.expect("it is as it was");
    assert_eq!(one.append(id, &piece(1, 1, 4), none).await, Err(EngineError::Conflict));
    assert_eq!(one.last(id).await, Ok(None));
}
