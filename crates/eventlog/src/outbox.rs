//! The outbox: the committed events of which each subscriber is still to be told.
//!
//! What is noted is written behind the events (`notes.rs`): what a process had not noted when it died follows from them. It is taken out
//! when it was told. Invariants: an event is never lost for want of room for its note; what is noted for names
//! that do not subscribe any more goes. Not here: how they are told, and how many notes may wait.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::log::EventLog;
use crate::notes;
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

/// The name of a subscriber that is still to be told of an event, and the event's number.
pub(crate) type NamedNote = (String, u64);

/// Those that subscribe now.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    pub(crate) all: Vec<Subscriber>,
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
    pub(crate) fn named(&self, first: u64, batch: &Batch) -> Vec<NamedNote> {
        if self.kinds & batch.kinds == 0 {
            return Vec::new();
        }
        notes::notes_of(batch.events(first), &self.all).collect()
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
            let replaced = Arc::new(writer.subscribers().replaced(subscribers));
            *writer.subscribers() = Arc::clone(&replaced);
            // What was appended before is noted for those before.
            writer.write_rows();
            *writer.beside.files.subscribers.write() = replaced;
            writer.note_hosts();
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
            writer.with_notes(|hooks| notes::forget_others(hooks, &subscribers.all))
        };
        self.shared.ask(0, job).await?
    }

    /// The notes of a subscriber behind number `after`, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn outbox(&self, subscriber: &str, after: u64, limit: u32) -> Result<Vec<Note>, QueryError> {
        let subscriber = subscriber.to_owned();
        let job = move |writer: &mut Writer| {
            writer.write_rows();
            writer.with_notes(|hooks| notes::read(hooks, &subscriber, after, limit))
        };
        Ok(self.shared.ask(0, job).await??)
    }

    /// Takes notes out: they were told, or need not be. It may use the reserve: it makes room.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn take_out(&self, numbers: Vec<u64>) -> Result<(), WriteError> {
        let job = move |writer: &mut Writer| writer.with_notes(|hooks| notes::take_out(hooks, &numbers));
        self.shared.ask(0, job).await?
    }

    /// Told when something was noted. Take its future, and enable it, before looking into the outbox.
    pub fn outbox_grown(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.outbox_grown)
    }
}
