//! Taking up a session of another node of the fleet: what it is, and its history from the archive.
//!
//! Written in pieces as an import is, and there with the last of them or not at all. What another node says is trusted less than the
//! log of this one, so its events are checked like those of an export (`import/intake.rs`). The session is an ended one then, under
//! its own id and of its own creator; unlike an import it goes on as any other: its agent is asked for its own session first. Not
//! here: whether this node may have it, and where its events come from.

use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::import::incoming::{Incoming, NotIn};
use crate::import::intake::Intake;
use crate::journal;
use crate::store::SessionStore;
use crate::termination::of_lost_node;
use acpd_eventlog::Block;
use acpd_record::{ExportHead, NativeSessionId, Partition, SessionId, WrongLine};
use std::sync::Arc;

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

impl From<NotIn> for TakeUpError {
    fn from(why: NotIn) -> Self {
        match why {
            NotIn::Known(id) => Self::Known { id },
            NotIn::Host(error) => Self::Host(error),
        }
    }
}

/// A session of another node on its way in. Nothing is left of it when it is dropped.
#[derive(Debug)]
pub struct TakeUp {
    whose: Whose,
    incoming: Incoming,
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
        let incoming = Incoming::begin(store, intake, "a session of another node cannot be taken up").await?;
        let whose = Whose { created_by, native_session_id, partition };
        Ok(Self { whose, incoming })
    }

    /// Takes the next events, from event 1 on and without a hole.
    ///
    /// # Errors
    /// When they are not those, are not to be taken over, or cannot be written.
    pub async fn push(&mut self, block: &Block) -> Result<(), TakeUpError> {
        for event in block.events() {
            let (seq, next) = (event.seq, self.incoming.intake.next());
            let taken = match seq == next {
                true => self.incoming.intake.take_event(&event),
                false => Err(WrongLine::new("seq", format!("event {next} is required here"))),
            };
            taken.map_err(|wrong| TakeUpError::Event { seq, wrong })?;
            self.incoming.write().await?;
        }
        Ok(())
    }

    /// The last event that was taken; 0 before the first.
    pub fn position(&self) -> u64 {
        self.incoming.intake.next() - 1
    }

    /// All events came: the session is here when this returns, as an ended one. A run that was live has ended with its node
    /// (cause `daemon_lost`).
    ///
    /// # Errors
    /// When they are no whole session, there is one of its id by now, or it cannot be written.
    pub async fn finish(self) -> Result<SessionId, TakeUpError> {
        let Self { whose, incoming } = self;
        let (intake, ending) = incoming.into_parts();
        let (now, seq) = (clock::now_ms(), intake.next());
        let taken = intake.finish_as(of_lost_node(now), now);
        let mut taken = taken.map_err(|wrong| TakeUpError::Event { seq, wrong })?;
        taken.meta.imported = whose.native_session_id.is_none();
        (taken.meta.native_session_id, taken.meta.partition) = (whose.native_session_id, whose.partition);
        let agent = taken.head.agent.clone();
        let (id, last) = ending.finish(taken, whose.created_by, now).await?;
        journal::taken_up(&id, &agent, last);
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
