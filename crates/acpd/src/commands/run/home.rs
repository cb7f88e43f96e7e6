//! Who hosts the session: this process or a daemon, and what it knows of it.

use crate::daemon::{Daemon, Session};
use crate::local_host::LocalHost;
use acpd_host::SessionId;
use serde_json::value::to_raw_value;

/// Who hosts the session.
pub(super) enum Home {
    /// This process, for this conversation.
    Here(LocalHost),
    /// A daemon, which goes on without us.
    Daemon {
        daemon: Box<Daemon>,
        /// Whose agents it has.
        configuration: String,
        /// What to type for other commands to talk to it: flags, each with a space before it.
        reach: String,
    },
}

impl Home {
    /// What is known of a session, by its whole id. None when it cannot be looked at any more.
    pub(super) async fn look(&self, session: &str) -> Option<Session> {
        match self {
            Self::Here(local) => {
                let summary = local.host.inspect(&SessionId::parse(session)?, None).await.ok()?;
                Session::read(to_raw_value(&summary).ok()?).ok()
            }
            Self::Daemon { daemon, .. } => daemon.session(session).await.ok(),
        }
    }
}
