//! Which session the prompt is for: a new one, one that is named, or the last one of the directory.
//!
//! Not here: how it is asked for.

use super::home::Home;
use crate::clean;
use crate::commands::{shown, working_directory};
use crate::daemon::{Session, SessionFilter};
use crate::exit::Failure;
use crate::view::short_id;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the flags say.
pub(super) enum Wish {
    /// A new one in this directory, or the last one in it.
    In(PathBuf, Where),
    /// The one whose id ends or begins like this, in its directory or in another.
    Named(String, Option<PathBuf>),
}

/// Which one of a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    New,
    /// The last one of its agent, which may be known to the daemon alone.
    Last,
}

impl Wish {
    pub(super) fn of(
        session: Option<String>,
        go_on: bool,
        cwd: Option<PathBuf>,
        is_here: bool,
    ) -> Result<Self, Failure> {
        let which = if go_on { Where::Last } else { Where::New };
        match session {
            Some(id) => {
                let cwd = cwd.map(|cwd| working_directory(Some(cwd), is_here)).transpose()?;
                Ok(Self::Named(id, cwd))
            }
            None => Ok(Self::In(working_directory(cwd, is_here)?, which)),
        }
    }

    /// Whether the agent is known when the session is found, and not before.
    pub(super) fn names_session(&self) -> bool {
        matches!(self, Self::Named(..))
    }

    /// Finds the session that is named; its agent may be named too.
    pub(super) async fn found(self, home: &Home, agent: Option<&str>) -> Result<Target, Failure> {
        let (id, cwd) = match self {
            Self::In(cwd, which) => return Ok(Target::In(cwd, which)),
            Self::Named(id, cwd) => (id, cwd),
        };
        let session = home.find(&id).await?;
        if let Some(agent) = agent.filter(|agent| **agent != session.agent) {
            return Err(Failure::Usage(format!(
                "the session {} is of the agent {}, not {}; leave --agent or --command out",
                short_id(&session.session_id),
                clean::line(&session.agent, 60),
                clean::line(agent, 60)
            )));
        }
        let cwd = cwd.unwrap_or_else(|| PathBuf::from(&session.cwd));
        Ok(Target::Session(cwd, Box::new(session)))
    }
}

/// Which session the prompt is for.
pub(super) enum Target {
    In(PathBuf, Where),
    /// This one, in this directory.
    Session(PathBuf, Box<Session>),
}

impl Target {
    /// Whether the session is one that the person has not named.
    pub(super) fn is_found(&self) -> bool {
        matches!(self, Self::In(_, Where::Last))
    }

    pub(super) fn cwd(&self) -> &Path {
        match self {
            Self::In(cwd, _) | Self::Session(cwd, _) => cwd,
        }
    }

    /// The session, if it is known to be live.
    pub(super) fn live(&self) -> Option<&str> {
        match self {
            Self::Session(_, session) if !session.ended => Some(&session.session_id),
            Self::In(..) | Self::Session(..) => None,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live().is_some()
    }

    /// Its agent, as far as it follows from the session.
    pub(super) fn agent(&self) -> Option<&str> {
        match self {
            Self::In(..) => None,
            Self::Session(_, session) => Some(&session.agent),
        }
    }

    /// The session that is gone on with; `agent` is that of the connection.
    pub(super) async fn session(self, home: &Home, agent: Option<&str>) -> Result<Option<Session>, Failure> {
        match self {
            Self::In(_, Where::New) => Ok(None),
            Self::In(cwd, Where::Last) => last(home, agent, &cwd).await.map(Some),
            Self::Session(_, session) => Ok(Some(*session)),
        }
    }
}

/// The last session of an agent in a directory that can be gone on with.
async fn last(home: &Home, agent: Option<&str>, cwd: &Path) -> Result<Session, Failure> {
    let cwd = cwd.to_string_lossy();
    let (agent_is, cwd_is) = (agent.map(str::to_owned), Some(cwd.clone().into_owned()));
    let filter = SessionFilter { agent: agent_is, cwd: cwd_is, ..SessionFilter::default() };
    let sessions = home.sessions(&filter).await?;
    // Sessions of earlier versions do not say whether they were prompted.
    let found = sessions.iter().position(goes_on).or_else(|| sessions.iter().position(is_open));
    found.and_then(|at| sessions.into_iter().nth(at)).ok_or_else(|| {
        let agent = agent.map(|agent| format!(" of the agent {}", clean::line(agent, 60)));
        let (agent, cwd) = (agent.unwrap_or_default(), shown(&cwd));
        Failure::missing(format!("--continue: there is no session{agent} in {cwd} to go on with"))
    })
}

/// One that was terminated is over for good.
fn is_open(session: &Session) -> bool {
    session.end_reason().as_deref() != Some("terminated")
}

/// One that ended before its first turn has nothing to go on with.
fn goes_on(session: &Session) -> bool {
    let end: Option<Value> = session.termination_info.read();
    let died_in_turn = end.is_some_and(|info| info["turnActive"] == true);
    let was_prompted = !session.ended || session.last_turn.is_some() || died_in_turn;
    was_prompted && is_open(session)
}
