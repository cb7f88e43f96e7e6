//! The streams of one client over HTTP: the connection's, and one per session.
//!
//! What belongs to a session waits for the reader of its stream, for ever if need be. A client that asks for something of
//! a session without ever having opened its stream gets all of it on the connection's, until it opens one. Invariants:
//! the lines of a viewer reach the client's readers in their order, also where they change streams; what waits and what
//! is kept to be given again is bounded. One lock, never held across a wait.

mod reader;

use super::closing::Closing;
use super::event_id::EventId;
use super::keeping::Keeping;
use super::stream::{OpenRefused, Opened, Stream};
use acpd_record::SessionId;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reader::Reader;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Bounds on one connection's streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamLimits {
    /// Streams that may be open, or kept, at once.
    pub(crate) streams: usize,
    /// Of these, streams of sessions that the connection does not know yet.
    pub(crate) unconfirmed: usize,
    /// Bytes that a stream keeps to be given again.
    pub(crate) kept_per_stream: usize,
    /// The same for all streams together.
    pub(crate) kept: usize,
    /// How long they are kept.
    pub(crate) kept_for: Duration,
    /// How long a reader may take nothing while something waits for it.
    pub(crate) stall: Duration,
}

/// What was found when streams were looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Since when it has no reader and the client says nothing, if so.
    pub(crate) idle_since: Option<Instant>,
    /// Readers that were closed because they took nothing.
    pub(crate) stalled: u64,
}

/// What became of lines.
#[derive(Debug)]
pub(super) enum Offered {
    Taken,
    /// There was no room; try again after this.
    Wait(OwnedNotified),
    Closed,
}

/// The streams of one connection.
#[derive(Debug)]
pub(crate) struct Streams {
    limits: StreamLimits,
    /// What the streams of all connections keep together.
    keeping: Arc<Keeping>,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    connection: Stream,
    sessions: HashMap<SessionId, Session>,
    /// The answer to `initialize` goes to the request that waits for it here.
    first: Option<oneshot::Sender<Bytes>>,
    /// Set once: nothing is taken any more.
    closed: Option<Closing>,
    /// Bytes that are kept to be given again.
    kept: usize,
    /// Since when no stream has a reader and the client says nothing.
    idle_since: Instant,
}

/// A session's stream.
#[derive(Debug)]
struct Session {
    stream: Stream,
    viewers: usize,
    /// The connection has had a viewer of it.
    confirmed: bool,
    /// The client asks for what is there without reading the stream.
    unread: bool,
    /// How much of the connection's stream must be taken before this one goes on.
    behind: u64,
    /// The session is gone, and nothing more is written of it.
    removed: bool,
}

impl Session {
    fn new() -> Self {
        Self {
            stream: Stream::new(tag()),
            viewers: 0,
            confirmed: false,
            unread: false,
            behind: 0,
            removed: false,
        }
    }

    /// Its lines go to the connection's stream.
    fn goes_elsewhere(&self, connection: &Stream) -> bool {
        self.unread && connection.had_reader()
    }
}

impl Streams {
    /// Streams without a reader, and the first answer.
    pub(crate) fn new(limits: StreamLimits, keeping: Arc<Keeping>) -> (Arc<Self>, oneshot::Receiver<Bytes>) {
        let (first, answer) = oneshot::channel();
        let table = Table {
            connection: Stream::new(tag()),
            sessions: HashMap::new(),
            first: Some(first),
            closed: None,
            kept: 0,
            idle_since: Instant::now(),
        };
        (Arc::new(Self { limits, keeping, table: Mutex::new(table) }), answer)
    }

    /// Queues lines of the connection.
    pub(super) fn offer(&self, lines: &Bytes) -> Offered {
        let mut table = self.table();
        if table.closed.is_some() {
            return Offered::Closed;
        }
        match table.first.take() {
            Some(first) => match first.send(lines.clone()) {
                Ok(()) => Offered::Taken,
                Err(_gone) => Offered::Closed,
            },
            None => push(&mut table.connection, lines),
        }
    }

    /// Queues an answer about a session.
    pub(super) fn offer_about(&self, session: &SessionId, lines: &Bytes) -> Offered {
        let mut table = self.table();
        if table.closed.is_some() {
            return Offered::Closed;
        }
        let Table { connection, sessions, .. } = &mut *table;
        match sessions.get_mut(session) {
            Some(session) if session.stream.has_reader() => push(&mut session.stream, lines),
            _ => push(connection, lines),
        }
    }

