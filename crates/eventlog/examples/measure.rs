//! Measures the event log on this machine: events per second of one session with a live cursor, in batches as an
//! agent connection makes them, and the latency of one durable append.
//!
//! `cargo run --release -p acpd-eventlog --example measure [DIR]`; without DIR in a temporary directory.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time, and its one task is joined")]

use std::path::Path;
use std::time::{Duration, Instant};

use acpd_eventlog::{Batch, Durability, EventLog, NewSession, Options};

const EVENTS: u64 = 2_000_000;
const BATCH: u64 = 256;
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
        let mut batch = Batch::with_capacity(60_000);
        for _ in 0..BATCH {
            batch.push(1, 0, &PAYLOAD);
        }
        appender.append(batch).await?;
    }
    drop(appender);
    let (events, blocks) = reader.await??;
    let took = start.elapsed();
    log.close().await;
    let rate = events as f64 / took.as_secs_f64() / 1e6;
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
