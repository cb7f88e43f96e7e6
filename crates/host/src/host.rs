//! The host: creates sessions, ends everything.

use crate::agent::{AgentFinder, AgentHandle, AgentStarter, Agents, MethodMemory};
use crate::continuity::Continuity;
use crate::error::HostError;
use crate::fleet_part::{Beginnings, FleetPart};
use crate::host_file::HostFile;
use crate::recovery::Recovery;
use crate::search::keep_indexing;
use crate::session::{EndRequest, SessionHandle};
use crate::sessions::Sessions;
use crate::spec::AgentSpec;
use crate::store::SessionStore;
use acpd_eventlog::{Cursor, CursorError, EventLog, Presence};
use acpd_record::{Partition, SessionId};
use acpd_supervisor::{Supervisor, TaskScope};
use acpd_terminal::{TerminalSettings, Terminals};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a host is made of.
#[derive(Debug)]
pub struct HostOptions {
    /// The agents that can be started, by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// What finds agents that are not among them, as they are asked for.
    pub finder: Option<Arc<dyn AgentFinder>>,
    /// Where agents are started before a session says where it works.
    pub cwd: PathBuf,
    /// Times and bounds of the terminals that agents are given.
    pub terminal: TerminalSettings,
    /// Agents outlive the host, and those of hosts that are gone are taken over; None: they end with it.
    pub continuity: Option<Continuity>,
}

/// Hosts sessions. Cheap to clone; [`Host::shutdown`] ends it.
#[derive(Clone)]
pub struct Host {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) agents: Agents,
    pub(crate) store: Arc<SessionStore>,
    pub(crate) recovery: Recovery,
    pub(crate) sessions: Sessions,
    pub(crate) scope: TaskScope,
    /// Cancelled when the host shuts down: no run begins any more, and what is being started is not waited for.
    pub(crate) closing: CancellationToken,
    /// No session is created; those that are there go on.
    pub(crate) drains: AtomicBool,
    pub(crate) fleet: FleetPart,
}

impl Host {
    /// Makes a host, and recovers those that died in the same state directory: their processes are ended
    /// and their live sessions are recorded as lost.
    pub async fn open(
        options: HostOptions,
        log: EventLog,
        supervisor: Supervisor,
        scope: TaskScope,
        host_file: HostFile,
        state_dir: &Path,
    ) -> Self {
        let (memory, closing) = (MethodMemory::open(state_dir), CancellationToken::new());
        let terminals = Terminals::new(
            supervisor.clone(),
            scope.child(tracing::Span::none()),
            std::env::vars_os(),
            options.terminal,
        );
        let continuity = options.continuity.map(Arc::new);
        let takes_over = continuity.is_some();
        let starter = AgentStarter::new(supervisor, scope.clone(), memory, continuity, closing.clone());
        let store = Arc::new(SessionStore::new(log, host_file));
        let recovery = Recovery::new(Arc::clone(&store));
        let agents = Agents::new(options.agents, options.finder, options.cwd, starter, &scope);
        let sessions = Sessions::new(terminals);
        let (drains, fleet) = (AtomicBool::new(false), FleetPart::default());
        let shared = Shared { agents, store, recovery, sessions, scope, closing, drains, fleet };
        let host = Self { shared: Arc::new(shared) };
        let Shared { recovery, store, scope, closing, .. } = &*host.shared;
        if takes_over {
            recovery.set_successor(Arc::downgrade(&host.shared));
        }
        recovery.recover_dead_hosts().await;
        recovery.keep_on(scope, closing);
        keep_indexing(store, scope);
        host
    }

    /// Its agents.
    pub fn agents(&self) -> &Agents {
        &self.shared.agents
    }

    /// An initialized process of an agent, for a session that names no policy: one that was kept ready or is started, in `cwd` or
    /// where acpd runs, or the one that such sessions share.
    ///
    /// # Errors
    /// When there is no such agent, or it does not start.
    pub async fn connect(&self, agent: &str, cwd: Option<&Path>) -> Result<AgentHandle, HostError> {
        self.shared.agents.connect(agent, cwd, self.shared.fleet.default_policy()).await
    }

    /// The scope in which connections run their tasks.
    pub fn scope(&self) -> &TaskScope {
        &self.shared.scope
    }

    /// Creates no sessions from now on, or creates them again. Those that are there go on.
    pub fn drain(&self, drains: bool) {
        self.shared.drains.store(drains, Ordering::Relaxed);
    }

    /// It is a node of a fleet, in which sessions that say nothing of it have this policy; with why no other node can take sessions up,
    /// if none can.
    pub fn in_fleet(&self, default: Partition, no_failover: Option<String>) {
        self.shared.fleet.set(default, no_failover);
    }

