//! The streams of a client, with senders and readers as the connection and HTTP have them.

use super::super::{Outbox, streaming_outbox};
use super::*;
use futures_util::FutureExt;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

fn limits() -> StreamLimits {
    StreamLimits {
        streams: 8,
        unconfirmed: 2,
        kept_per_stream: 4096,
        kept: 8192,
        kept_for: Duration::from_secs(300),
        stall: Duration::from_secs(30),
    }
}

/// Streams of a client that is initialized.
async fn streams() -> (Arc<Streams>, Outbox) {
    streams_among(&Arc::new(Keeping::new(usize::MAX))).await
}

/// One of several clients.
async fn streams_among(keeping: &Arc<Keeping>) -> (Arc<Streams>, Outbox) {
    let (streams, answer) = Streams::new(limits(), Arc::clone(keeping));
    let (outbox, _) = streaming_outbox(Arc::clone(&streams));
    outbox.send(Bytes::from_static(b"{\"initialized\":1}\n")).await.expect("it is open");
    assert_eq!(&answer.await.expect("it is answered")[..], b"{\"initialized\":1}\n");
    (streams, outbox)
}

fn line(text: &str) -> Bytes {
    Bytes::from(format!("{text}\n"))
}

/// What a reader has now, without the ids.
fn taken(reader: &mut Reader) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(Some(events)) = reader.next(Duration::MAX).now_or_never() {
        let text = String::from_utf8(events.to_vec()).expect("text");
        lines.extend(text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned));
    }
    lines
}

fn last_id(events: &Bytes) -> EventId {
    let text = std::str::from_utf8(events).expect("text");
    let id = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
    EventId::read(id.expect("an event has an id")).expect("it is ours")
}

// HT-4, HT-5: a new session's events wait for its stream, and hold up nothing else
#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_reads_holds_up_nothing() {
    let (streams, outbox) = streams().await;
    let viewer = outbox.viewer(&id("s"), true);
    assert!(viewer.is_read().now_or_never().is_none(), "it has no reader");
    let mut connection = streams.open(None, None).expect("it opens");
    assert!(viewer.is_read().now_or_never().is_none(), "not for this session");
    outbox.send(line("1")).await.expect("it is open");
    assert_eq!(taken(&mut connection), ["1"]);
    viewer.send(line("2")).await.expect("there is room");
    let big = Bytes::from(vec![b'x'; 600 * 1024]);
    assert!(viewer.send(big).now_or_never().is_none(), "it waits for a reader");
    let mut session = streams.open(Some(&id("s")), None).expect("it opens");
    viewer.is_read().now_or_never().expect("it is read");
    assert_eq!((taken(&mut session), taken(&mut connection)), (vec!["2".to_owned()], vec![]));
}

// HT-5: a client that asks without ever opening the session's stream gets all of it, in order, on the connection's
#[tokio::test(start_paused = true)]
async fn a_session_that_is_asked_for_without_a_stream_comes_on_the_connections() {
    let (streams, outbox) = streams().await;
    let mut connection = streams.open(None, None).expect("it opens");
    let viewer = outbox.viewer(&id("new"), true);
    viewer.send(line("1")).await.expect("there is room");
    streams.heard(Some(&id("new")));
    viewer.is_read().now_or_never().expect("the connection's reader has it");
    viewer.send(line("2")).await.expect("there is room");
    // A load of a session whose stream was not opened.
    let loaded = outbox.viewer(&id("old"), false);
    loaded.send(line("3")).await.expect("there is room");
    // It opens them after all: what comes on the new one stays behind what is on its way on the other.
    let mut own = streams.open(Some(&id("new")), None).expect("it opens");
    let fourth = viewer.send(line("4"));
    tokio::pin!(fourth);
    assert!(fourth.as_mut().now_or_never().is_none(), "it waits for what precedes it");
    assert_eq!(taken(&mut connection), ["1", "2", "3"]);
    fourth.await.expect("there is room");
    assert_eq!(taken(&mut own), ["4"]);
}

// HT-5: also when the connection's stream is opened only later
#[tokio::test(start_paused = true)]
async fn what_was_asked_for_waits_for_the_connections_first_reader() {
    let (streams, outbox) = streams().await;
    let viewer = outbox.viewer(&id("s"), false);
    viewer.send(line("1")).await.expect("there is room");
    assert!(viewer.is_read().now_or_never().is_none());
    let mut connection = streams.open(None, None).expect("it opens");
    viewer.is_read().now_or_never().expect("it is read");
    viewer.send(line("2")).await.expect("there is room");
    assert_eq!(taken(&mut connection), ["1", "2"]);
}

