//! Importing a session: from an export, which is not trusted (contract 7.3).
//!
//! The session is written in pieces while its lines come, and is there with the last of them or not at all: what breaks off, in
//! this process or with it, is discarded. It is an ended one, of the client that imports it. The agent's own id of it is not
//! known, so it goes on with a transcript only. Not here: what may be taken over
//! (`import/intake.rs`), and how it is written (`import/incoming.rs`).

pub(crate) mod incoming;
pub(crate) mod intake;

use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::host_file::HostFile;
use crate::journal;
use crate::setup::Creator;
use crate::store::SessionStore;
use acpd_eventlog::EventLog;
use acpd_record::{Partition, SessionId, WrongLine};
use acpd_wire::{LineBuffer, LineTooLong};
use incoming::{Incoming, NotIn};
use intake::Intake;
use std::sync::Arc;

/// How much longer a line is than the message in it, in bytes.
const AROUND_A_MESSAGE: usize = 64 * 1024;

/// Why an export was not imported. Nothing of it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is not one that may be taken over.
    #[error("line {line}: {wrong}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        wrong: WrongLine,
    },
    /// There is a session of that id.
    #[error("line 1: sessionId: {id} is the id of a session that is here already; delete that first")]
    Known {
        /// The id.
        id: SessionId,
    },
    /// It could not be written.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<NotIn> for ImportError {
    fn from(why: NotIn) -> Self {
        match why {
            NotIn::Known(id) => Self::Known { id },
            NotIn::Host(error) => Self::Host(error),
        }
    }
}

/// A session on its way in. Nothing is left of it when it is dropped.
#[derive(Debug)]
pub struct SessionImport {
    store: Arc<SessionStore>,
    creator: Creator,
    lines: LineBuffer,
    limit: usize,
    /// What becomes of it when its node is cut off.
    partition: Partition,
    /// Lines that were taken.
    taken: u64,
    begun: Option<Incoming>,
}

impl Host {
    /// Begins an import. `message_bytes` is the longest message of an agent.
    pub fn import(&self, creator: Creator, message_bytes: usize) -> SessionImport {
        let partition = self.shared.fleet.default_policy();
        let store = Arc::clone(&self.shared.store);
        SessionImport { partition, ..SessionImport::new(store, creator, message_bytes) }
    }
}

impl SessionImport {
    /// Begins an import into a log, for a process that hosts nothing else.
    pub fn into_log(log: EventLog, owner: HostFile, creator: Creator, message_bytes: usize) -> Self {
        Self::new(Arc::new(SessionStore::new(log, owner)), creator, message_bytes)
    }

    pub(crate) fn new(store: Arc<SessionStore>, creator: Creator, message_bytes: usize) -> Self {
        let limit = message_bytes.saturating_add(AROUND_A_MESSAGE);
        let (lines, partition) = (LineBuffer::new(limit), Partition::Local);
        Self { store, creator, lines, limit, partition, taken: 0, begun: None }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When they are not to be taken over, or cannot be written.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        // It would not come back: the lines of an export have none.
        let whole = memchr::memchr(b'\r', bytes).unwrap_or(bytes.len());
        self.lines.push(&bytes[..whole]);
        while let Some(line) = self.lines.next_line().map_err(|error| self.too_long(error))? {
            self.take(&line).await?;
        }
        match whole == bytes.len() {
            true => Ok(()),
            false => {
                Err(self.wrong(WrongLine::new("line", "a carriage return is not taken; lines end with \\n")))
            }
        }
    }

    /// All bytes came: the session is there when this returns.
    ///
    /// # Errors
    /// When they are no whole export, or cannot be written.
    pub async fn finish(mut self) -> Result<SessionId, ImportError> {
        let rest = self.lines.finish().map_err(|error| self.too_long(error))?;
        if rest.is_some() {
            return Err(self.wrong(WrongLine::new("line", "it has no end: the export was cut off")));
        }
        let Some(incoming) = self.begun.take() else {
            return Err(self
                .wrong(WrongLine::new("line", "the first line of an export is required, and nothing came")));
        };
        let (now, (intake, ending)) = (clock::now_ms(), incoming.into_parts());
        let mut taken = intake.finish(now).map_err(|wrong| self.wrong(wrong))?;
        taken.meta.client = Some((*self.creator.client).to_owned());
        taken.meta.partition = self.partition;
        let created_by = self.creator.token.as_deref().map(str::to_owned);
        let (id, last) = ending.finish(taken, created_by, now).await?;
        journal::imported(&id, last, &self.creator);
        Ok(id)
    }

    async fn take(&mut self, line: &[u8]) -> Result<(), ImportError> {
        match &mut self.begun {
            None => self.begin(line).await?,
            Some(begun) => {
                let taken = begun.intake.take(line);
                taken.map_err(|wrong| ImportError::Line { line: self.taken + 1, wrong })?;
                begun.write().await?;
            }
        }
        self.taken += 1;
        Ok(())
    }

    async fn begin(&mut self, line: &[u8]) -> Result<(), ImportError> {
        let intake = Intake::new(line).map_err(|wrong| self.wrong(wrong))?;
        self.begun = Some(Incoming::begin(&self.store, intake, "a session cannot be imported").await?);
        Ok(())
    }

    fn too_long(&self, LineTooLong { .. }: LineTooLong) -> ImportError {
        self.wrong(WrongLine::new(
            "line",
            format!("it is longer than {} bytes; line_bytes in [limits] bounds it", self.limit),
        ))
    }

    /// Something is wrong with the line that is next.
    fn wrong(&self, wrong: WrongLine) -> ImportError {
        ImportError::Line { line: self.taken + 1, wrong }
    }
}

#[cfg(test)]
mod tests;
