//! A session on its way into the log, a piece at a time: it is there with the last of them, or not at all.
//!
//! What an import and the taking up of another node's session have in common. Not here: where events come from, and what may be
//! taken over.

use super::intake::{Intake, Taken};
use crate::chain::chain;
use crate::checkpoints;
use crate::error::HostError;
use crate::store::SessionStore;
use acpd_eventlog::{Batch, IndexUpdate, NewSession, Partial, WriteError};
use acpd_record::SessionId;
use std::sync::Arc;

/// Bytes of events that are written together.
const PIECE: usize = 1024 * 1024;

/// A session of which events come. Nothing is left of it when it is dropped.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) intake: Intake,
    partial: Partial,
    store: Arc<SessionStore>,
}

/// Why it does not come in.
#[derive(Debug)]
pub(crate) enum NotIn {
    /// There is a session of that id.
    Known(SessionId),
    /// It could not be written.
    Host(HostError),
}

impl<E: Into<HostError>> From<E> for NotIn {
    fn from(error: E) -> Self {
        Self::Host(error.into())
    }
}

impl Incoming {
    /// Begins one, if there is none of its id; `refused` is what the log says where there is no room.
    pub(crate) async fn begin(
        store: &Arc<SessionStore>,
        intake: Intake,
        refused: &'static str,
    ) -> Result<Self, NotIn> {
        let id = &intake.head.session_id;
        match store.row(id).await {
            Ok(_) => return Err(NotIn::Known(id.clone())),
            Err(HostError::UnknownSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let partial = store.log.begin_partial(store.host_file.id()).await.inspect_err(|error| {
            tracing::warn!(error = chain(error), "{refused}");
            store.doubt();
        })?;
        Ok(Self { intake, partial, store: Arc::clone(store) })
    }

    /// Writes what was taken in, once it is a piece.
    pub(crate) async fn write(&mut self) -> Result<(), HostError> {
        if self.intake.batch.bytes() >= PIECE {
            let batch = std::mem::replace(&mut self.intake.batch, Batch::new());
            self.partial.append(batch).await?;
        }
        Ok(())
    }

    /// What was taken in so far, and the rest of it.
    pub(crate) fn into_parts(self) -> (Intake, Ending) {
        (self.intake, Ending { partial: self.partial, store: self.store })
    }
}

/// A session of which all events came.
#[derive(Debug)]
pub(crate) struct Ending {
    partial: Partial,
    store: Arc<SessionStore>,
}

impl Ending {
    /// The session is there when this returns, as an ended one. Gives its id and its last event.
    pub(crate) async fn finish(
        self,
        Taken { head, projection, meta, mut batch }: Taken,
        created_by: Option<String>,
        now: i64,
    ) -> Result<(SessionId, u64), NotIn> {
        let Self { partial, store } = self;
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
            created_by,
            created_ms: head.created_ms,
            info: meta.write(),
            events: batch,
        };
        match partial.finish(new).await {
            Err(WriteError::Exists { .. }) => return Err(NotIn::Known(id)),
            written => written.inspect_err(|_| store.doubt())?,
        }
        checkpoints::keep(&store.log, &id, &projection);
        store.unsearched.note(&id, projection.last_seq());
        Ok((id, projection.last_seq()))
    }
}