// HT-4, HT-12: streams of unknown sessions are few, and so are streams
#[tokio::test(start_paused = true)]
async fn streams_are_counted() {
    let begun = Instant::now();
    let (streams, outbox) = streams().await;
    let open = |text: &str| streams.open(Some(&id(text)), None);
    let unknown: Vec<_> = ["a", "b"].map(|text| open(text).expect("it opens")).into();
    assert_eq!(open("c").err(), Some(OpenRefused::Unconfirmed));
    let again = open("a").expect("it is the same stream");
    let _viewer = outbox.viewer(&id("b"), false);
    let third = open("c").expect("b is known now");
    drop((unknown, again, third));
    let viewers: Vec<_> =
        ["a", "c", "d", "e", "f", "g"].iter().map(|text| outbox.viewer(&id(text), true)).collect();
    assert_eq!(open("h").err(), Some(OpenRefused::Full));
    drop(viewers);
    streams.sweep(Instant::now(), begun);
    assert!(open("h").is_ok(), "the others are not needed any more");
}

// HT-6: what is missing is given again, from another reader's cursor on; another stream's cursor is none of this one's
#[tokio::test(start_paused = true)]
async fn a_reader_comes_back_with_its_cursor() {
    let begun = Instant::now();
    let (streams, outbox) = streams().await;
    let viewer = outbox.viewer(&id("s"), true);
    let mut first = streams.open(Some(&id("s")), None).expect("it opens");
    viewer.send(line("1")).await.expect("there is room");
    let seen = last_id(&first.next(Duration::MAX).await.expect("an event"));
    viewer.send(line("2")).await.expect("there is room");
    assert_eq!(taken(&mut first), ["2"]);
    drop(first);
    tokio::time::advance(Duration::from_secs(10)).await;
    viewer.send(line("3")).await.expect("there is room");
    let mut second = streams.open(Some(&id("s")), Some(seen)).expect("it opens");
    assert_eq!(taken(&mut second), ["2", "3"]);
    assert_eq!(streams.open(None, Some(seen)).err(), Some(OpenRefused::Foreign));
    assert_eq!(streams.open(Some(&id("t")), Some(seen)).err(), Some(OpenRefused::Foreign));
    let future = EventId { number: 4, ..seen };
    assert_eq!(streams.open(Some(&id("s")), Some(future)).err(), Some(OpenRefused::Future));
    // HT-12: kept for a while only, and only so much of it
    tokio::time::advance(Duration::from_secs(301)).await;
    streams.sweep(Instant::now(), begun);
    assert_eq!(streams.open(Some(&id("s")), Some(seen)).err(), Some(OpenRefused::Forgotten));
}

// HT-6, HT-12: more than a stream keeps is forgotten, and asking for it is refused
#[tokio::test(start_paused = true)]
async fn a_stream_keeps_so_many_bytes() {
    let (streams, outbox) = streams().await;
    let viewer = outbox.viewer(&id("s"), true);
    let mut reader = streams.open(Some(&id("s")), None).expect("it opens");
    let mut ids = Vec::new();
    for _ in 0..10 {
        viewer.send(line(&"x".repeat(1100))).await.expect("there is room");
        ids.push(last_id(&reader.next(Duration::MAX).await.expect("an event")));
    }
    assert_eq!(streams.open(Some(&id("s")), Some(ids[5])).err(), Some(OpenRefused::Forgotten));
    let mut again = streams.open(Some(&id("s")), Some(ids[6])).expect("the last three are kept");
    assert_eq!(taken(&mut again).len(), 3);
}

