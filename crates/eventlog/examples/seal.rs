//! Measures on this machine what it takes to seal sessions, and how fast events are read from open and from sealed files.
//!
//! `cargo run --release -p acpd-eventlog --example seal [DIR]`; without DIR in a temporary directory.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use acpd_eventlog::session_files::{Beginning, Facts, Read, SessionDirectory, SessionReader};
use acpd_eventlog::{Batch, EventLog, Options};
use std::path::Path;
use std::time::Instant;

const SESSIONS: u64 = 1000;
/// Of a session: 500 KB.
const EVENTS: u64 = 1248;
/// Of the long session.
const MANY: u64 = 1_000_000;
/// Events that are appended at once.
const BATCH: u64 = 4;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);
    let sessions = SessionDirectory::open(&dir, "measure")?;
    for at in 0..SESSIONS {
        write(&sessions, &format!("session-{at}"), EVENTS)?;
    }
    write(&sessions, "long", MANY)?;
    let before = sessions.bytes()?;
    read(&sessions, "open files")?;
    read_by_cursor(&dir, "open files").await?;
    let (start, busy) = (Instant::now(), busy());
    for at in 0..SESSIONS {
        seal(&sessions, &format!("session-{at}"))?;
    }
    let (took, busy) = (start.elapsed().as_secs_f64(), crate::busy() - busy);
    println!("{SESSIONS} sessions sealed: {took:.2} s, {busy:.2} s of a processor");
    let start = Instant::now();
    seal(&sessions, "long")?;
    println!("{MANY} events sealed: {:.2} s", start.elapsed().as_secs_f64());
    println!("{before} bytes before, {} behind it", sessions.bytes()?);
    read(&sessions, "a seal")?;
    read_by_cursor(&dir, "a seal").await
}

/// An update of an agent, about 360 bytes, of which each differs in some.
fn event(seq: u64) -> Vec<u8> {
    let word = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{word:016x} the text of a \
         chunk that an agent writes {:x} and goes on with\"}},\"_meta\":{{\"n\":{seq},\"tool\":\"{:08x}\",\"path\":\
         \"crates/eventlog/src/session_files/{:x}.rs\",\"status\":\"in_progress\",\"kind\":\"edit\",\"title\":\"an edit of a \
         file with lines and more lines {word:x}\"}}}}",
        word >> 7,
        word >> 32,
        word >> 40
    )
    .into_bytes()
}

fn write(sessions: &SessionDirectory, id: &str, events: u64) -> Result<(), Failure> {
    let facts = Facts { id: id.to_owned(), host: "measure".into(), ..Facts::default() };
    let new = Beginning { facts, ..Beginning::default() };
    let mut session = sessions.create(new)?.ok_or("it is new")?;
    for batch in 0..events / BATCH {
        let mut out = Batch::new();
        (0..BATCH).for_each(|at| out.push(1, 0, &event(batch * BATCH + at)));
        session.writer.append(out, None)?;
    }
    session.release(Batch::new(), 0)?;
    Ok(())
}

fn seal(sessions: &SessionDirectory, id: &str) -> Result<(), Failure> {
    sessions.find(id)?.ok_or("it is there")?.seal("measure", &())?;
    Ok(())
}

/// By one reader in this thread.
fn read(sessions: &SessionDirectory, what: &str) -> Result<(), Failure> {
    for _ in 0..3 {
        let directory = sessions.find("long")?.ok_or("it is there")?;
        let (mut reader, start, mut events) = (SessionReader::new(directory, 0), Instant::now(), 0);
        while let Read::Blocks(blocks) = reader.read(MANY)? {
            events += blocks.iter().map(|block| block.events().count()).sum::<usize>();
        }
        println!("{events} events read from {what}: {:.2} M/s", rate(start));
    }
    Ok(())
}

/// By the log, as clients are given them.
async fn read_by_cursor(dir: &Path, what: &str) -> Result<(), Failure> {
    let log = EventLog::open(dir, Options::default())?;
    for _ in 0..3 {
        let mut cursor = log.cursor("long", 0).await?;
        let (start, mut events) = (Instant::now(), 0);
        while let Some(block) = cursor.next().await? {
            events += block.events().count();
        }
        println!("{events} events by a cursor from {what}: {:.2} M/s", rate(start));
    }
    log.close().await;
    Ok(())
}

/// Millions of events in a second, since then.
fn rate(start: Instant) -> f64 {
    MANY as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Seconds that this thread has used of a processor, where Linux tells.
fn busy() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: Option<f64> = told.split(' ').next().and_then(|first| first.parse().ok());
    nanoseconds.unwrap_or_default() / 1e9
}
