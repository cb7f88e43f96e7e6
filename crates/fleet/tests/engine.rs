//! The engine in memory does what every engine has to do, and can lose its links.

#[path = "shared/battery.rs"]
mod battery;

use acpd_fleet::{Engine, EngineError, Expected, Memory, Reach};
use battery::{directory, node};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(20);

/// Two links to an engine.
fn links() -> (Memory, Memory) {
    let one = Memory::new(LEASE);
    let other = one.link();
    (one, other)
}

// design fleet, fence: of two claims one is taken, and epochs only grow
#[tokio::test]
async fn one_claim_is_taken() {
    let (one, other) = links();
    battery::one_claim_is_taken(&one, &other).await;
}

// design fleet, sessions: what is made anew is another entry, with a greater revision
#[tokio::test]
async fn what_was_removed_can_be_made_anew() {
    let (one, other) = links();
    battery::what_was_removed_can_be_made_anew(&one, &other).await;
}

// design fleet, log archive: what does not follow is refused, so an owner that was replaced appends nothing
#[tokio::test]
async fn an_older_epoch_appends_nothing() {
    let (one, other) = links();
    battery::an_older_epoch_appends_nothing(&one, &other).await;
}

// design fleet, log archive: a repeated append is known again, and another node's piece is never taken for it
#[tokio::test]
async fn an_append_that_is_repeated_is_one() {
    let (one, other) = links();
    battery::an_append_that_is_repeated_is_one(&one, &other).await;
}

// design fleet, sessions: each id has an entry and an archive of its own, whatever characters it has
#[tokio::test]
async fn sessions_of_similar_names_are_apart() {
    let (one, other) = links();
    battery::sessions_of_similar_names_are_apart(&one, &other).await;
}

// design fleet: a watch tells all that is there, that it was all, and then what changes
#[tokio::test]
async fn a_watch_tells_all() {
    let (one, other) = links();
    battery::a_watch_tells_all(&one, &other).await;
}

// contract 7.3: a node belongs to the fleet until it is removed, as it was noted last, whether it is there or not
#[tokio::test]
async fn a_member_stays() {
    let (one, other) = links();
    battery::a_member_stays(&one, &other).await;
}

// design fleet, nodes: an entry that is not renewed leaves by its lease
#[tokio::test(start_paused = true)]
async fn a_node_that_says_nothing_is_gone() {
    let ((one, other), of) = (links(), node("a"));
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

// design fleet, engine down: what cannot be asked says so, and changes nothing
#[tokio::test]
async fn a_link_that_is_cut_does_nothing() {
    let ((one, other), of) = (links(), node("a"));
    one.cut(true);
    let cut = one.put_node(&of, Expected::Nothing).await;
    assert!(matches!(cut, Err(EngineError::Unavailable(_))), "{cut:?}");
    assert!(matches!(one.watch().await, Err(EngineError::Unavailable(_))));
    assert_eq!(other.node(&of.name).await, Ok(None));
    one.cut(false);
    one.put_node(&of, Expected::Nothing).await.expect("it is mended");
    assert!(other.node(&of.name).await.expect("it answers").is_some());
}
