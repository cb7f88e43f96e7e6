//! A reader of one stream: what it is given, until the stream or the connection is closed.

use super::{Closing, Opened, Streams, Table};
use acpd_eventlog::Presence;
use acpd_record::SessionId;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

/// The one reader of a stream; dropped when its client is gone.
#[derive(Debug)]
pub(crate) struct Reader {
    streams: Arc<Streams>,
    session: Option<SessionId>,
    number: u64,
    closing: Arc<OnceLock<Closing>>,
    /// What it is given again, first.
    again: VecDeque<Bytes>,
    /// Whether the session is there, until it is not.
    presence: Option<Arc<Presence>>,
    /// It was removed.
    is_removed: bool,
    over: bool,
}

enum Step {
    Events(Bytes),
    Wait(OwnedNotified),
    Close(Closing),
}

impl Reader {
    pub(super) fn new(streams: Arc<Streams>, session: Option<SessionId>, opened: Opened) -> Self {
        let Opened { number, closing, again } = opened;
        let (presence, is_removed) = (None, false);
        Self { streams, session, number, closing, again, presence, is_removed, over: false }
    }

    /// The same, which ends with its session.
    pub(crate) fn while_there(mut self, presence: Arc<Presence>) -> Self {
        self.presence = Some(presence);
        self
    }

    /// The next events, as they are written; a comment after each `keepalive` without one; None behind the last.
    pub(crate) async fn next(&mut self, keepalive: Duration) -> Option<Bytes> {
        if self.over {
            return None;
        }
        loop {
            let change = match self.step() {
                Step::Events(events) => return Some(events),
                Step::Wait(change) => change,
                Step::Close(closing) => {
                    self.over = true;
                    return Some(closing.to_event());
                }
            };
            tokio::select! {
                waited = tokio::time::timeout(keepalive, change) => if waited.is_err() {
                    return Some(Bytes::from_static(b":\n\n"));
                },
                () = Presence::over_if_any(self.presence.as_deref()) => (self.presence, self.is_removed) = (None, true),
            }
        }
    }

    /// What a reader is told whose session is gone, once nothing more is written of it.
    fn removed_from(&self, table: &Table) -> Option<Closing> {
        let session = table.sessions.get(self.session.as_ref()?)?;
        let is_known = session.removed || (self.is_removed && session.viewers == 0);
        is_known.then_some(Closing::Removed)
    }

    fn step(&mut self) -> Step {
        let now = Instant::now();
        let streams = Arc::clone(&self.streams);
        let mut table = streams.table();
        let (closed, before) = (table.closed, table.kept);
        let Some(stream) = table.stream_mut(self.session.as_ref()) else {
            return Step::Close(Closing::Internal);
        };
        let Some(reader) = stream.reader(self.number, now) else {
            return Step::Close(self.closing.get().copied().unwrap_or(Closing::Internal));
        };
        let again = self.again.pop_front();
        reader.is_behind = !self.again.is_empty();
        if let Some(events) = again {
            return Step::Events(events);
        }
        let kept = stream.recent.bytes();
        match stream.take(now) {
            Some(events) => {
                stream.recent.shrink_to(if closed.is_some() { 0 } else { streams.limits.kept_per_stream });
                let others = before.saturating_sub(kept);
                stream.recent.shrink_to(streams.limits.kept.saturating_sub(others));
                let kept = others + stream.recent.bytes();
                streams.keep(&mut table, kept);
                Step::Events(events)
            }
            None => {
                let ready = Arc::clone(&stream.ready);
                match closed.or_else(|| self.removed_from(&table)) {
                    Some(closing) => Step::Close(closing),
                    None => Step::Wait(ready.notified_owned()),
                }
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut table = self.streams.table();
        let unconfirmed = match table.stream_mut(self.session.as_ref()) {
            Some(stream) => {
                stream.left(self.number, now);
                stream.is_blank()
            }
            None => false,
        };
        table.idle_since = now;
        if let Some(session) = self.session.as_ref().filter(|_| unconfirmed)
            && table.sessions.get(session).is_some_and(|session| !session.confirmed)
        {
            table.sessions.remove(session);
        }
    }
}
