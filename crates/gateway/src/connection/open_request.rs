//! An open request of a client, as far as it can be withdrawn.

use acpd_host::{ClientRequest, SessionHandle};
use std::sync::{Arc, OnceLock};

/// Filled in once the request has reached its session.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRequest(Arc<OnceLock<(SessionHandle, ClientRequest)>>);

impl OpenRequest {
    pub(super) fn reached(&self, session: SessionHandle, request: ClientRequest) {
        let _twice = self.0.set((session, request));
    }

    /// Passes `$/cancel_request` on. A request that no session has is answered soon anyway.
    pub(super) async fn withdraw(&self) {
        if let Some((session, request)) = self.0.get() {
            session.withdraw(*request).await;
        }
    }
}
