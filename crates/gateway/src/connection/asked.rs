//! An open request of a client, as far as it can be withdrawn.

use acpd_host::{Ask, SessionHandle};
use std::sync::{Arc, OnceLock};

/// Filled in once the request has reached its session.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked(Arc<OnceLock<(SessionHandle, Ask)>>);

impl Asked {
    pub(super) fn reached(&self, session: SessionHandle, ask: Ask) {
        let _twice = self.0.set((session, ask));
    }

    /// Passes `$/cancel_request` on. A request that no session has is answered soon anyway.
    pub(super) async fn withdraw(&self) {
        if let Some((session, ask)) = self.0.get() {
            session.withdraw(*ask).await;
        }
    }
}
