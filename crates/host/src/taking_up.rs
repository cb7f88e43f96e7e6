//! Taking up a session of another node of the fleet: what it is, and its history from the archive.
//!
//! Written in pieces as an import is, and there with the last of them or not at all. What another node says is trusted less than the
//! log of this one, so its events are checked like those of an export (`import/intake.rs`). The session is an ended one then, under
//! its own id and of its own creator; unlike an import it goes on as any other: its agent is asked for its own session first. Not
//! here: whether this node may have it, and where its events come from.

use crate::chain::chain;
use crate::checkpoints;
use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::import::intake::{Intake, Taken};
use crate::journal;
use crate::store::SessionStore;
use crate::termination::of_lost_node;
use acpd_eventlog::{Batch, Block, IndexUpdate, NewSession, Partial, WriteError};
use acpd_record::{ExportHead, NativeSessionId, Partition, SessionId, WrongLine};
use std::sync::Arc;

/// Bytes of events that are written together.
const PIECE: usize = 1024 * 1024;

/// What is known of a session of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenUp {
    /// Its id.
    pub id: SessionId,
    /// The name of its agent.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// Its title.
    pub title: Option<String>,
    /// The session whose history it began with.
    pub forked_from: Option<SessionId>,
    /// The name of the token under which it was created.
    pub created_by: Option<String>,
    /// The agent's own id of it. Without, it goes on by a transcript only.
    pub native_session_id: Option<NativeSessionId>,
    /// What becomes of it when its node is cut off.
    pub partition: Partition,
}

/// Why a session of another node was not taken up. Nothing of it is here.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TakeUpError {
    /// What is said of it is wrong.
    #[error(transparent)]
    Said(WrongLine),
    /// An event is not the next one, or not one that may be taken over.
    #[error("event {seq}: {wrong}")]
    Event {
        /// Its number.
        seq: u64,
        /// What is wrong with it.
        wrong: WrongLine,
    },
    /// There is a session of that id here.
    #[error("session {id} is here already")]
    Known {
        /// The id.
        id: SessionId,
    },
    /// It could not be written.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<WriteError> for TakeUpError {
    fn from(error: WriteError) -> Self {
        Self::Host(error.into())
    }
}

/// A session of another node on its way in. Nothing is left of it when it is dropped.
#[derive(Debug)]
pub struct TakeUp {
    store: Arc<SessionStore>,
    whose: Whose,
    intake: Intake,
    partial: Partial,
}

/// What of a session is not in its log.
#[derive(Debug)]
struct Whose {
    created_by: Option<String>,
    native_session_id: Option<NativeSessionId>,
    partition: Partition,
}

impl Host {
    /// Begins to take up a session of another node; its events are to come.
    ///
    /// # Errors
    /// When there is one of its id here, what is said of it is wrong, or there is no room for it.
    pub async fn take_up(&self, session: TakenUp) -> Result<TakeUp, TakeUpError> {
        TakeUp::begin(&self.shared.store, session).await
    }
}

impl TakeUp {
    pub(crate) async fn begin(store: &Arc<SessionStore>, session: TakenUp) -> Result<Self, TakeUpError> {
        let TakenUp { id, agent, cwd, created_ms, title, forked_from, .. } = session;
        let TakenUp { created_by, native_session_id, partition, .. } = session;
        let head =
            ExportHead { session_id: id, agent, cwd, created_ms, title, forked_from, events: u64::MAX };
        let intake = Intake::of(head).map_err(TakeUpError::Said)?;
        let id = &intake.head.session_id;
        match store.row(id).await {
            Ok(_) => return Err(TakeUpError::Known { id: id.clone() }),
            Err(HostError::UnknownSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let partial = store.log.begin_partial(store.host_file.id()).await.inspect_err(|error| {
            tracing::warn!(error = chain(error), "a session of another node cannot be taken up");
            store.doubt();
        })?;
        let whose = Whose { created_by, native_session_id, partition };
        Ok(Self { store: Arc::clone(store), whose, intake, partial })
    }

    /// Takes the next events, from event 1 on and without a hole.
    ///
    /// # Errors
    /// When they are not those, are not to be taken over, or cannot be written.
    pub async fn push(&mut self, block: &Block) -> Result<(), TakeUpError> {
        for event in block.events() {
            let (seq, next) = (event.seq, self.intake.next());
            let taken = match seq == next {
                true => self.intake.take_event(&event),
                false => Err(WrongLine::new("seq", format!("event {next} is required here"))),
            };
            taken.map_err(|wrong| TakeUpError::Event { seq, wrong })?;
            if self.intake.batch.bytes() >= PIECE {
                let batch = std::mem::replace(&mut self.intake.batch, Batch::new());
                self.partial.append(batch).await?;
            }
        }
        Ok(())
    }

    /// The last event that was taken; 0 before the first.
    pub fn position(&self) -> u64 {
        self.intake.next() - 1
    }

    /// All events came: the session is here when this returns, as an ended one. A run that was live has ended with its node
    /// (cause `daemon_lost`).
    ///
    /// # Errors
    /// When they are no whole session, there is one of its id by now, or it cannot be written.
    pub async fn finish(self) -> Result<SessionId, TakeUpError> {
        let Self { store, whose, intake, partial } = self;
        let (now, seq) = (clock::now_ms(), intake.next());
        let taken = intake.finish_as(of_lost_node(now), now);
        let Taken { head, projection, mut meta, mut batch } =
            taken.map_err(|wrong| TakeUpError::Event { seq, wrong })?;
        meta.imported = whose.native_session_id.is_none();
        (meta.native_session_id, meta.partition) = (whose.native_session_id, whose.partition);
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
            owner: store.host_file.id().to_owned(),
            created_by: whose.created_by,
            created_ms: head.created_ms,
            info: meta.write(),
            events: batch,
        };
        let agent = new.agent.clone();
        match partial.finish(new).await {
            Err(WriteError::Exists { .. }) => return Err(TakeUpError::Known { id }),
            written => written.inspect_err(|_| store.doubt())?,
        }
        checkpoints::keep(&store.log, &id, &projection);
        store.unsearched.note(&id, projection.last_seq());
        journal::taken_up(&id, &agent, projection.last_seq());
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