// HT-12: all clients together keep so many bytes; the oldest is forgotten first, whosever it is, and what was kept for
// one that is gone counts no more
#[tokio::test(start_paused = true)]
async fn all_clients_keep_so_many_bytes() {
    let keeping = Arc::new(Keeping::new(4000));
    let (first, second) = (streams_among(&keeping).await, streams_among(&keeping).await);
    let mut ids = Vec::new();
    for (streams, outbox) in [&first, &second, &first] {
        assert!(keeping.too_much().now_or_never().is_none(), "there is room for three");
        let mut reader = streams.open(None, None).expect("it opens");
        outbox.send(line(&"x".repeat(1200))).await.expect("there is room");
        ids.push(last_id(&reader.next(Duration::MAX).await.expect("an event")));
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    let make_room = || {
        let all = [&*first.0, &*second.0].into_iter();
        keeping.make_room(all, limits().kept_for, Instant::now());
    };
    make_room();
    let before = |id: EventId| Some(EventId { number: id.number - 1, ..id });
    assert!(first.0.open(None, before(ids[0])).is_ok(), "nothing had to be forgotten");
    // What is given again counts as young; the other client's is the oldest now.
    let mut reader = second.0.open(None, Some(ids[1])).expect("it opens");
    tokio::time::advance(Duration::from_secs(60)).await;
    second.1.send(line(&"x".repeat(1200))).await.expect("there is room");
    reader.next(Duration::MAX).await.expect("an event");
    assert!(keeping.too_much().now_or_never().is_some(), "the task that watches them is woken");
    make_room();
    assert_eq!(second.0.open(None, before(ids[1])).err(), Some(OpenRefused::Forgotten));
    assert!(second.0.open(None, Some(ids[1])).is_ok(), "it had to give up no more than that");
    assert!(first.0.open(None, before(ids[0])).is_ok());
    first.0.close(Closing::Deleted);
    drop((second, reader));
    keeping.change(0, 4000);
    assert!(keeping.too_much().now_or_never().is_none(), "nothing else is counted");
}

// HT-8: what went out a moment before the end of a reader is given to the next one again, under the same ids
#[tokio::test(start_paused = true)]
async fn what_may_be_lost_is_given_again() {
    let (streams, outbox) = streams().await;
    let viewer = outbox.viewer(&id("s"), true);
    let mut first = streams.open(Some(&id("s")), None).expect("it opens");
    viewer.send(line("1")).await.expect("there is room");
    first.next(Duration::MAX).await.expect("an event");
    tokio::time::advance(Duration::from_secs(5)).await;
    viewer.send(line("2")).await.expect("there is room");
    let given = first.next(Duration::MAX).await.expect("an event");
    // It took what it was given before, or a comment would be missing by now.
    tokio::time::advance(Duration::from_secs(26)).await;
    drop(first);
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut second = streams.open(Some(&id("s")), None).expect("it opens");
    assert_eq!(second.next(Duration::MAX).await, Some(given));
}

// HT-9: a comment when nothing comes
#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_a_comment() {
    let (streams, _outbox) = streams().await;
    let mut reader = streams.open(None, None).expect("it opens");
    let begun = Instant::now();
    let comment = reader.next(Duration::from_secs(15)).await;
    assert_eq!((comment.as_deref(), begun.elapsed().as_secs()), (Some(&b":\n\n"[..]), 15));
}

// HT-7, UP-2: a reader that is replaced or has stalled learns it, and the others go on
#[tokio::test(start_paused = true)]
async fn a_reader_is_told_why_it_ends() {
    let begun = Instant::now();
    let (streams, outbox) = streams().await;
    let last = async |reader: &mut Reader| {
        let last = reader.next(Duration::MAX).await.expect("a last event");
        assert_eq!(reader.next(Duration::MAX).await, None);
        String::from_utf8(last.to_vec()).expect("text")
    };
    let mut first = streams.open(None, None).expect("it opens");
    let mut second = streams.open(None, None).expect("it opens");
    assert!(last(&mut first).await.contains(r#""reason":"replaced""#));
    let viewer = outbox.viewer(&id("s"), true);
    let mut stalled = streams.open(Some(&id("s")), None).expect("it opens");
    viewer.send(line("1")).await.expect("there is room");
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(streams.sweep(Instant::now(), begun).stalled, 1);
    let event = last(&mut stalled).await;
    assert!(event.starts_with("event: closed\ndata: ") && event.contains(r#""reason":"stalled""#), "{event}");
    assert!(second.next(Duration::MAX).now_or_never().is_none(), "nothing is wrong with it");
    let mut back = streams.open(Some(&id("s")), None).expect("it opens");
    assert_eq!(taken(&mut back), ["1"]);
    // The daemon ends: first what waits.
    viewer.send(line("2")).await.expect("there is room");
    streams.close(Closing::Shutdown);
    assert_eq!(viewer.send(line("3")).await, Err(super::super::ClientGone));
    assert_eq!(back.next(Duration::MAX).await.map(|events| last_id(&events).number), Some(2));
    assert!(last(&mut back).await.contains(r#""reason":"shutdown""#));
    assert_eq!(streams.open(None, None).err(), Some(OpenRefused::Gone));
}

// HT-10: a client without a reader that says nothing is idle
#[tokio::test(start_paused = true)]
async fn a_connection_is_idle_without_a_reader() {
    let (streams, _outbox) = streams().await;
    let begun = Instant::now();
    assert_eq!(streams.sweep(Instant::now(), begun).idle_since, Some(begun));
    tokio::time::advance(Duration::from_secs(5)).await;
    streams.heard(None);
    assert_eq!(streams.sweep(Instant::now(), begun).idle_since, Some(Instant::now()));
    let reader = streams.open(None, None).expect("it opens");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(streams.sweep(Instant::now(), begun).idle_since, None);
    drop(reader);
    assert_eq!(streams.sweep(Instant::now(), begun).idle_since, Some(Instant::now()));
}