    /// Queues lines of a session's viewer.
    pub(super) fn offer_viewed(&self, session: &SessionId, lines: &Bytes) -> Offered {
        let mut table = self.table();
        if table.closed.is_some() {
            return Offered::Closed;
        }
        let Table { connection, sessions, .. } = &mut *table;
        let Some(session) = sessions.get_mut(session) else { return push(connection, lines) };
        if session.goes_elsewhere(connection) {
            let offered = push(connection, lines);
            session.behind = connection.queued;
            return offered;
        }
        if session.behind > connection.taken {
            return Offered::Wait(Arc::clone(&connection.room).notified_owned());
        }
        push(&mut session.stream, lines)
    }

    /// What a viewer waits for before it reads on; None when a reader is there, or none will ever be.
    pub(super) fn unread(&self, session: &SessionId) -> Option<OwnedNotified> {
        let table = self.table();
        let session = table.sessions.get(session).filter(|_| table.closed.is_none())?;
        let connection = &table.connection;
        let stream = if session.goes_elsewhere(connection) { connection } else { &session.stream };
        (!stream.has_reader()).then(|| Arc::clone(&stream.room).notified_owned())
    }

    /// A viewer begins, or a client attaches again.
    pub(super) fn view(&self, session: &SessionId, created: bool) {
        let mut table = self.table();
        let session = table.sessions.entry(session.clone()).or_insert_with(Session::new);
        session.viewers += 1;
        // If one of that id was removed, this is another.
        (session.confirmed, session.removed) = (true, false);
        if !created && !session.stream.has_reader() {
            session.unread = true;
            session.stream.room.notify_waiters();
        }
    }

    /// A viewer has ended.
    pub(super) fn unview(&self, session: &SessionId) {
        if let Some(session) = self.table().sessions.get_mut(session) {
            session.viewers -= 1;
            // Its reader may wait for that.
            session.stream.ready.notify_waiters();
        }
    }

    /// A session was removed, and its viewer has written all that there was: the reader is told behind it.
    pub(super) fn removed(&self, session: &SessionId) {
        if let Some(session) = self.table().sessions.get_mut(session) {
            session.removed = true;
            session.stream.ready.notify_waiters();
        }
    }

    /// Whether the connection has a stream of a session, or a viewer.
    pub(crate) fn knows(&self, session: &SessionId) -> bool {
        self.table().sessions.contains_key(session)
    }

    /// The client says something, about a session if there is one. Without having opened its stream it gets what is there
    /// on the connection's.
    pub(crate) fn heard(&self, session: Option<&SessionId>) {
        let mut table = self.table();
        let now = Instant::now();
        table.idle_since = now;
        let Table { connection, sessions, .. } = &mut *table;
        let Some(session) = session.and_then(|session| sessions.get_mut(session)) else { return };
        if session.stream.had_reader() || session.unread {
            return;
        }
        session.unread = true;
        if session.goes_elsewhere(connection) {
            session.stream.move_to(connection, now);
            session.behind = connection.queued;
        }
        session.stream.room.notify_waiters();
    }

    /// A reader of the connection's stream or a session's, in place of the one before. It begins behind the event `seen`,
    /// or with what no reader was given.
    pub(crate) fn open(
        self: &Arc<Self>,
        session: Option<&SessionId>,
        seen: Option<EventId>,
    ) -> Result<Reader, OpenRefused> {
        let now = Instant::now();
        let mut table = self.table();
        if table.closed.is_some() {
            return Err(OpenRefused::Gone);
        }
        let opened = match session {
            None => {
                let opened = table.connection.open(seen, now)?;
                // What was waiting for this stream's first reader.
                table.move_unread(now);
                opened
            }
            Some(id) => {
                self.has_room_for(&table, id, seen)?;
                let session = table.sessions.entry(id.clone()).or_insert_with(Session::new);
                let opened = session.stream.open(seen, now)?;
                session.unread = false;
                opened
            }
        };
        Ok(Reader::new(Arc::clone(self), session.cloned(), opened))
    }

