//! How far the agent of a session was heard, and going on where another host was.

use super::Performer;
use crate::services::{Service, Services};
use crate::session::core::SessionCore;
use crate::session::effects::{Act, Ordered};
use crate::session::owed::Inherited;
use acpd_terminal::TerminalEvent;
use acpd_wire::OwnedId;
use bytes::Bytes;
use tokio::sync::mpsc;

impl Performer {
    /// Goes on in place of a host that is gone.
    pub(crate) fn go_on(&mut self, inherited: Inherited) {
        self.told = self.core.position();
        let effects = self.core.go_on(inherited, Self::now());
        self.perform(effects);
    }

    /// Where terminals that outlived that host are taken over, and where they speak to.
    pub(crate) fn inherits_terminals(&mut self) -> (Services, mpsc::Sender<TerminalEvent>) {
        (self.parts.services.clone(), self.working.feed())
    }

    /// Begins to serve a request.
    pub(super) fn serve(&mut self, what: (u64, Service), id: &OwnedId, line: &Bytes) {
        let (parts, live) = (&self.parts, self.task.live.clone());
        let is_create = what.1 == Service::Create;
        let keeping = is_create.then(|| parts.agent.keeping(self.core.id(), id, self.core.log().last_seq()));
        self.working.serve(what, SessionCore::params_of(line), (parts, keeping.flatten()), live);
    }

    /// Before the log says that a request was heard, its keeper knows that it is served: a host that takes over would not read
    /// it again, and not serve it.
    pub(super) fn tell_what_is_served(&self, acts: &[Ordered]) {
        for ordered in acts {
            if let Act::Serve { id, line, position, .. } = &ordered.act {
                self.parts.agent.serve(self.parts.route, id, line, *position);
            }
        }
    }

    /// The agent's lines up to here need not be read again when what came of them is committed.
    pub(super) fn tell_how_far(&mut self) {
        let position = self.core.position();
        if self.core.is_kept() && position > self.told {
            self.told = position;
            self.parts.agent.handled(self.parts.route, position, self.core.log().last_seq());
        }
    }

    /// The agent's lines up to `position` were taken up, though the core did not see all of them.
    pub(in crate::session) fn heard(&mut self, position: u64) {
        self.core.heard(position);
        self.tell_how_far();
    }
}
