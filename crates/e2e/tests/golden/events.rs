//! The events of a state directory as they are stored, read by a third party.

use acpd_eventlog::{EventLog, ListQuery, Options, migration};
use std::path::Path;

/// One event.
#[derive(Debug)]
pub(crate) struct Stored {
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
    pub(crate) events: Vec<Stored>,
}

/// All sessions of a log with all their events. One that an earlier version made is migrated.
pub(crate) fn stored(state: &Path) -> Vec<Session> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        migration::migrate(state, &mut |_| {}).expect("it can be migrated");
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
                    kind: event.kind,
                    at_ms: event.at_ms,
                    payload: event.payload.to_vec(),
                }));
            }
            let times_ms = [row.created_ms, row.updated_ms];
            sessions.push(Session { id: row.id, times_ms, events });
        }
        log.close().await;
        sessions
    })
}
