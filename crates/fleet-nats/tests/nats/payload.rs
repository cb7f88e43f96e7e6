//! A server that takes short messages only.

use crate::battery::{node, session};
use crate::server::{Server, Used, place};
use acpd_fleet::{Assembly, Engine, EngineError, Epoch, Expected, MOST_BYTES, Piece, Position, Run};
use acpd_fleet_nats::{Nats, NatsError};
use bytes::Bytes;
use serde_json::json;

// design fleet, log archive: pieces are cut to what the server takes, and come back whole; what is longer is refused, and the
// connection stays
#[tokio::test]
async fn what_is_written_fits_the_server() {
    let server = Server::start_at(place(1)[0], "max_payload: 64KB", &[]);
    let (one, _other) = server.links().await;
    let most = one.most_bytes();
    assert!((60_000..65_536).contains(&most), "{most}");
    let bytes: Bytes = (0..300_000_u32).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
    let run = Run { first: 1, last: 7, bytes };
    let id = "a-long-id-of-a-session".repeat(5);
    let record = session(&id, &node("a"));
    let pieces = Piece::of_run_within(Epoch(u64::MAX), &run, most);
    let (mut behind, mut assembly, mut found) = (Position::default(), Assembly::default(), Vec::new());
    for piece in &pieces {
        behind = one.append(&record.session, piece, behind).await.expect("it fits");
    }
    let mut at = Position::default();
    while let Some((piece, next)) = one.read(&record.session, at).await.expect("it answers") {
        found.extend(assembly.take(piece));
        at = next;
    }
    assert_eq!((found, pieces.len()), (vec![run.clone()], 5));
    let long = &Piece::of_run_within(Epoch(u64::MAX), &run, MOST_BYTES)[0];
    let refused = one.append(&record.session, long, behind).await;
    assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
    let mut entry = record.clone();
    entry.info = json!({"title": "t".repeat(2 * most)});
    let refused = one.put_session(&entry, Expected::Nothing).await;
    assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
    one.put_session(&record, Expected::Nothing).await.expect("the connection is as it was");
}

// contract 7.2: a server that takes too little is said to do so, once and for all
#[tokio::test]
async fn a_server_that_takes_too_little_is_refused() {
    let server = Server::start_at(place(1)[0], "max_payload: 8KB", &[]);
    let error = Nats::connect(server.settings()).await.expect_err("it takes too little");
    assert!(matches!(error, NatsError::TooSmall { bytes: 8192 }) && !error.is_temporary(), "{error}");
}
