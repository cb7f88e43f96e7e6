//! Recovery of what other hosts of the state directory left when they died: processes, and sessions that look live.
//!
//! Looked for when a host opens, now and then, and before a session of another host is acted on: that one may have died
//! since (contract 6). Who only reads sees such a session as it will be recorded. Invariant: a session of a living host is
//! never touched.

mod lost;

use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::host::{Host, Shared};
use crate::host_file::DeadHost;
use crate::journal;
use crate::metrics;
use crate::recording::ended_batch;
use crate::store::SessionStore;
use crate::taking_over::LISTENING;
use acpd_eventlog::{Batch, IndexUpdate, SessionRow, WriteError};
use acpd_record::{Cause, SessionId, SessionMeta};
use acpd_supervisor::{
    EndLeft, Graces, ProcessMark, Sweep, TaskScope, detached_since, end_left, ends_left, forget_killed,
    sweep, wait_for_keepers, wait_until_gone,
};
pub(crate) use lost::LostRun;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Time beyond their graces for the processes of a dead host.
const SLACK: Duration = Duration::from_secs(1);

/// How often hosts that died are looked for.
const INTERVAL: Duration = Duration::from_secs(60);

/// What became of a session whose host has died.
pub(crate) enum LeftBehind {
    Lost(Box<LostRun>),
    Detached(Detached),
}

/// An agent that waits for the next host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detached {
    /// Since when, in milliseconds since 1970.
    pub(crate) since_ms: i64,
    keep: Duration,
}

impl Detached {
    /// Until when it waits, in milliseconds since 1970.
    pub(crate) fn until_ms(self) -> i64 {
        self.since_ms.saturating_add(i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX))
    }

    /// How much longer it waits.
    pub(crate) fn left(self, now_ms: i64) -> Duration {
        let waited = u64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        self.keep.saturating_sub(Duration::from_millis(waited))
    }
}

/// What became of an agent whose host is gone.
enum AgentLeft {
    Waits(Detached),
    Ended(EndLeft),
}

fn millis_of(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What a dead host still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    /// Sessions whose agents wait for the next host.
    Detached,
}

/// Takes care of what dead hosts left in the state directory.
pub(crate) struct Recovery {
    store: Arc<SessionStore>,
    /// Held while a dead host is recovered.
    one_at_a_time: Arc<Mutex<()>>,
    /// Takes over agents that have outlived their host. None in a process that only looks.
    successor: Successor,
}

/// The host that takes over, once it is there.
pub(crate) type Successor = Arc<OnceLock<Weak<Shared>>>;

impl Recovery {
    pub(crate) fn new(store: Arc<SessionStore>) -> Self {
        Self { store, one_at_a_time: Arc::default(), successor: Arc::default() }
    }

    /// From now on agents are taken over by this host.
    pub(crate) fn set_successor(&self, host: Weak<Shared>) {
        // A host has one recovery, and says so once.
        let _again = self.successor.set(host);
    }

