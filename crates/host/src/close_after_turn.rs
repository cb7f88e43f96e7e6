//! Sessions that are closed when a turn has ended, with or without clients (contract 7.3, `closeAfterTurn`).
//!
//! It is part of a run: one that takes the session up anew says it again, or not.

use crate::host::Host;
use crate::session::{EndRequest, SessionHandle};
use crate::spans;
use acpd_record::EventKind;
use std::sync::Arc;

impl Host {
    /// Closes a session when the next turn of its run has ended, with or without clients.
    pub(crate) fn close_after_turn(&self, live: &SessionHandle, client: Arc<str>) {
        let (host, live) = (self.clone(), live.clone());
        let scope = self.shared.scope.within(spans::of_session(live.id()));
        scope.spawn_lasting("close after a turn", async move {
            if host.a_turn_ends(&live).await {
                live.end(EndRequest::Close, client).await;
            }
        });
    }

    /// Waits for the end of the next turn of a run; false if the run ends first.
    async fn a_turn_ends(&self, live: &SessionHandle) -> bool {
        let Ok(mut cursor) = self.cursor(live.id(), live.began_after()).await else { return false };
        while let Ok(Some(block)) = cursor.next().await {
            for event in block.events() {
                match EventKind::from_number(event.kind) {
                    Some(EventKind::TurnEnded) => return true,
                    Some(EventKind::Ended) => return false,
                    _ => {}
                }
            }
        }
        false
    }
}
