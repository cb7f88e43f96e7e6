//! Shared frames over a real log: what is rendered, how often, and in which pieces it goes out.

use super::*;
use acpd_eventlog::{Appender, Batch, EventLog, NewSession, Options};
use acpd_host::EventKind;
use acpd_record::SessionId;
use std::convert::Infallible;
use tempfile::TempDir;

/// A reader of a stream.
struct Reader {
    source: EventSource,
    frames: Frames,
    sent: Vec<Bytes>,
}

impl Reader {
    async fn open(log: &EventLog, after: u64) -> Self {
        let mut source = EventSource::Log(Box::new(log.cursor("s", after).await.expect("it is there")));
        source.begin_stream();
        Self { source, frames: Frames::default(), sent: Vec::new() }
    }

    /// Reads up to event `last`, each time all that is there.
    async fn read(&mut self, last: u64) {
        let id = SessionId::parse("s").expect("an id");
        while self.source.position() < last {
            let mut next = self.source.next(&id).await.ok().expect("it can be read");
            while let Some(block) = next {
                let Ok(()) = self.frames.add(block, &self.source, &mut self.sent).await;
                next = self.source.try_next();
            }
            self.sent.extend(self.frames.rest());
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.sent.concat()
    }

    fn rendered(&self) -> u64 {
        self.frames.renderer.rendered
    }
}

impl Sink for Vec<Bytes> {
    type Closed = Infallible;

    async fn take(&mut self, piece: Bytes) -> Result<(), Infallible> {
        self.push(piece);
        Ok(())
    }
}

struct Session {
    log: EventLog,
    appender: Appender,
    last: u64,
    _dir: TempDir,
}

impl Session {
    async fn begin() -> Self {
        let dir = TempDir::new().expect("a directory");
        let log = EventLog::open(dir.path(), Options::default()).expect("the log opens");
        let new = NewSession { id: "s".into(), owner: "host".into(), ..NewSession::default() };
        let appender = log.create(new).await.expect("it is new");
        Self { log, appender, last: 0, _dir: dir }
    }

    /// Appends a block of so many events.
    async fn append(&mut self, events: u64, text: &str) {
        let mut batch = Batch::new();
        for at_ms in 0..events {
            let update = format!(r#"{{"jsonrpc":"2.0","params":{{"at":{at_ms},"text":"{text}"}}}}"#);
            batch.push(EventKind::Update.number(), at_ms.cast_signed(), update.as_bytes());
        }
        self.last += events;
        self.appender.append(batch).await.expect("there is room");
        self.appender.committed().wait_for(self.last).await.expect("it is written");
    }
}

// issue 29, deliver 3: encoded once for all viewers, and each gets what it would get alone
#[tokio::test]
async fn each_event_is_rendered_once_for_all_readers() {
    let mut session = Session::begin().await;
    session.append(1, "before").await;
    let mut readers = Vec::new();
    for _ in 0..16 {
        readers.push(Reader::open(&session.log, 0).await);
    }
    // Small, larger than a piece, and more than one piece.
    for (events, text) in [(1, "x".repeat(10)), (1, "y".repeat(100_000)), (900, "z".repeat(200))] {
        session.append(events, &text).await;
        for reader in &mut readers[..8] {
            reader.read(session.last).await;
        }
    }
    // These are behind, and take all blocks at once.
    for reader in &mut readers[8..] {
        reader.read(session.last).await;
    }
    assert_eq!(readers.iter().map(Reader::rendered).sum::<u64>(), session.last);
    let whole = readers[0].bytes();
    assert!(readers.iter().all(|reader| reader.bytes() == whole));
    drop(readers);
    let mut alone = Reader::open(&session.log, 0).await;
    alone.read(session.last).await;
    assert_eq!(alone.rendered(), session.last, "nobody shares with it");
    assert!(alone.bytes() == whole, "the same bytes");
}

// issue 29, deliver 3: a large piece is one buffer for all
#[tokio::test]
async fn a_large_piece_is_shared_without_a_copy() {
    let mut session = Session::begin().await;
    let mut readers = [Reader::open(&session.log, 0).await, Reader::open(&session.log, 0).await];
    session.append(900, &"z".repeat(200)).await;
    for reader in &mut readers {
        reader.read(session.last).await;
    }
    let [first, second] = readers.map(|reader| reader.sent);
    assert!(first.len() > 3 && first.iter().all(|piece| piece.len() < PIECE + SMALL));
    let places = |pieces: &[Bytes]| pieces.iter().map(|piece| piece.as_ptr() as usize).collect::<Vec<_>>();
    assert_eq!(places(&first), places(&second));
}

// issue 29, deliver 3: a reader whose cursor begins inside a block renders the rest of it, and shares what follows
#[tokio::test]
async fn a_reader_that_begins_inside_a_block_sees_the_rest_of_it() {
    let mut session = Session::begin().await;
    session.append(10, "first").await;
    let (mut whole, mut part) = (Reader::open(&session.log, 0).await, Reader::open(&session.log, 7).await);
    session.append(5, "second").await;
    whole.read(15).await;
    part.read(15).await;
    assert_eq!((whole.rendered(), part.rendered()), (15, 3));
    let (whole, part) = (whole.bytes(), part.bytes());
    assert!(part.starts_with(b"id: 8\n") && whole.ends_with(&part));
}

// issue 29, deliver 3: many small blocks are one write for a reader that is behind, and none of them waits
#[tokio::test]
async fn small_blocks_are_joined() {
    let mut session = Session::begin().await;
    let mut readers = [Reader::open(&session.log, 0).await, Reader::open(&session.log, 0).await];
    for _ in 0..100 {
        session.append(1, "small").await;
    }
    readers[0].read(100).await;
    readers[1].read(100).await;
    assert_eq!((readers[0].sent.len(), readers[1].sent.len()), (1, 1));
    let rendered = readers[0].rendered() + readers[1].rendered();
    assert_eq!(rendered, 100);
    session.append(1, "next").await;
    readers[0].read(101).await;
    assert_eq!(readers[0].sent.len(), 2);
}

#[test]
fn pieces_go_out_in_order_and_small_ones_together() {
    let sizes: [(&[usize], &[usize]); 7] = [
        (&[10], &[10]),
        (&[10, 20, 30], &[60]),
        (&[SMALL], &[SMALL]),
        (&[10, SMALL, 20, 30], &[10, SMALL, 50]),
        (&[10, 20, SMALL], &[30, SMALL]),
        (&[SMALL, SMALL], &[SMALL, SMALL]),
        (&[SMALL - 1, SMALL - 1, SMALL - 1, SMALL - 1, 4, 5], &[PIECE, 5]),
    ];
    for (given, expected) in sizes {
        let mut open = Open::default();
        let pieces: Vec<_> = (b'a'..).zip(given).map(|(byte, size)| Bytes::from(vec![byte; *size])).collect();
        let mut sent: Vec<_> = pieces.iter().filter_map(|piece| open.add(piece)).collect();
        sent.extend(open.take());
        assert_eq!(sent.iter().map(Bytes::len).collect::<Vec<_>>(), expected, "{given:?}");
        assert!(sent.concat() == pieces.concat(), "{given:?}");
    }
}
