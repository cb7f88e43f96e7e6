//! Judges the logs that tests leave: each event is readable and may stand where it stands.
//!
//! Reads a log block by block, as any third party with the crates `eventlog` and `record` would. Invariant: what
//! every recorded log has to satisfy is said here and in no second place.

use crate::log_form::LogForm;
use crate::round_trip;
use acpd_eventlog::{Checkpoint, EventLog, ListQuery, Options, SessionRow, migration};
use acpd_record::{Event, Position, Projection, SessionId, SessionMeta};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How deep below a scratch directory state directories are looked for: `$HOME/.local/state/acpd` is one.
const DEPTH: usize = 3;
/// Raw messages of a session that are read as JSON. The rest of a flood is like them, and takes seconds.
const READ_BYTES: usize = 256 * 1024;

/// Judges every session of the log in a state directory. One of the old form is migrated.
///
/// # Errors
/// With session, number, kind and payload of the first event that is illegal, and the reason; or with what kept the log
/// from being read.
///
/// # Panics
/// When no thread can be had.
pub fn judge_log(state: &Path) -> Result<(), String> {
    let judge = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.map_err(|error| error.to_string())?.block_on(judge_sessions(state))
    };
    // The caller may be inside a runtime.
    let verdict = std::thread::scope(|scope| scope.spawn(judge).join().expect("judging does not panic"));
    verdict.map_err(|wrong| format!("{}: {wrong}", state.display()))
}

/// The state directories below a directory.
pub(crate) fn state_directories(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut level) = (Vec::new(), vec![dir.to_owned()]);
    for _ in 0..=DEPTH {
        found.extend(level.iter().filter(|dir| LogForm::of(dir).is_some()).cloned());
        let entries = level.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
        // What a database is copied to is no log yet.
        let entries = entries.filter(|entry| entry.file_name() != "migrating");
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        level = below.map(|entry| entry.path()).collect();
    }
    found
}

async fn judge_sessions(state: &Path) -> Result<(), String> {
    // What an earlier version made is judged as it is moved to files.
    migration::migrate(state, &mut |_| {}).map_err(|why| why.to_string())?;
    let log = EventLog::open(state, Options::default()).map_err(|error| error.to_string())?;
    let verdict = match judge_rows(&log).await {
        Ok(()) => round_trip::all(&log, state).await,
        illegal => illegal,
    };
    log.close().await;
    verdict
}

async fn judge_rows(log: &EventLog) -> Result<(), String> {
    for row in log.list(ListQuery::default()).await.map_err(|error| error.to_string())? {
        judge_session(log, &row).await.map_err(|wrong| format!("{}: {wrong}", row.id))?;
    }
    Ok(())
}

async fn judge_session(log: &EventLog, row: &SessionRow) -> Result<(), String> {
    let is_fork = SessionMeta::read(&row.info).forked_from.is_some();
    let (mut projection, mut budget) = (Projection::new(is_fork), READ_BYTES);
    let mut cursor = log.cursor(&row.id, 0).await.map_err(|error| error.to_string())?;
    let checkpoint = log.checkpoint(&row.id, u64::MAX >> 1).await.map_err(|error| error.to_string())?;
    // That of a session which looks live would wait for more.
    while cursor.position() < row.last_seq {
        let block = cursor.next().await.map_err(|error| error.to_string())?;
        let Some(block) = block else { break };
        for event in block.events() {
            let at = Position { seq: event.seq, at_ms: event.at_ms };
            judge_event(&mut projection, &mut budget, at, event.kind, event.payload).map_err(|wrong| {
                let payload = String::from_utf8_lossy(event.payload);
                format!("event {}, kind {}: {wrong}: {payload:.500}", event.seq, event.kind)
            })?;
            judge_checkpoint(&projection, row, checkpoint.as_ref())?;
        }
    }
    match projection.last_seq() {
        0 => Err("it has no events".to_owned()),
        last if checkpoint.is_some_and(|checkpoint| checkpoint.seq > last) => {
            Err(format!("its checkpoint stands for more than its {last} events"))
        }
        last if last != row.last_seq => Err(format!("its last event is {last}, not {}", row.last_seq)),
        _ => Ok(()),
    }
}

/// A checkpoint says what the fold says; one of another version is none.
fn judge_checkpoint(
    projection: &Projection,
    row: &SessionRow,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), String> {
    let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.seq == projection.last_seq()) else {
        return Ok(());
    };
    let found = SessionId::parse(&row.id).and_then(|id| Projection::of_checkpoint(&id, &checkpoint.bytes));
    match found {
        Some(found) if found != *projection => {
            Err(format!("its checkpoint at event {} is not what its log says: {found:?}", checkpoint.seq))
        }
        _ => Ok(()),
    }
}

fn judge_event(
    projection: &mut Projection,
    budget: &mut usize,
    at: Position,
    kind: u16,
    payload: &[u8],
) -> Result<(), String> {
    let event = Event::read(kind, payload).map_err(|error| format!("{error}: {}", error.source))?;
    projection.check(at.seq, &event).map_err(|illegal| illegal.to_string())?;
    projection.apply(at, &event);
    if let Event::Update(_) | Event::Notification(_) | Event::Echo(_) = &event {
        let Some(rest) = budget.checked_sub(payload.len()) else { return Ok(()) };
        *budget = rest;
        let unreadable = |error| format!("it is no JSON: {error}");
        return serde_json::from_slice::<IgnoredAny>(payload).map(drop).map_err(unreadable);
    }
    let mut written = Vec::new();
    event.write(&mut written).map_err(|error| error.to_string())?;
    let value = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    if written != payload && value(&written) != value(payload) {
        return Err(format!("written again it is {}", String::from_utf8_lossy(&written)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_eventlog::{Batch, NewSession};

    fn log_of(events: &[(u16, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join(".local/state/acpd");
        let mut batch = Batch::new();
        for (kind, payload) in events {
            batch.push(*kind, 0, payload.as_bytes());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let log = EventLog::open(&state, Options::default()).expect("it opens");
            let (id, agent, cwd) = ("s".to_owned(), "a".to_owned(), "/".to_owned());
            let new = NewSession { id, agent, cwd, events: batch, ..NewSession::default() };
            drop(log.create(new).await.expect("it is new"));
            log.close().await;
        });
        dir
    }

    const CREATED: (u16, &str) = (1, r#"{"agent":"a","cwd":"/"}"#);

    // issue 10, must hold: an illegal event fails the test that wrote it, by its number, its kind and the reason
    #[test]
    fn an_illegal_log_is_found_and_named() {
        for (second, expected) in [
            ((2, r#"{"pid":1,"agentInfo":null}"#), None),
            ((4, "{}"), Some("s: event 2, kind 4: it belongs to a run, and none is live: {}")),
            ((2, "7"), Some("s: event 2, kind 2: a run_started event is not readable: ")),
        ] {
            let dir = log_of(&[CREATED, second]);
            let [state] = &state_directories(dir.path())[..] else { panic!("there is one") };
            let verdict =
                judge_log(state).map_err(|wrong| wrong.replace(&format!("{}: ", state.display()), ""));
            match expected {
                None => assert_eq!(verdict, Ok(())),
                Some(expected) => {
                    assert!(verdict.clone().is_err_and(|wrong| wrong.starts_with(expected)), "{verdict:?}")
                }
            }
        }
    }
}
