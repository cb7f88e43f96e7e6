//! Measures on this machine what a list of sessions that are files needs to read: the heads of those that another host has, and
//! what an index lacks.
//!
//! `cargo run --release -p acpd-eventlog --example lists [DIR]`; without DIR in a temporary directory.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use acpd_eventlog::session_files::{
    Beginning, CatchUp, Claims, Facts, HeadReader, IndexedSession, SessionDirectory,
};
use acpd_eventlog::{Batch, IndexUpdate};
use std::path::Path;
use std::time::Instant;

const SESSIONS: usize = 10_000;
const LIVE: usize = 3_000;
/// Of a session, in batches of four events, beside the first.
const BATCHES: usize = 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);
    let ids = measure("create them", SESSIONS, || create(&dir))?;
    let claims = Claims { host: "other".into(), sessions: ids.iter().take(LIVE).cloned().collect() };
    let reader = HeadReader::new(&dir);
    for _ in 0..3 {
        measure("heads of another host's", LIVE, || {
            Ok(reader.read(std::slice::from_ref(&claims), |_| false))
        })?;
    }
    let rows = || -> Vec<_> {
        let row = |id: &String| IndexedSession { id: id.clone(), last_seq: 0, updated_ms: 0 };
        ids.iter().map(row).collect()
    };
    for _ in 0..3 {
        measure("names, an index that has all", SESSIONS, || {
            Ok(CatchUp::new(&dir, rows(), |_| false)?.count())
        })?;
        measure("a new index", SESSIONS, || Ok(CatchUp::new(&dir, Vec::new(), |_| false)?.count()))?;
        measure("an index that has all, heads too", SESSIONS, || {
            Ok(CatchUp::new(&dir, rows(), |_| true)?.count())
        })?;
    }
    Ok(())
}

fn measure<T>(what: &str, count: usize, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let (start, busy) = (Instant::now(), busy_ms());
    let result = act()?;
    let (took, busy) = (start.elapsed().as_secs_f64() * 1e3, busy_ms() - busy);
    println!("{count} sessions, {what}: {took:.1} ms, {busy:.1} ms of a processor");
    Ok(result)
}

/// What this process has used of a processor, where Linux tells: on a busy machine the time on the wall says little.
fn busy_ms() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds: Option<f64> = told.split(' ').next().and_then(|first| first.parse().ok());
    nanoseconds.unwrap_or_default() / 1e6
}

fn create(dir: &Path) -> Result<Vec<String>, Failure> {
    let directory = SessionDirectory::open(dir, "other")?;
    let mut ids = Vec::new();
    for at in 0..SESSIONS {
        let id = format!("0190b1f0-0000-7000-8000-{at:012}");
        let facts = Facts {
            id: id.clone(),
            agent: "example".into(),
            cwd: "/project".into(),
            host: "other".into(),
            ..Facts::default()
        };
        let new = Beginning { facts, info: vec![b'i'; 400], batch: events() };
        let mut claimed = directory.create(new)?.ok_or("there is one")?;
        for _ in 0..BATCHES {
            claimed.writer.append(events(), None)?;
        }
        let info = IndexUpdate { updated_ms: 1, info: Some(vec![b'j'; 500]), ..IndexUpdate::default() };
        claimed.writer.append(Batch::index_only(info), None)?;
        ids.push(id);
    }
    Ok(ids)
}

fn events() -> Batch {
    let mut batch = Batch::new();
    (0..4).for_each(|_| batch.push(1, 1, &[b'x'; 200]));
    batch
}
