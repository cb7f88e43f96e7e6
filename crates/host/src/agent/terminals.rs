//! Terminals of an agent's sessions, which outlive this host as the agent does: its keeper knows of them.

use super::AgentHandle;
use super::marks::{self, NotedTerminal};
use acpd_record::SessionId;
use acpd_terminal::{Keeping, Note, TerminalId};
use acpd_wire::OwnedId;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

impl AgentHandle {
    /// How a terminal of a session outlives this host, if its agent does: the one that the agent asks for by `request`, when
    /// the last event of the session is `after`.
    pub(crate) fn keeping(&self, session: &SessionId, request: &OwnedId, after: u64) -> Option<Keeping> {
        let kept = self.known.kept.as_ref().filter(|kept| kept.is_asked())?;
        Some(kept.terminals(self.notes_of_terminal(session, request.as_raw(), after)))
    }

    /// How its keeper is told of a terminal.
    pub(crate) fn notes_of_terminal(&self, session: &SessionId, request: &str, after: u64) -> Note {
        let (session, request) = (session.to_string(), request.to_owned());
        // A terminal does not keep its agent.
        let connection = Arc::downgrade(&self.known.connection);
        Box::new(move |id, terminal| {
            let noted = terminal.map(|terminal| {
                let (session, request) = (session.as_str().into(), request.as_str().into());
                let noted = NotedTerminal { session, request, after, terminal: Cow::Borrowed(terminal) };
                serde_json::to_string(&noted).expect("it is JSON")
            });
            let connection = connection.upgrade();
            connection.is_some_and(|to| to.put(&marks::terminal(id), noted.as_deref()))
        })
    }

    /// A terminal of the host before is gone.
    pub(crate) fn forget_terminal(&self, terminal: &TerminalId) {
        self.known.connection.put(&marks::terminal(terminal), None);
    }

    /// Where the keepers of its terminals listen.
    pub(crate) fn keepers(&self) -> Option<&Path> {
        self.known.kept.as_ref().map(|kept| kept.directory())
    }
}