    /// A reader of a session that is there, though the connection does not know it yet.
    pub(crate) fn open_known(self: &Arc<Self>, session: &SessionId) -> Result<Reader, OpenRefused> {
        let mut table = self.table();
        if table.sessions.len() + 1 >= self.limits.streams {
            return Err(OpenRefused::Full);
        }
        table.sessions.entry(session.clone()).or_insert_with(Session::new).confirmed = true;
        drop(table);
        self.open(Some(session), None)
    }

    /// Whether a session's stream may be opened.
    fn has_room_for(&self, table: &Table, id: &SessionId, seen: Option<EventId>) -> Result<(), OpenRefused> {
        match table.sessions.get(id) {
            Some(session) if session.confirmed || session.stream.has_reader() => return Ok(()),
            Some(_) => {}
            // No reader was given anything there.
            None if seen.is_some() => return Err(OpenRefused::Foreign),
            None if table.sessions.len() + 1 >= self.limits.streams => return Err(OpenRefused::Full),
            None => {}
        }
        let unconfirmed = |session: &&Session| !session.confirmed && session.stream.has_reader();
        match table.sessions.values().filter(unconfirmed).count() < self.limits.unconfirmed {
            true => Ok(()),
            false => Err(OpenRefused::Unconfirmed),
        }
    }

    /// Ends all streams. What waits is still given to the readers, who are told why it ends.
    pub(crate) fn close(&self, closing: Closing) {
        let mut table = self.table();
        table.closed.get_or_insert(closing);
        table.first = None;
        for stream in table.streams_mut() {
            // No reader comes back.
            stream.recent.shrink_to(0);
            stream.ready.notify_waiters();
            stream.room.notify_waiters();
        }
        self.keep(&mut table, 0);
    }

    /// Forgets what was given to readers longer ago than `age`.
    pub(super) fn forget_older(&self, age: Duration, now: Instant) {
        self.forget(&mut self.table(), age, now);
    }

    fn forget(&self, table: &mut Table, age: Duration, now: Instant) {
        let mut kept = 0;
        for stream in table.streams_mut() {
            stream.recent.forget_older(age, now);
            kept += stream.recent.bytes();
        }
        self.keep(table, kept);
    }

    fn keep(&self, table: &mut Table, bytes: usize) {
        self.keeping.change(table.kept, bytes);
        table.kept = bytes;
    }

    /// Closes readers that have stalled, and forgets what is too old. Since `resumed` acpd itself runs: before that no
    /// reader could take anything.
    pub(crate) fn sweep(&self, now: Instant, resumed: Instant) -> Swept {
        let limits = self.limits;
        let mut table = self.table();
        let (mut is_read, mut stalled) = (false, 0);
        for stream in table.streams_mut() {
            if stream.has_stalled(limits.stall, now, resumed) {
                stream.close(Closing::Stalled, now);
                stalled += 1;
            }
            is_read |= stream.has_reader();
        }
        self.forget(&mut table, limits.kept_for, now);
        table.sessions.retain(|_, session| session.viewers > 0 || !session.stream.is_blank());
        if is_read {
            table.idle_since = now;
        }
        Swept { idle_since: (!is_read).then_some(table.idle_since), stalled }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let kept = self.table().kept;
        self.keeping.change(kept, 0);
    }
}

impl Table {
    fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        let sessions = self.sessions.values_mut().map(|session| &mut session.stream);
        std::iter::once(&mut self.connection).chain(sessions)
    }

    fn stream_mut(&mut self, session: Option<&SessionId>) -> Option<&mut Stream> {
        match session {
            None => Some(&mut self.connection),
            Some(session) => self.sessions.get_mut(session).map(|session| &mut session.stream),
        }
    }

    /// Hands what was asked for without a stream to the connection's.
    fn move_unread(&mut self, now: Instant) {
        let Self { connection, sessions, .. } = self;
        for session in sessions.values_mut().filter(|session| session.unread) {
            session.stream.move_to(connection, now);
            session.behind = connection.queued;
            session.stream.room.notify_waiters();
        }
    }
}

fn push(stream: &mut Stream, lines: &Bytes) -> Offered {
    match stream.push(lines, Instant::now()) {
        true => Offered::Taken,
        false => Offered::Wait(Arc::clone(&stream.room).notified_owned()),
    }
}

/// Tells the cursors of one stream from those of another.
fn tag() -> u32 {
    getrandom::u32().expect("the system has random bytes")
}

#[cfg(test)]
mod tests;
