//! Who hosts sessions: this process or a daemon, and what it knows of them.

use super::catching_up::CATCHES_UP;
use crate::daemon::{Daemon, Session, SessionFilter};
use crate::exit::Failure;
use crate::local_host::LocalHost;
use acpd_host::{Pending, SessionId};
use std::time::Duration;

/// Who hosts the session.
pub(super) enum Home {
    /// This process, for this conversation.
    Here(Box<LocalHost>),
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
    /// Whether sessions outlive this process.
    pub(super) fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon { .. })
    }

    /// True if the files of its sessions are on this machine.
    pub(super) fn is_here(&self) -> bool {
        match self {
            Self::Here(_) => true,
            Self::Daemon { daemon, .. } => daemon.address().is_here(),
        }
    }

    /// What is known of a session, by its whole id. None when it cannot be looked at any more.
    pub(super) async fn look(&self, session: &str) -> Option<Session> {
        match self {
            Self::Here(local) => {
                let summary = local.host.inspect(&SessionId::parse(session)?, None).await.ok()?;
                Session::of(&summary).ok()
            }
            Self::Daemon { daemon, .. } => daemon.session(session).await.ok(),
        }
    }

    /// The number of events that are recorded of a session. A daemon that is away, or has lost the session's node, is
    /// asked once, or (`waits`) until that is back. None when it cannot be known.
    pub(super) fn count_events(&self, session: &str, waits: bool) -> Pending<'static, Option<u64>> {
        let session = session.to_owned();
        match self {
            Self::Here(local) => {
                let host = local.host.clone();
                Box::pin(async move {
                    let summary = host.inspect(&SessionId::parse(&session)?, None).await.ok()?;
                    Some(summary.session.history.event_count)
                })
            }
            Self::Daemon { daemon, .. } => {
                let daemon = Daemon::clone(daemon);
                Box::pin(async move {
                    let counted = match waits {
                        true => daemon.retry(true, || daemon.count_events(&session)).await,
                        false => daemon.count_events(&session).await,
                    };
                    counted.ok()
                })
            }
        }
    }

    /// The time that the next event may take, also when the daemon is lost meanwhile.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self::Here(_) => CATCHES_UP,
            Self::Daemon { daemon, .. } => daemon.reconnect().max(CATCHES_UP),
        }
    }

    /// The session of this id, or the only one whose id ends or begins like this.
    pub(super) async fn find(&self, id: &str) -> Result<Session, Failure> {
        match self {
            Self::Here(local) => local.session(id).await,
            Self::Daemon { daemon, .. } => Ok(daemon.retry(false, || daemon.session(id)).await?),
        }
    }

    /// Sessions, the latest change first.
    pub(super) async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, Failure> {
        match self {
            Self::Here(local) => local.sessions(filter).await,
            Self::Daemon { daemon, .. } => Ok(daemon.sessions(filter, usize::MAX).await?.0),
        }
    }
}