    /// Its fleet is asked whose a session under a key is before it begins, and told of each that has begun; said once, before there
    /// are clients.
    pub fn ask_fleet(&self, beginnings: Arc<dyn Beginnings>) {
        self.shared.fleet.ask(beginnings);
    }

    /// The fleet may have given this node up, or has not: while it may, no session that another node may take up runs here. Those
    /// that do are ended side by side, each by its own ladder, with cause `fenced`; none is created, forked, taken up or prompted
    /// ([`HostError::Fenced`](crate::HostError::Fenced)). Waits for nothing.
    pub fn fence(&self, is_fenced: bool) {
        let Shared { fleet, sessions, scope, .. } = &*self.shared;
        fleet.fence.set(is_fenced);
        if !is_fenced {
            return;
        }
        for session in sessions.live.all().into_iter().filter(SessionHandle::is_fenced) {
            scope.spawn("fence", async move { session.end_fenced().await });
        }
    }

    /// Until then this node may be counted on. The processes of sessions that another node may take up end by themselves, by their ladders,
    /// unless this is called with a later time before: also where this process is stopped or dead.
    pub fn counts_until(&self, until: Instant) {
        let live = self.shared.sessions.live.all().into_iter();
        let movable = live.filter(SessionHandle::is_movable);
        self.shared.fleet.deadlines.set(movable.map(|session| session.agent().clone()), until);
    }

    /// The same for what would begin or be prompted; what runs goes on.
    pub fn fence_new(&self) {
        self.shared.fleet.fence.set(true);
    }

    /// Whether sessions that another node may take up do not begin here now.
    pub fn is_fenced(&self) -> bool {
        self.shared.fleet.fence.is_up()
    }

    /// Whether it shuts down, or has.
    pub fn is_closing(&self) -> bool {
        self.shared.closing.is_cancelled()
    }

    /// Reads a session's events from after a sequence number on, and follows.
    ///
    /// # Errors
    /// When there is no such session or no such place in it.
    pub async fn cursor(&self, id: &SessionId, after: u64) -> Result<Cursor, CursorError> {
        self.shared.store.log.cursor(id.as_str(), after).await
    }

    /// Whether a session is there, for those that read it and wait for nothing else.
    pub fn presence(&self, id: &SessionId) -> Arc<Presence> {
        self.shared.store.log.presence(id.as_str())
    }

    /// Ends every session and every agent in good order and closes the log. Bounded by the stop ladder.
    pub async fn shutdown(self, initiator: &str) {
        self.close();
        end_all(self.shared.sessions.live.all(), initiator).await;
        self.shared.scope.token().cancel();
    }

    /// Leaves sessions whose agents can outlive this host to the next one, and ends the others as [`shutdown`](Self::shutdown)
    /// does. They go on here until the process ends or is replaced by another program, which it has to be then: what holds
    /// them must not be dropped before.
    pub async fn leave(&self, initiator: &str) {
        self.close();
        let (left, ending): (Vec<_>, Vec<_>) =
            self.shared.sessions.live.all().into_iter().partition(|session| session.agent().outlives_host());
        left.iter().for_each(SessionHandle::keep_viewers);
        end_all(ending, initiator).await;
    }

    /// Whether [`leave`](Self::leave) would leave a session to the next host.
    pub fn leaves_agents(&self) -> bool {
        let live = self.shared.sessions.live.all();
        live.iter().any(|session| session.ended_with().is_none() && session.agent().outlives_host())
    }

    /// Has what ends end soon: kills every agent.
    pub fn hasten(&self) {
        self.shared.agents.kill_all();
    }

    /// Waits until what was said is in the log.
    pub async fn committed(&self) {
        // One that is closed has committed it.
        let _closed = self.shared.store.log.committed().await;
    }

    /// No run begins any more.
    fn close(&self) {
        self.shared.closing.cancel();
        // Beside the sessions: each has its own ladder.
        self.shared.agents.stop_spares();
    }

    /// Waits for every task and closes the log; for the owner of the process, after [`shutdown`](Self::shutdown)
    /// and after every connection was dropped.
    pub async fn finished(self) {
        self.shared.scope.finished().await;
        self.shared.store.log.clone().close().await;
        self.shared.store.host_file.remove();
    }
}

/// Ends sessions side by side; the ladder bounds each.
async fn end_all(sessions: Vec<SessionHandle>, initiator: &str) {
    let initiator: Arc<str> = initiator.into();
    let mut ends = tokio::task::JoinSet::new();
    for session in sessions {
        let initiator = Arc::clone(&initiator);
        ends.spawn(async move { drop(session.end(EndRequest::Shutdown, initiator).await) });
    }
    while ends.join_next().await.is_some() {}
}
