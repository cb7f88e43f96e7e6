//! What every engine has to do, by the one over NATS.

use crate::battery;
use crate::server::{Server, Used};

// design fleet, fence: of two claims one is taken, and epochs only grow
#[tokio::test]
async fn one_claim_is_taken() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::one_claim_is_taken(&one, &other).await;
}

// design fleet, sessions: what is made anew is another entry, with a greater revision
#[tokio::test]
async fn what_was_removed_can_be_made_anew() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::what_was_removed_can_be_made_anew(&one, &other).await;
}

// design fleet, log archive: what does not follow is refused, so an owner that was replaced appends nothing
#[tokio::test]
async fn an_older_epoch_appends_nothing() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::an_older_epoch_appends_nothing(&one, &other).await;
}

// design fleet, log archive: a repeated append is known again, and another node's piece is never taken for it
#[tokio::test]
async fn an_append_that_is_repeated_is_one() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::an_append_that_is_repeated_is_one(&one, &other).await;
}

// design fleet, sessions: each id has an entry and an archive of its own, whatever characters it has
#[tokio::test]
async fn sessions_of_similar_names_are_apart() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::sessions_of_similar_names_are_apart(&one, &other).await;
}

// design fleet: a watch tells all that is there, that it was all, and then what changes
#[tokio::test]
async fn a_watch_tells_all() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::a_watch_tells_all(&one, &other).await;
}

// contract 7.3: a node belongs to the fleet until it is removed, as it was noted last, whether it is there or not
#[tokio::test]
async fn a_member_stays() {
    let server = Server::start();
    let (one, other) = server.links().await;
    battery::a_member_stays(&one, &other).await;
}
