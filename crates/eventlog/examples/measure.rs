//! Measures the event log on this machine: events per second of one session with a live cursor, in batches as an
//! agent connection makes them, and the latency of one durable append; then events of a session's files, open and sealed, and the last
//! of them alone.
//!
//! `cargo run --release -p acpd-eventlog --example measure [DIR]`; without DIR in a temporary directory.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and its one task is joined")]

use std::path::Path;
use std::time::{Duration, Instant};

use acpd_eventlog::session_files::{Beginning, Facts, Read, SessionDirectory, SessionReader};
use acpd_eventlog::{Batch, Durability, EventLog, NewSession, Options};

const EVENTS: u64 = 2_000_000;
const BATCH: u64 = 256;
/// Of one session, in appends of so many.
const MANY: u64 = 1_000_000;
const SMALL_BATCH: u64 = 4;
const PAYLOAD: [u8; 200] = [b'x'; 200];

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);
    for _ in 0..3 {
        println!("{}", throughput(&dir).await?);
    }
    for durability in [Durability::Process, Durability::Power] {
        println!("{}", latency(&dir, durability).await?);
    }
    println!("{}", history(&dir).await?);
    println!("{}", files(&dir)?);
    println!("{}", ends(&dir).await?);
    Ok(())
}

fn session(id: String) -> NewSession {
    NewSession {
        id,
        agent: "example".into(),
        cwd: "/".into(),
        owner: "measure".into(),
        ..NewSession::default()
    }
}

fn batch() -> Batch {
    let mut batch = Batch::with_capacity(60_000);
    for _ in 0..BATCH {
        batch.push(1, 0, &PAYLOAD);
    }
    batch
}

/// Millions of events in a second, since then.
fn rate(start: Instant) -> f64 {
    EVENTS as f64 / start.elapsed().as_secs_f64() / 1e6
}

async fn throughput(dir: &Path) -> Result<String, Failure> {
    let log = EventLog::open(dir, Options::default())?;
    let id = format!("throughput-{}", log.list(Default::default()).await?.len());
    let mut appender = log.create(session(id.clone())).await?;
    let mut cursor = log.cursor(&id, 0).await?;
    let start = Instant::now();
    let reader = tokio::spawn(async move {
        let (mut events, mut blocks) = (0, 0_u64);
        while let Some(block) = cursor.next().await? {
            events += block.events().filter(|event| event.payload.len() == PAYLOAD.len()).count() as u64;
            blocks += 1;
        }
        Ok::<_, acpd_eventlog::CursorError>((events, blocks))
    });
    for _ in 0..EVENTS / BATCH {
        appender.append(batch()).await?;
    }
    drop(appender);
    let (events, blocks) = reader.await??;
    let rate = rate(start);
    log.close().await;
    Ok(format!(
        "{events} events of 200 bytes through the log to a live cursor: {rate:.2} M/s ({blocks} blocks)"
    ))
}

async fn latency(dir: &Path, durability: Durability) -> Result<String, Failure> {
    let log = EventLog::open(dir, Options { durability, ..Options::default() })?;
    let id = format!("latency-{}", log.list(Default::default()).await?.len());
    let mut appender = log.create(session(id)).await?;
    let mut took: Vec<Duration> = Vec::new();
    for _ in 0..5_000 {
        let mut batch = Batch::new();
        batch.push(1, 0, &PAYLOAD);
        let start = Instant::now();
        appender.append_durable(batch).await?;
        took.push(start.elapsed());
    }
    took.sort();
    log.close().await;
    let (median, high) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    Ok(format!("one event, {durability:?}: median {median:?}, 99 % below {high:?}"))
}

async fn history(dir: &Path) -> Result<String, Failure> {
    let log = EventLog::open(dir, Options::default())?;
    let mut cursor = log.cursor("throughput-0", 0).await?;
    let (start, mut events) = (Instant::now(), 0);
    while let Some(block) = cursor.next().await? {
        events += block.events().count();
    }
    let rate = events as f64 / start.elapsed().as_secs_f64() / 1e6;
    log.close().await;
    Ok(format!("{events} events of history from the file: {rate:.2} M/s"))
}

/// The last events of a session of a million, in small appends, which another log has: all that opening it at its end takes.
async fn ends(dir: &Path) -> Result<String, Failure> {
    let options = Options::default();
    let (log, other) = (EventLog::open(dir, options.clone())?, EventLog::open(dir, options)?);
    let id = format!("ends-{}", std::process::id());
    let mut appender = log.create(session(id.clone())).await?;
    for _ in 0..MANY / SMALL_BATCH {
        let mut batch = Batch::new();
        (0..SMALL_BATCH).for_each(|_| batch.push(1, 0, &PAYLOAD));
        appender.append_now(batch)?;
    }
    let mut figures = Vec::new();
    for after in [MANY - 10, MANY - 10_000, MANY - 100_000, 0] {
        let mut took = Vec::new();
        for _ in 0..11 {
            let start = Instant::now();
            let mut cursor = other.cursor(&id, after).await?;
            cursor.next().await?.ok_or("there are events")?;
            took.push(start.elapsed());
        }
        took.sort();
        figures.push(format!("{:?} behind event {after}", took[took.len() / 2]));
    }
    let (mut cursor, start) = (other.cursor(&id, 0).await?, Instant::now());
    while cursor.next().await?.is_some() {}
    figures.push(format!("{:?} for all", start.elapsed()));
    drop(appender);
    other.close().await;
    log.close().await;
    Ok(format!("first events of a cursor in {MANY}, open: {}", figures.join(", ")))
}

fn files(dir: &Path) -> Result<String, Failure> {
    let sessions = SessionDirectory::open(dir, "measure")?;
    let id = format!("files-{}", std::process::id());
    let facts = Facts { id: id.clone(), host: "measure".into(), ..Facts::default() };
    let new = Beginning { facts, ..Beginning::default() };
    let mut session = sessions.create(new)?.ok_or("it is new")?;
    let start = Instant::now();
    for _ in 0..EVENTS / BATCH {
        session.writer.append(batch(), None)?;
    }
    session.release(Batch::new(), 0)?;
    let appended = rate(start);
    let open = || sessions.find(&id)?.ok_or_else(|| Failure::from("it is there"));
    let read = || {
        let (mut reader, start) = (SessionReader::new(open()?, 0), Instant::now());
        while let Read::Blocks(blocks) = reader.read(EVENTS / BATCH * BATCH)? {
            std::hint::black_box(blocks.iter().map(|block| block.events().count()).sum::<usize>());
        }
        Ok::<_, Failure>(rate(start))
    };
    let raw = read()?;
    let start = Instant::now();
    open()?.seal("measure", &())?;
    let sealed = rate(start);
    Ok(format!(
        "session files: {appended:.2} M/s appended, {raw:.2} read, {sealed:.2} sealed, {:.2} read",
        read()?
    ))
}
