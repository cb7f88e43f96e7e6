//! A host inside this process: composed from the configuration, for one front end.

pub(crate) use crate::agent_specs::{agent_spec, agent_specs};

use crate::config::{self, Config, EXAMPLE_AGENT, Sources};
use crate::daemon::{Session, SessionFilter, meant};
use crate::exit::{Code, Failure};
use crate::hooks::Means;
use crate::known_agents::{KnownAgents, add_installed};
use crate::migrating::{Waits, migrate};
use crate::process;
use crate::signals::StopSignals;
use crate::state_dir;
use acpd_eventlog::{EventLog, ListQuery, Options, Subscriber};
use acpd_host::KEEPERS;
use acpd_host::chain;
use acpd_host::{
    AgentFinder, Continuity, Host, HostFile, HostOptions, SessionId, TakesOver, TaskScope, TerminalSettings,
};
use acpd_supervisor::{KeeperCommand, Supervisor};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How much longer than the ladder itself the end of a host may take: the drain of pipes and the last commit.
const END_SLACK: Duration = Duration::from_secs(1);

/// Loads the configuration; the built-in agent is always there, and known ones that are installed.
pub(crate) fn load_config(file: Option<PathBuf>, state_dir: Option<PathBuf>) -> Result<Config, Failure> {
    let loaded = Config::load(&Sources::of_process(file, state_dir));
    let mut config = loaded.map_err(|error| Failure::Usage(chain(&error)))?;
    if !config.agents.contains_key(EXAMPLE_AGENT) {
        config.agents.insert(EXAMPLE_AGENT.to_owned(), example_agent()?);
    }
    add_installed(&mut config);
    Ok(config)
}

fn example_agent() -> Result<config::Agent, Failure> {
    let binary = std::env::current_exe()?;
    let command = binary.into_os_string().into_string().map_err(|path| {
        Failure::Failed(format!("the path of this program is not UTF-8: {}", path.to_string_lossy()))
    })?;
    Ok(config::Agent::builtin(command, vec![process::EXAMPLE_AGENT.to_owned()]))
}

/// How agents outlive the daemon, if they do, and which of those that wait are taken over.
pub(crate) fn continuity(config: &Config, takes_over: TakesOver) -> Continuity {
    let config::Continuity { keep, detached_bytes } = config.continuity;
    let directory = config.storage.path.join(KEEPERS);
    Continuity { keep, detached_bytes, directory, takes_over, is_handed_over: false }
}

/// The same for a host that is no daemon: its agents end with it, and it records what ended while no daemon was there.
fn without_daemon(config: &Config) -> Continuity {
    Continuity { keep: Duration::ZERO, ..continuity(config, TakesOver::Ended) }
}

/// A host and what its end needs to know.
pub(crate) struct LocalHost {
    pub(crate) host: Host,
    log: EventLog,
    supervisor: Supervisor,
    known: Arc<KnownAgents>,
    pub(crate) line_limit: usize,
    end_bound: Duration,
}

impl LocalHost {
    /// Opens the state directory and makes a host of the configuration.
    ///
    /// # Errors
    /// When that fails, or a signal asks to stop before.
    pub(crate) async fn open(config: &Config, stops: &mut StopSignals) -> Result<Self, Failure> {
        Self::open_until(stops, config, without_daemon(config)).await
    }

    /// Another process may hold the log for as long as it likes.
    async fn open_until(
        stops: &mut StopSignals,
        config: &Config,
        continuity: Continuity,
    ) -> Result<Self, Failure> {
        tokio::select! {
            opened = Self::open_for(config, continuity, Vec::new(), &Waits::OnTerminal) => opened,
            () = stops.next() => Err(interrupted()),
        }
    }

