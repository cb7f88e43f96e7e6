//! Where agents are installed, what the configuration says of them, and who uses them.

use crate::cli::AgentPlace;
use crate::config::{self, Config, Sources};
use crate::daemon::SessionFilter;
use crate::exit::{Code, Failure};
use crate::installing::Programs;
use crate::kept_config::read_or_begin;
use crate::signals::StopSignals;
use crate::state_dir;
use crate::stored::Stored;
use acpd_catalog::{AgentName, AgentsDir, Locked, Receipt, Version};
use std::path::{Path, PathBuf};

/// Live sessions that are told of at most.
const SESSIONS: usize = 100;

/// Whose an entry of the configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// There is none.
    None,
    /// It was written by `agents add`: its program lies in this version's directory.
    Added(Version),
    /// It was written by hand.
    Person,
}

/// A state directory, and the configuration that goes with it.
pub(super) struct Place {
    pub(super) file: Option<PathBuf>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) config: Config,
}

impl Place {
    pub(super) fn of(given: &AgentPlace) -> Result<Self, Failure> {
        let AgentPlace { config: file, state_dir, .. } = given.clone();
        let config = read_or_begin(&Sources::of_process(file.clone(), state_dir.clone()))?;
        Ok(Self { file, state_dir, config })
    }

    /// The configuration's file, as it is named.
    pub(super) fn config_file(&self) -> &Path {
        self.config.file.as_deref().unwrap_or(Path::new(""))
    }

    pub(super) fn agents(&self) -> AgentsDir {
        AgentsDir::of(&self.config.storage.path)
    }

    pub(super) fn entry(&self, name: &AgentName) -> Option<&config::Agent> {
        self.config.agents.get(name.as_str())
    }

    pub(super) fn owner(&self, name: &AgentName) -> Owner {
        owner(&self.config, &self.agents(), name)
    }

    /// The receipt of the version that an entry names.
    pub(super) fn receipt(&self, name: &AgentName) -> Option<Receipt> {
        let Owner::Added(version) = self.owner(name) else { return None };
        Receipt::read(&self.agents().version(name, &version))
    }

    /// The agents whose entries were written by `agents add`.
    pub(super) fn added(&self) -> Vec<AgentName> {
        let names = self.config.agents.keys().filter_map(|name| AgentName::try_from(name.clone()).ok());
        names.filter(|name| matches!(self.owner(name), Owner::Added(_))).collect()
    }

    /// Has the directory of agents for this process alone. The state directory is there then.
    pub(super) async fn lock(&self, programs: &Programs) -> Result<Locked, Failure> {
        state_dir::claim(&self.config.storage.path)?;
        let agents = self.agents();
        if let Some(locked) = agents.try_lock()? {
            return Ok(locked);
        }
        programs.told.line("waiting for another acpd that installs or removes agents here");
        let waited = tokio::task::spawn_blocking(move || agents.lock()).await;
        Ok(waited.map_err(std::io::Error::other)??)
    }

    /// The ids of its sessions that have not ended.
    pub(super) async fn live_sessions(&self, name: &AgentName) -> Result<Vec<String>, Failure> {
        let filter =
            SessionFilter { agent: Some(name.to_string()), ended: Some(false), ..SessionFilter::default() };
        let (sessions, _) = Stored::open(&self.config).await?.sessions(filter, SESSIONS, false).await?;
        Ok(sessions.into_iter().map(|session| session.session_id).collect())
    }

    /// Removes the versions of an agent but this one, unless a session may use them: those that stay.
    pub(super) async fn sweep(
        &self,
        locked: &Locked,
        name: &AgentName,
        current: &Version,
    ) -> Result<Swept, Failure> {
        let others = self.agents().installed(name).into_iter().map(|receipt| receipt.version);
        let others: Vec<Version> = others.filter(|version| version != current).collect();
        if others.is_empty() {
            return Ok(Swept::default());
        }
        let sessions = self.live_sessions(name).await?;
        if !sessions.is_empty() {
            return Ok(Swept { removed: Vec::new(), kept: others, sessions });
        }
        for version in &others {
            locked.remove(name, version)?;
        }
        Ok(Swept { removed: others, ..Swept::default() })
    }
}

pub(super) fn owner(config: &Config, agents: &AgentsDir, name: &AgentName) -> Owner {
    match config.agents.get(name.as_str()) {
        None => Owner::None,
        Some(agent) => match agents.version_of(name, Path::new(&agent.command)) {
            Some(version) => Owner::Added(version),
            None => Owner::Person,
        },
    }
}

/// What became of older versions.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) removed: Vec<Version>,
    pub(super) kept: Vec<Version>,
    /// Those that keep them.
    pub(super) sessions: Vec<String>,
}

impl Swept {
    /// In words, if there is something to say.
    pub(super) fn words(&self, name: &AgentName) -> Option<String> {
        let list = |versions: &[Version]| versions.iter().map(Version::as_str).collect::<Vec<_>>().join(", ");
        match (&self.removed[..], &self.kept[..]) {
            ([], []) => None,
            (removed, []) => Some(format!("{name} {} is removed.", list(removed))),
            (_, kept) => Some(format!(
                "{name} {} stays while sessions run ({}); the next `acpd agents update` removes it.",
                list(kept),
                self.sessions.join(", ")
            )),
        }
    }
}

/// Does something that a signal ends, with everything that it has begun.
pub(super) async fn interruptible<T>(
    programs: &Programs,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut stops = StopSignals::listen()?;
    let mut work = Box::pin(work);
    let done = tokio::select! {
        done = &mut work => Some(done),
        () = stops.next() => None,
    };
    if done.is_none() {
        // Before its files go.
        programs.kill().await;
    }
    drop(work);
    programs.finished().await;
    match done {
        // The signal came too late.
        Some(Ok(done)) => Ok(done),
        Some(failed) if !programs.is_interrupted() => failed,
        _ => {
            let why = "interrupted; what was begun is taken back".to_owned();
            Err(Failure::Of(Code::Interrupted, why))
        }
    }
}