    /// Looks for dead hosts now and then, until this one shuts down.
    pub(crate) fn keep_on(&self, scope: &TaskScope, closing: &CancellationToken) {
        // It keeps nothing of the host alive.
        let (store, closing) = (Arc::downgrade(&self.store), closing.clone());
        let (one_at_a_time, successor) = (Arc::clone(&self.one_at_a_time), Arc::clone(&self.successor));
        let looking = async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(INTERVAL) => {}
                }
                let Some(store) = store.upgrade() else { return };
                let (one_at_a_time, successor) = (Arc::clone(&one_at_a_time), Arc::clone(&successor));
                let recovery = Self { store, one_at_a_time, successor };
                recovery.recover_dead_hosts().await;
            }
        };
        scope.spawn("recovery", looking);
    }

    /// Ends the processes of all hosts that are gone, and records their live sessions as lost.
    pub(crate) async fn recover_dead_hosts(&self) {
        let _one_at_a_time = self.one_at_a_time.lock().await;
        // Those that are left at this moment are of hosts that are found dead below.
        let ends = self.ends_left().await;
        let mut is_all = true;
        // The file of a host may have been removed, though its sessions still name it.
        let owners = self.store.log.owners().await.unwrap_or_default();
        for dead in self.store.host_file.dead(&owners) {
            is_all &= self.recover_host(dead).await;
        }
        self.forget_killed().await;
        if is_all && let Some(shared) = self.successor.get().and_then(Weak::upgrade) {
            shared.agents.forget_ends(ends).await;
        }
    }

    /// Keepers that were killed have left their names.
    async fn forget_killed(&self) {
        let directory = self.store.host_file.keepers();
        let forgotten = tokio::task::spawn_blocking(move || forget_killed(&directory));
        // The next look tries again.
        let _panic = forgotten.await;
    }

    /// Programs whose keepers have left word of their end.
    pub(crate) async fn ends_left(&self) -> Vec<ProcessMark> {
        let directory = self.store.host_file.keepers();
        tokio::task::spawn_blocking(move || ends_left(&directory)).await.unwrap_or_default()
    }

    /// What is stored of a session that is about to be acted on. If its host has died, it is recorded as lost first.
    pub(crate) async fn recovered(&self, id: &SessionId) -> Result<SessionRow, HostError> {
        let row = self.store.row(id).await?;
        let Some(owner) = self.store.other_owner(&row) else { return Ok(row) };
        {
            let _one_at_a_time = self.one_at_a_time.lock().await;
            let Some(dead) = self.store.host_file.dead_host(owner) else { return Ok(row) };
            self.recover_host(dead).await;
        }
        self.store.row(id).await
    }

    /// What became of a stored session that another host had, if that has died and nothing of it is recorded yet. Writes
    /// nothing.
    pub(crate) async fn left_behind(&self, row: &SessionRow, meta: &SessionMeta) -> Option<LeftBehind> {
        let owner = self.store.other_owner(row).filter(|_| !row.ended)?;
        {
            let _one_at_a_time = self.one_at_a_time.lock().await;
            if !self.store.host_file.is_dead(owner) {
                return None;
            }
        }
        let end = match self.agent_left(meta).await {
            Some(AgentLeft::Waits(detached)) => return Some(LeftBehind::Detached(detached)),
            Some(AgentLeft::Ended(end)) => end.report.map(|report| (report, millis_of(end.at))),
            None => None,
        };
        let _one_of_few = self.store.one_of_few().await;
        let run = match end {
            Some((report, at_ms)) => self.ended_run(row, meta, report, at_ms).await,
            // When it was found does not count: the next look would find it at another time.
            None => self.lost_run(row, meta, row.updated_ms).await,
        };
        Some(LeftBehind::Lost(Box::new(run)))
    }

    /// How an agent waits whose host has died, if the session has one that waits.
    pub(crate) async fn detached_of(&self, row: &SessionRow) -> Option<Detached> {
        match self.left_behind(row, &SessionMeta::read(&row.info)).await? {
            LeftBehind::Detached(detached) => Some(detached),
            LeftBehind::Lost(_) => None,
        }
    }

    /// False when something of it is left.
    async fn recover_host(&self, dead: DeadHost) -> bool {
        self.wait_for_keepers(&dead.id).await;
        if let Some(shared) = self.successor.get().and_then(Weak::upgrade) {
            Host { shared }.take_over(&dead.id).await;
        }
        let which = Sweep::Host(dead.id.clone());
        let swept = tokio::task::spawn_blocking(move || sweep(&which)).await.unwrap_or(0);
        if swept > 0 {
            tracing::warn!(host = dead.id, swept, "ended processes that a dead host had left");
        }
        // If that fails, the next look tries again.
        let is_all = self.record_lost(&dead.id).await;
        if is_all {
            dead.forget();
        }
        is_all
    }

    /// A keeper that was just told to outlive its host may not listen yet.
    async fn wait_for_keepers(&self, owner: &str) {
        let rows = self.store.log.owned_by(owner).await.unwrap_or_default();
        let keepers =
            rows.iter().filter(|row| !row.ended).filter_map(|row| SessionMeta::read(&row.info).keeper);
        let marks: HashSet<ProcessMark> =
            keepers.filter_map(|keeper| ProcessMark::parse(&keeper.mark)).collect();
        let directory = self.store.host_file.keepers();
        if !marks.is_empty() {
            let waited = tokio::task::spawn_blocking(move || wait_for_keepers(&directory, marks, LISTENING));
            // It only bounds a race.
            let _panic = waited.await;
        }
    }

    /// Records the live sessions of a host as lost, and discards what it was importing; false when that could not be written.
    async fn record_lost(&self, owner: &str) -> bool {
        let recorded = Box::pin(self.try_record_lost(owner)).await;
        if let Err(error) = &recorded {
            tracing::error!(host = owner, error, "cannot record its sessions as lost");
        }
        recorded == Ok(Left::Nothing)
    }

    /// What became of the agent of a session whose host is gone. None: nothing of it is left that could be taken over.
    async fn agent_left(&self, meta: &SessionMeta) -> Option<AgentLeft> {
        let keeper = meta.keeper.as_ref()?;
        let mark = ProcessMark::parse(&keeper.mark)?;
        let (directory, keep) = (self.store.host_file.keepers(), Duration::from_millis(keeper.keep_ms));
        let looked = tokio::task::spawn_blocking(move || {
            // The keeper of one that has ended may listen for a moment.
            let ended = end_left(&directory, &mark).map(AgentLeft::Ended);
            ended.or_else(|| {
                let since_ms = millis_of(detached_since(&directory, &mark)?);
                Some(AgentLeft::Waits(Detached { since_ms, keep }))
            })
        });
        looked.await.ok().flatten()
    }

    /// Those of these programs that have ended while no host was there, as can be read here.
    pub(crate) async fn ended_of(&self, marks: impl Iterator<Item = &String>) -> Vec<ProcessMark> {
        let marks: Vec<ProcessMark> = marks.filter_map(|mark| ProcessMark::parse(mark)).collect();
        let directory = self.store.host_file.keepers();
        let has_ended =
            move |mark: &ProcessMark| end_left(&directory, mark).is_some_and(|end| end.report.is_some());
        let looked = tokio::task::spawn_blocking(move || marks.into_iter().filter(has_ended).collect());
        looked.await.unwrap_or_default()
    }

    async fn try_record_lost(&self, owner: &str) -> Result<Left, String> {
        let mut left = Left::Nothing;
        let rows = self.store.log.owned_by(owner).await.map_err(|error| chain(&error))?;
        self.store.log.discard_partials(owner).await.map_err(|error| chain(&error))?;
        for row in rows {
            if !row.ended && self.agent_left(&SessionMeta::read(&row.info)).await.is_some() {
                left = Left::Detached;
                continue;
            }
            let batch = match row.ended {
                // It was being activated, and is as it was.
                true => Batch::index_only(IndexUpdate {
                    updated_ms: row.updated_ms,
                    owner: Some(None),
                    ..IndexUpdate::default()
                }),
                false => self.lost_batch(&row, owner).await,
            };
            let was_live = !row.ended;
            if self.write_last(&row, owner, batch).await.map_err(|error| chain(&error))? && was_live {
                metrics::run_ended(Some(Cause::DaemonLost));
                journal::lost(&row.id, &row.agent);
            }
        }
        Ok(left)
    }

    /// Writes the last of a session of a dead host; false when another process was faster.
    async fn write_last(&self, row: &SessionRow, owner: &str, batch: Batch) -> Result<bool, WriteError> {
        match self.store.log.append_to(&row.id, Some(owner), self.store.host_file.id(), batch).await {
            Ok(last) => {
                if let Some(id) = SessionId::parse(&row.id).filter(|_| !row.ended) {
                    self.store.unsearched.note(&id, last);
                }
                Ok(true)
            }
            Err(WriteError::Conflict { .. } | WriteError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records the end of a session of a dead host whose agent was ended here, because its keeper cannot be spoken with.
    pub(crate) async fn record_upgrade(&self, owner: &str, row: &SessionRow) {
        let mut meta = SessionMeta::read(&row.info);
        let _one_of_few = self.store.one_of_few().await;
        let (facts, tally) = self.last_facts(row, &meta).await;
        let end = crate::termination::daemon_upgrade(&facts, clock::now_ms());
        let end = LostRun { end, tally }.describe(&mut meta);
        match self.write_last(row, owner, ended_batch(&end, &meta)).await {
            Ok(true) => {
                metrics::run_ended(Some(Cause::DaemonUpgrade));
                journal::upgraded(&row.id, &row.agent);
            }
            Ok(false) => {}
            // It is recorded as lost, then.
            Err(error) => {
                tracing::error!(session = row.id, error = chain(&error), "cannot record how a session ended")
            }
        }
    }

    /// Waits until what a session was lost with is gone: two agents must not go on with one session side by side. The
    /// keepers of a dead host give its agents their graces; what takes longer is killed.
    pub(crate) async fn wait_for_the_lost(&self, meta: &SessionMeta, graces: Graces) {
        let Some(lost) = &meta.lost_with else { return };
        let which = match ProcessMark::parse(lost) {
            Some(mark) => Sweep::Programs(HashSet::from([mark])),
            None => Sweep::WholeHost(lost.clone()),
        };
        let within = graces.stdin + graces.term + SLACK;
        let waited = tokio::task::spawn_blocking(move || wait_until_gone(&which, within)).await;
        if let Ok(killed @ 1..) = waited {
            tracing::warn!(killed, "ended processes that a dead host had left");
        }
    }
}