    /// The same; its agents may outlive it as `continuity` says, and what happens is noted for `subscribers`, from the first
    /// thing on that the host finds. Who `waits` is told while the directory is migrated.
    pub(crate) async fn open_for(
        config: &Config,
        continuity: Continuity,
        subscribers: Vec<Subscriber>,
        waits: &Waits,
    ) -> Result<Self, Failure> {
        let state_dir = &config.storage.path;
        state_dir::claim(state_dir)?;
        acpd_eventlog::make_room_to_start(state_dir);
        let host_file = HostFile::create(state_dir)?;
        migrate(state_dir, waits).await?;
        let log = EventLog::open(state_dir, log_options(config))?;
        log.subscribe(subscribers).await.map_err(|error| Failure::Failed(chain(&error)))?;
        let scope = TaskScope::default();
        let keeper = KeeperCommand::this_binary(process::KEEPER)?;
        let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::Failed(format!("cannot use the current directory: {}", chain(&error)))
        })?;
        let (agents, terminal) = (agent_specs(config), terminal_settings(config));
        let known = KnownAgents::new(config, supervisor.clone(), scope.clone());
        let finder: Arc<dyn AgentFinder> = known.clone();
        let options =
            HostOptions { agents, finder: Some(finder), cwd, terminal, continuity: Some(continuity) };
        let (of_host, supervising) = (log.clone(), supervisor.clone());
        let host = Host::open(options, of_host, supervising, scope, host_file, state_dir).await;
        let end_bound = config.timeouts.stdin_grace * 2 + config.timeouts.term_grace + END_SLACK;
        Ok(Self { host, log, supervisor, known, line_limit: config.limits.line_bytes, end_bound })
    }

    /// Reaps what an earlier image of this process has started.
    pub(crate) fn reap_inherited(&self) {
        #[cfg(target_os = "linux")]
        acpd_supervisor::reap_inherited(self.host.scope());
    }

    /// The agents that it finds by their names.
    pub(crate) fn known_agents(&self) -> &Arc<KnownAgents> {
        &self.known
    }

    /// What starts programs here.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// What tells hooks works with.
    pub(crate) fn means_of_hooks(&self) -> Means {
        let (log, supervisor) = (self.log.clone(), self.supervisor.clone());
        Means { log, supervisor, scope: self.host.scope().clone() }
    }

    /// A host for as long as `work` takes, or until it is interrupted; `initiator` is in the records of what it had live.
    pub(crate) async fn hosting(
        config: &Config,
        initiator: &str,
        work: impl AsyncFnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        Self::hosting_with(config, without_daemon(config), initiator, work).await
    }

    /// The same with one session whose agent waits for a host.
    pub(crate) async fn hosting_detached(
        config: &Config,
        session: SessionId,
        initiator: &str,
        work: impl AsyncFnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let taken = continuity(config, TakesOver::Session(session));
        Self::hosting_with(config, taken, initiator, work).await
    }

    async fn hosting_with(
        config: &Config,
        continuity: Continuity,
        initiator: &str,
        work: impl AsyncFnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut stops = StopSignals::listen()?;
        let local = Self::open_until(&mut stops, config, continuity).await?;
        let done = tokio::select! {
            done = work(&local) => done,
            () = stops.next() => Err(interrupted()),
        };
        local.host.clone().shutdown(initiator).await;
        local.close(&mut stops).await;
        done
    }

    /// Sessions, the latest change first.
    pub(crate) async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, Failure> {
        let (agent, cwd) = (filter.agent.clone(), filter.cwd.clone());
        let query = ListQuery { agent, cwd, ended: filter.ended, ..ListQuery::default() };
        let listed = self.host.list(query).await?;
        listed.iter().map(Session::of).collect::<Result<_, _>>().map_err(Failure::from)
    }

    /// The session of this id, or the only one whose id ends or begins like this.
    pub(crate) async fn session(&self, id: &str) -> Result<Session, Failure> {
        Ok(meant(id, self.sessions(&SessionFilter::default()).await?)?)
    }

    /// Ends the host. Where it `may_leave` sessions to the next one and some go on, they do so until this process ends, and
    /// nothing of the host is dropped: whether there are some.
    pub(crate) async fn end_or_leave(
        self,
        may_leave: bool,
        initiator: &str,
        stops: &mut StopSignals,
    ) -> bool {
        let leaves = may_leave && self.host.leaves_agents();
        if leaves {
            tokio::select! {
                () = self.host.committed() => {}
                // Another process may hold the log. What is not in it stays with the keepers.
                () = stops.next() => tracing::warn!("asked to stop once more, leaving what is not recorded to keepers"),
            }
            std::mem::forget(self);
        } else {
            self.host.clone().shutdown(initiator).await;
            self.close(stops).await;
        }
        leaves
    }

    /// Ends the host, within the ladder's graces and a second. A signal kills what still ends.
    pub(crate) async fn close(self, stops: &mut StopSignals) {
        let (host, finished) = (self.host.clone(), self.host.finished());
        let ended = tokio::time::timeout(self.end_bound, kill_on_signal(stops, &host, finished)).await;
        if ended.is_err() {
            tracing::warn!("some tasks did not end in time; their keepers end their processes");
        }
    }
}

fn interrupted() -> Failure {
    Failure::Of(Code::Interrupted, "interrupted".to_owned())
}

/// Waits for an end of the host; a signal meanwhile kills what has not ended.
///
/// # Cancel safety
/// As `ending`.
pub(crate) async fn kill_on_signal<T>(
    stops: &mut StopSignals,
    host: &Host,
    ending: impl Future<Output = T>,
) -> T {
    tokio::pin!(ending);
    loop {
        tokio::select! {
            ended = &mut ending => return ended,
            () = stops.next() => hasten(host),
        }
    }
}

/// Kills what has not ended.
pub(crate) fn hasten(host: &Host) {
    tracing::warn!("asked to stop once more, killing what has not ended");
    host.hasten();
}

/// How the log is opened.
pub(crate) fn log_options(config: &Config) -> Options {
    Options {
        durability: match config.storage.durability {
            config::Durability::Process => acpd_eventlog::Durability::Process,
            config::Durability::Power => acpd_eventlog::Durability::Power,
        },
        search: config.storage.search,
        ..Options::default()
    }
}

fn terminal_settings(config: &Config) -> TerminalSettings {
    let terminal = &config.terminal;
    let timeouts = terminal.command_timeouts.iter();
    TerminalSettings {
        graceful_shutdown_timeout: terminal.graceful_shutdown_timeout,
        default_execution_timeout: terminal.default_execution_timeout.limit(),
        command_timeouts: timeouts.map(|(name, wait)| (name.into(), wait.limit())).collect(),
        output_byte_limit: usize::try_from(terminal.output_byte_limit).unwrap_or(usize::MAX),
        ..TerminalSettings::default()
    }
}
