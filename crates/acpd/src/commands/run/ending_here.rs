//! The end of `acpd run` with a host inside: the host ends the session.

use super::conversation::Conversation;
use super::home::Home;
use crate::client::Incoming;
use crate::exit::Failure;
use crate::signals::StopSignals;
use serde_json::{Value, json};

impl Conversation {
    /// The host ends the session before the connection closes.
    pub(super) async fn end_here(&mut self, signals: &mut StopSignals) -> Result<(), Failure> {
        // It ends as it would in a daemon: closed by its client.
        if let Some(session) = self.session.clone()
            && self.outcome.is_some()
            && !self.ended
            && self.client.is_connected()
        {
            let _closed = self.close_session(&session, signals).await;
        }
        self.client.hang_up();
        loop {
            tokio::select! {
                incoming = self.client.next() => match incoming {
                    Some(Incoming::Notification { method, params }) => self.notified(&method, &params)?,
                    Some(_) => {}
                    None => break,
                },
                _ = signals.next() => if let Home::Here(local) = &self.home {
                    local.host.hasten();
                },
            }
        }
        let Some(session) = &self.session else { return Ok(()) };
        // What cannot be looked at any more is not told.
        let ended =
            self.home.look(session).await.and_then(|session| session.termination_info.read::<Value>());
        self.report_leftovers(ended.as_ref())
    }

    /// Processes that were left behind, when nothing else was said of the end.
    pub(super) fn report_leftovers(&mut self, ended: Option<&Value>) -> Result<(), Failure> {
        match ended.is_some_and(|info| info["leaked"] == json!(true)) && !self.ended {
            true => self.announce("processes that the agent left behind were killed"),
            false => Ok(()),
        }
    }
}
