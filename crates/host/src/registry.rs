//! The live sessions of this process, by id. An index of handles and nothing more: what a session is, its task
//! knows.

use crate::session::SessionHandle;
use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<Mutex<HashMap<SessionId, SessionHandle>>>);

impl Registry {
    pub(crate) fn insert(&self, session: SessionHandle) {
        self.0.lock().insert(session.id().clone(), session);
    }

    /// Removes a run, unless the next one has taken its place.
    pub(crate) fn remove(&self, id: &SessionId, began_after: u64) {
        let mut sessions = self.0.lock();
        if sessions.get(id).is_some_and(|known| known.began_after() == began_after) {
            sessions.remove(id);
        }
    }

    /// A session whose run goes on. One whose end is recorded may be activated again, even while its task is still
    /// answering its clients.
    pub(crate) fn get(&self, id: &SessionId) -> Option<SessionHandle> {
        self.0.lock().get(id).filter(|session| session.ended_with().is_none()).cloned()
    }

    pub(crate) fn all(&self) -> Vec<SessionHandle> {
        self.0.lock().values().cloned().collect()
    }
}
