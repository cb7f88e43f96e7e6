//! The outbox: what is noted of events with them, and how it goes.

use acpd_eventlog::{Batch, EventLog, NewSession, Note, Subscriber};
use tempfile::TempDir;

const WANTED: u16 = 6;
const OTHER: u16 = 4;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn subscriber(name: &str, kinds: &[u16]) -> Subscriber {
    Subscriber { name: name.to_owned(), kinds: kinds.to_vec() }
}

fn session(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), events: events(&[WANTED]), ..NewSession::default() }
}

fn events(kinds: &[u16]) -> Batch {
    let mut batch = Batch::new();
    kinds.iter().for_each(|kind| batch.push(*kind, 1, b"event"));
    batch
}

async fn noted(log: &EventLog, name: &str) -> Vec<(String, u64)> {
    let notes = log.outbox(name, 0, 100).await.expect("the log is read");
    assert!(notes.is_sorted_by(|a, b| a.number < b.number));
    notes.into_iter().map(|Note { session, seq, .. }| (session, seq)).collect()
}

// contract 7.2: what is noted survives the process, each subscriber has its own, and history is no news
#[tokio::test]
async fn events_are_noted_with_their_commit() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut a = log.create(session("a")).await.unwrap();
    a.append_durable(events(&[WANTED])).await.unwrap();
    let both = vec![subscriber("x", &[WANTED]), subscriber("y", &[WANTED, OTHER])];
    log.subscribe(both.clone()).await.unwrap();
    let grown = log.outbox_grown();
    let news = grown.notified();
    a.append_durable(events(&[OTHER, WANTED, 60_000])).await.unwrap();
    news.await;
    let mut b = log.create(session("b")).await.unwrap();
    let mut copied = Batch::of_history();
    copied.push(WANTED, 1, b"event");
    b.append_durable(copied).await.unwrap();
    b.append_final(events(&[WANTED])).await.unwrap();
    let at = |session: &str, seq| (session.to_owned(), seq);
    assert_eq!(noted(&log, "x").await, [at("a", 4), at("b", 3)]);
    assert_eq!(noted(&log, "y").await, [at("a", 3), at("a", 4), at("b", 3)]);
    let first = log.outbox("y", 0, 1).await.unwrap().remove(0);
    log.take_out(vec![first.number]).await.unwrap();
    assert_eq!(log.outbox("y", first.number, 1).await.unwrap()[0].seq, 4);
    drop(a);
    log.close().await;

    let log = open(&dir);
    log.subscribe(both).await.unwrap();
    log.forget_others().await.unwrap();
    assert_eq!(noted(&log, "y").await, [at("a", 4), at("b", 3)]);
    log.append_to("b", Some("host"), "next", events(&[WANTED])).await.unwrap();
    assert_eq!(noted(&log, "x").await, [at("a", 4), at("b", 3), at("b", 4)]);
    // What is deleted is not told.
    let released = acpd_eventlog::IndexUpdate { owner: Some(None), ..acpd_eventlog::IndexUpdate::default() };
    log.update_index("b", Some("host"), "next", released).await.unwrap();
    log.delete("b", "host").await.unwrap();
    assert_eq!(noted(&log, "x").await, [at("a", 4)]);
    log.subscribe(vec![subscriber("y", &[])]).await.unwrap();
    log.forget_others().await.unwrap();
    assert_eq!((noted(&log, "x").await, noted(&log, "y").await), (vec![], vec![at("a", 4)]));
    log.close().await;
}
