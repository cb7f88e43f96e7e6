//! The events of a state directory as they are stored, read by a third party, and judged.

use acpd_eventlog::{EventLog, ListQuery, Options};
use acpd_record::{Event, Position, Projection};
use serde_json::Value;
use std::path::Path;

/// One event.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) kind: u16,
    pub(crate) at_ms: i64,
    pub(crate) payload: Vec<u8>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// When it was created, and when it changed last.
    pub(crate) times_ms: [i64; 2],
    /// Whether it began with the history of another, which the index tells.
    is_fork: bool,
    pub(crate) events: Vec<Stored>,
}

/// All sessions of a log with all their events.
pub(crate) fn stored(state: &Path) -> Vec<Session> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let log = EventLog::open(state, Options::default()).expect("the log opens");
        let rows = log.list(ListQuery::default()).await.expect("it can be read");
        let mut sessions = Vec::new();
        for row in rows {
            let mut cursor = log.cursor(&row.id, 0).await.expect("the session is there");
            let mut events = Vec::new();
            // That of a session which looks live would wait for more.
            while cursor.position() < row.last_seq
                && let Some(block) = cursor.next().await.expect("its events can be read")
            {
                events.extend(block.events().map(|event| Stored {
                    seq: event.seq,
                    kind: event.kind,
                    at_ms: event.at_ms,
                    payload: event.payload.to_vec(),
                }));
            }
            let info: Value = serde_json::from_slice(&row.info).expect("it is JSON");
            let (times_ms, is_fork) = ([row.created_ms, row.updated_ms], info["forkedFrom"].is_string());
            sessions.push(Session { id: row.id, times_ms, is_fork, events });
        }
        log.close().await;
        sessions
    })
}

/// Judges the log of one session: the one place for whatever every recorded log has to satisfy. Each event is readable and
/// may stand where it stands, and is the same when it is written again.
pub(crate) fn judge(session: &Session) -> Result<(), String> {
    let mut projection = Projection::new(session.is_fork);
    for Stored { seq, kind, at_ms, payload } in &session.events {
        let wrong = |what: String| {
            let payload = String::from_utf8_lossy(payload);
            format!("{}: event {seq}, kind {kind}: {what}: {payload:.500}", session.id)
        };
        let event =
            Event::read(*kind, payload).map_err(|error| wrong(format!("{error}: {}", error.source)))?;
        projection.check(*seq, &event).map_err(|illegal| wrong(illegal.to_string()))?;
        projection.apply(Position { seq: *seq, at_ms: *at_ms }, &event);
        let mut written = Vec::new();
        event.write(&mut written).map_err(|error| wrong(error.to_string()))?;
        let values = [payload, &written].map(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        if values[0].is_none() || values[0] != values[1] {
            return Err(wrong(format!("written again it is {}", String::from_utf8_lossy(&written))));
        }
    }
    match projection.last_seq() {
        0 => Err(format!("{}: it has no events", session.id)),
        _ => Ok(()),
    }
}
