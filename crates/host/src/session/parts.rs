//! What a run works with, beside its core.

use super::effects::Note;
use crate::agent::{AgentHandle, RouteId};
use crate::journal::RunJournal;
use crate::services::Services;
use crate::unsearched::Unsearched;
use acpd_eventlog::Appender;
use acpd_record::{SessionId, TerminationInfo};
use acpd_supervisor::{TaskScope, Teller};
use std::sync::Arc;

/// What a run works with, beside its core.
pub(crate) struct RunParts {
    /// What an operator is told.
    pub(crate) journal: RunJournal,
    pub(crate) agent: AgentHandle,
    pub(crate) route: RouteId,
    /// None once the last words are being written.
    pub(crate) appender: Option<Appender>,
    pub(crate) ended: Teller<Arc<TerminationInfo>>,
    /// What acpd serves the agent.
    pub(crate) services: Services,
    /// Where services run.
    pub(crate) scope: TaskScope,
    /// What is to be indexed.
    pub(crate) unsearched: Unsearched,
}

impl RunParts {
    /// What the core has to say of `session`, to an operator and to the index.
    pub(super) fn note(&mut self, session: &SessionId, note: Note) {
        if let (Note::TurnEnded { .. }, Some(appender)) = (&note, &self.appender) {
            self.unsearched.note(session, appender.next_seq() - 1);
        }
        self.journal.note(note);
    }
}
