//! Measures commits that survive the loss of power: sessions that each append one event and wait until it is committed, next to those
//! that survive the death of every process alone, by turns, and how long it takes to create and to resume a session.
//!
//! `cargo run --release -p acpd-eventlog --example power [DIR]`; without DIR in a temporary directory. A line of JSON for each number
//! of sessions, with [process, power] of each figure.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use acpd_eventlog::{Appender, Batch, Durability, EventLog, IndexUpdate, NewSession, Options};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Numbers of sessions that append at once.
const SESSIONS: [usize; 3] = [1, 8, 64];
/// Turns of each durability, and how long one is measured.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(2);
const PAYLOAD: [u8; 300] = [b'x'; 300];

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The times that a durability takes.
#[derive(Default)]
struct Measured {
    commits: Vec<Duration>,
    spent: Duration,
    created: Vec<Duration>,
    resumed: Vec<Duration>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);
    for sessions in SESSIONS {
        let mut all = [Measured::default(), Measured::default()];
        for turn in 0..TURNS {
            for (side, durability) in [Durability::Process, Durability::Power].into_iter().enumerate() {
                let dir = dir.join(format!("{durability:?}-{sessions}-{turn}"));
                measure(&dir, durability, sessions, &mut all[side]).await?;
            }
        }
        let rates = all.each_ref().map(|one| one.commits.len() as f64 / one.spent.as_secs_f64());
        let of = |samples: fn(&mut Measured) -> &mut Vec<Duration>, percent: usize| {
            all.iter_mut().map(|one| percentile(samples(one), percent)).collect::<Vec<_>>()
        };
        println!("{}", line(sessions, rates, of));
    }
    Ok(())
}

fn line(
    sessions: usize,
    rates: [f64; 2],
    mut of: impl FnMut(fn(&mut Measured) -> &mut Vec<Duration>, usize) -> Vec<f64>,
) -> String {
    let (p50, p99) = (of(|one| &mut one.commits, 50), of(|one| &mut one.commits, 99));
    let (created, resumed) = (of(|one| &mut one.created, 50), of(|one| &mut one.resumed, 50));
    format!(
        "{{\"sessions\":{sessions},\"rate\":{rates:?},\"p50\":{p50:?},\"p99\":{p99:?},\
         \"create\":{created:?},\"resume\":{resumed:?}}}"
    )
}

/// Microseconds that so many percent of the samples do not exceed.
fn percentile(samples: &mut [Duration], percent: usize) -> f64 {
    samples.sort();
    let rank = (samples.len() * percent).div_ceil(100).max(1);
    samples.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

async fn measure(
    dir: &Path,
    durability: Durability,
    sessions: usize,
    all: &mut Measured,
) -> Result<(), Failure> {
    let options = Options { durability, ..Options::default() };
    let log = EventLog::open(dir, options)?;
    let mut appenders = Vec::new();
    for number in 0..sessions {
        let (id, owner) = (number.to_string(), "measure".to_owned());
        let start = Instant::now();
        appenders.push(log.create(NewSession { id, owner, ..NewSession::default() }).await?);
        all.created.push(start.elapsed());
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for appender in appenders {
        tasks.spawn(append_until(appender, start + TURN));
    }
    while let Some(task) = tasks.join_next().await {
        all.commits.extend(task??);
    }
    all.spent += start.elapsed();
    for number in 0..sessions {
        let start = Instant::now();
        let resumed = log.reopen(&number.to_string(), "measure").await?;
        all.resumed.push(start.elapsed());
        drop(resumed);
    }
    log.close().await;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// Appends one event after the other; how long each took. Then the session is released.
async fn append_until(mut appender: Appender, end: Instant) -> Result<Vec<Duration>, Failure> {
    let mut took = Vec::new();
    while Instant::now() < end {
        let mut batch = Batch::new();
        batch.push(1, 0, &PAYLOAD);
        let start = Instant::now();
        appender.append_durable(batch).await?;
        took.push(start.elapsed());
    }
    let (ended, owner) = (Some(true), Some(None));
    let last = IndexUpdate { updated_ms: 1, ended, owner, ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(last)).await?;
    Ok(took)
}
