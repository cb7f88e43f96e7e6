//! The outbox: the committed events of which each subscriber is still to be told.
//!
//! What is noted is written in the commit of the event itself, so that no death of the process comes between the two, and
//! is taken out when it was told. Invariants: an event is never lost for want of room for its note; what is noted for names
//! that do not subscribe any more goes. Not here: how they are told, and how many notes may wait.

use std::sync::Arc;

use rusqlite::{Connection, params};
use tokio::sync::Notify;

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::log::EventLog;
use crate::query::QueryError;
use crate::writer::Writer;

/// One that is told of events, over all sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Under which its notes are kept. The same name goes on with them.
    pub name: String,
    /// The kinds of events that are noted for it; below 64.
    pub kinds: Vec<u16>,
}

/// That a subscriber is still to be told of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its number; later notes have greater ones.
    pub number: u64,
    /// The session of the event.
    pub session: String,
    /// The event.
    pub seq: u64,
}

/// A note on its way into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    seq: u64,
    subscriber: usize,
}

/// Those that subscribe now.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    all: Vec<Subscriber>,
    /// The kinds of all of them, a bit each.
    kinds: u64,
    /// Told when something was noted.
    grown: Arc<Notify>,
}

/// The bit of a kind; those beyond have none.
pub(crate) fn bit(kind: u16) -> u64 {
    1_u64.checked_shl(kind.into()).unwrap_or_default()
}

impl Subscribers {
    pub(crate) fn new(grown: Arc<Notify>) -> Self {
        Self { grown, ..Self::default() }
    }

    fn replaced(&self, all: Vec<Subscriber>) -> Self {
        let kinds = all.iter().flat_map(|one| &one.kinds).fold(0, |kinds, kind| kinds | bit(*kind));
        Self { all, kinds, grown: Arc::clone(&self.grown) }
    }

    /// What is to be noted of a batch whose first event is `first`.
    pub(crate) fn noted(&self, first: u64, batch: &Batch) -> Vec<Noted> {
        if self.kinds & batch.kinds == 0 {
            return Vec::new();
        }
        let mut noted = Vec::new();
        for event in batch.events(first) {
            let wanting = self.all.iter().enumerate().filter(|(_, one)| one.kinds.contains(&event.kind));
            noted.extend(wanting.map(|(subscriber, _)| Noted { seq: event.seq, subscriber }));
        }
        noted
    }

    /// Writes notes, in the transaction of their events.
    pub(crate) fn write(
        &self,
        connection: &Connection,
        session: i64,
        noted: &[Noted],
    ) -> rusqlite::Result<()> {
        for Noted { seq, subscriber } in noted {
            let name = &self.all[*subscriber].name;
            connection
                .prepare_cached("INSERT INTO outbox (subscriber, session, seq) VALUES (?1, ?2, ?3)")?
                .execute(params![name, session, seq])?;
        }
        Ok(())
    }

    /// Notes were committed.
    pub(crate) fn tell(&self) {
        self.grown.notify_waiters();
    }
}

impl EventLog {
    /// From here on, events of these kinds are noted. A name that is new begins with what is committed from now on.
    ///
    /// # Errors
    /// When the log is closed.
    pub async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), WriteError> {
        let job = move |writer: &mut Writer| {
            let replaced = writer.subscribers().replaced(subscribers);
            *writer.subscribers() = Arc::new(replaced);
        };
        self.shared.ask(0, job).await
    }

    /// Forgets what was noted for names that do not subscribe now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn forget_others(&self) -> Result<(), WriteError> {
        let job = |writer: &mut Writer| {
            let subscribers = Arc::clone(writer.subscribers());
            let stays = |name: &str| subscribers.all.iter().any(|one| one.name == name);
            writer.transact(Some(0), |transaction| {
                let mut names = transaction.prepare("SELECT DISTINCT subscriber FROM outbox")?;
                let noted = names.query_map([], |row| row.get(0))?;
                for name in
                    noted.collect::<rusqlite::Result<Vec<String>>>()?.iter().filter(|name| !stays(name))
                {
                    transaction.execute("DELETE FROM outbox WHERE subscriber = ?1", [name])?;
                }
                Ok(Ok(()))
            })
        };
        self.shared.ask(0, job).await?
    }

    /// The notes of a subscriber behind number `after`, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn outbox(&self, subscriber: &str, after: u64, limit: u32) -> Result<Vec<Note>, QueryError> {
        let subscriber = subscriber.to_owned();
        Ok(self.shared.readers.read(move |connection| read(connection, &subscriber, after, limit)).await?)
    }

    /// Takes notes out: they were told, or need not be. It may use the reserve: it makes room.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn take_out(&self, numbers: Vec<u64>) -> Result<(), WriteError> {
        let job = move |writer: &mut Writer| {
            writer.transact(Some(0), |transaction| {
                let mut delete = transaction.prepare_cached("DELETE FROM outbox WHERE number = ?1")?;
                numbers.iter().try_for_each(|number| delete.execute([number]).map(drop)).map(Ok)
            })
        };
        self.shared.ask(0, job).await?
    }

    /// Told when something was noted. Take its future, and enable it, before looking into the outbox.
    pub fn outbox_grown(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.outbox_grown)
    }
}

fn read(connection: &Connection, subscriber: &str, after: u64, limit: u32) -> rusqlite::Result<Vec<Note>> {
    let mut select = connection.prepare_cached(
        "SELECT number, session.id, seq FROM outbox JOIN session ON session.row = outbox.session \
         WHERE subscriber = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let note =
        |row: &rusqlite::Row<'_>| Ok(Note { number: row.get(0)?, session: row.get(1)?, seq: row.get(2)? });
    select.query_map(params![subscriber, after, limit], note)?.collect()
}

/// With its session: what is not there is not told.
pub(crate) fn delete(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM outbox WHERE session = ?1")?.execute([session]).map(drop)
}
