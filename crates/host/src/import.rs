//! Importing a session: from an export, which is not trusted (contract 7.3).
//!
//! The session is written in pieces while its lines come, and is there with the last of them or not at all: what breaks off, in
//! this process or with it, is discarded. It is an ended one, of the client that imports it. The agent's own id of it is not
//! known, so it goes on with a transcript only. Not here: what may be taken over (`import/intake.rs`).

pub(crate) mod intake;

use crate::chain::chain;
use crate::checkpoints;
use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::host_file::HostFile;
use crate::journal;
use crate::setup::Creator;
use crate::store::SessionStore;
use acpd_eventlog::{Batch, EventLog, IndexUpdate, NewSession, Partial, WriteError};
use acpd_record::{Partition, SessionId, WrongLine};
use acpd_wire::{LineBuffer, LineTooLong};
use intake::{Intake, Taken};
use std::sync::Arc;

/// Bytes of events that are written together.
const PIECE: usize = 1024 * 1024;
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

impl From<WriteError> for ImportError {
    fn from(error: WriteError) -> Self {
        Self::Host(error.into())
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
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    intake: Intake,
    partial: Partial,
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
        let Some(Begun { intake, partial }) = self.begun.take() else {
            return Err(self
                .wrong(WrongLine::new("line", "the first line of an export is required, and nothing came")));
        };
        let now = clock::now_ms();
        let Taken { head, projection, mut meta, mut batch } =
            intake.finish(now).map_err(|wrong| self.wrong(wrong))?;
        meta.client = Some((*self.creator.client).to_owned());
        meta.partition = self.partition;
        batch.update_index(IndexUpdate {
            updated_ms: now,
            ended: Some(true),
            owner: Some(None),
            ..IndexUpdate::default()
        });
        let id = head.session_id;
        let new = NewSession {
            id: id.to_string(),
            agent: head.agent,
            cwd: head.cwd,
            owner: self.store.host_file.id().to_owned(),
            created_by: self.creator.token.as_deref().map(str::to_owned),
            created_ms: head.created_ms,
            info: meta.write(),
            events: batch,
        };
        match partial.finish(new).await {
            Err(WriteError::Exists { .. }) => return Err(ImportError::Known { id }),
            written => written.inspect_err(|_| self.store.doubt())?,
        }
        checkpoints::keep(&self.store.log, &id, &projection);
        self.store.unsearched.note(&id, projection.last_seq());
        journal::imported(&id, projection.last_seq(), &self.creator);
        Ok(id)
    }

    async fn take(&mut self, line: &[u8]) -> Result<(), ImportError> {
        match &mut self.begun {
            None => self.begin(line).await?,
            Some(begun) => {
                let taken = begun.intake.take(line);
                taken.map_err(|wrong| ImportError::Line { line: self.taken + 1, wrong })?;
                if begun.intake.batch.bytes() >= PIECE {
                    let batch = std::mem::replace(&mut begun.intake.batch, Batch::new());
                    begun.partial.append(batch).await?;
                }
            }
        }
        self.taken += 1;
        Ok(())
    }

    async fn begin(&mut self, line: &[u8]) -> Result<(), ImportError> {
        let intake = Intake::new(line).map_err(|wrong| self.wrong(wrong))?;
        let id = &intake.head.session_id;
        match self.store.row(id).await {
            Ok(_) => return Err(ImportError::Known { id: id.clone() }),
            Err(HostError::UnknownSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let owner = self.store.host_file.id();
        let partial = self.store.log.begin_partial(owner).await.inspect_err(|error| {
            tracing::warn!(error = chain(error), "a session cannot be imported");
            self.store.doubt();
        })?;
        self.begun = Some(Begun { intake, partial });
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
