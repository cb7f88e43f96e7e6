//! Who hosts sessions: this process or a daemon, and what it knows of them.

use crate::daemon::{Daemon, Session, SessionFilter, meant};
use crate::exit::Failure;
use crate::local_host::LocalHost;
use acpd_eventlog::ListQuery;
use acpd_host::{SessionId, SessionSummary};
use serde_json::value::to_raw_value;

/// Who hosts the session.
pub(crate) enum Home {
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
    pub(crate) async fn look(&self, session: &str) -> Option<Session> {
        match self {
            Self::Here(local) => {
                let summary = local.host.inspect(&SessionId::parse(session)?, None).await.ok()?;
                read(&summary).ok()
            }
            Self::Daemon { daemon, .. } => daemon.session(session).await.ok(),
        }
    }

    /// The session of this id, or the only one whose id ends or begins like this.
    pub(crate) async fn find(&self, id: &str) -> Result<Session, Failure> {
        match self {
            Self::Here(_) => Ok(meant(id, self.sessions(&SessionFilter::default()).await?)?),
            Self::Daemon { daemon, .. } => Ok(daemon.session(id).await?),
        }
    }

    /// Sessions, the latest change first.
    pub(crate) async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, Failure> {
        match self {
            Self::Here(local) => {
                let (agent, cwd) = (filter.agent.clone(), filter.cwd.clone());
                let query = ListQuery { agent, cwd, ended: filter.ended, ..ListQuery::default() };
                let listed = local.host.list(query).await?;
                listed.iter().map(read).collect::<Result<_, _>>().map_err(Failure::from)
            }
            Self::Daemon { daemon, .. } => Ok(daemon.sessions(filter, usize::MAX).await?.0),
        }
    }
}

/// A session of this host as a daemon would show it.
fn read(summary: &SessionSummary) -> Result<Session, serde_json::Error> {
    Session::read(to_raw_value(summary)?)
}
