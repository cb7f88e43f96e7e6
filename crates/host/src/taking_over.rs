//! Taking over the sessions of a host that is gone: the agents that outlived it go on, here.
//!
//! Invariant: a session whose keeper answers is never recorded as lost, and nothing of a session changes before its keeper
//! has answered. An agent whose keeper cannot be spoken with is ended: nothing waits for what does not come. A host that dies
//! in the middle leaves sessions that the next one takes over.

mod terminals;

use crate::agent::{History, Inbox, Marks, TakenAgent};
use crate::chain::chain;
use crate::clock;
use crate::continuity::TakesOver;
use crate::error::HostError;
use crate::host::Host;
use crate::journal;
use crate::metrics;
use crate::recording;
use crate::run::{Assembled, Bound, Run};
use crate::secrets::Secrets;
use crate::session::{
    AfterTurn, ClientRequest, Debts, EndRequest, Inherited, Owed, SessionHandle, StoredPrompt,
};
use crate::setup::{closes_after_turn, stored_setup};
use crate::store::unreadable;
use acpd_eventlog::{Appender, Batch, IndexUpdate, SessionRow};
use acpd_record::{
    Event, KeeperAddress, NativeSessionId, Position, Projection, Reattached, SessionId, SessionMeta,
    TurnNumber,
};
use acpd_supervisor::{AttachError, Pending};
use acpd_wire::OwnedId;
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Processes that are taken over at once, and sessions of each: what many write is one commit.
const AT_ONCE: usize = 96;

/// How long a keeper may take to listen.
pub(crate) const LISTENING: Duration = Duration::from_secs(1);

/// A session whose host is gone.
struct Orphan {
    id: SessionId,
    row: SessionRow,
    meta: SessionMeta,
    native: NativeSessionId,
}

/// What the log says of it.
struct Recalled {
    projection: Projection,
    debts: Vec<Owed>,
    recorded: Vec<OwnedId>,
}

impl Host {
    /// Takes over what it can of a host that is gone. What is left of that host has to be recorded as lost.
    pub(crate) fn take_over<'a>(&'a self, dead: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let rows = self.shared.store.log.owned_by(dead).await.unwrap_or_default();
            let mut processes = by_process(rows);
            match self.shared.agents.takes_over() {
                Some(TakesOver::All) => {}
                Some(TakesOver::Session(only)) => {
                    processes
                        .retain(|_, (_, orphans)| matches!(&orphans[..], [orphan] if orphan.id == *only));
                }
                Some(TakesOver::Ended) => {
                    let ended = self.shared.recovery.ended_of(processes.keys()).await;
                    processes.retain(|mark, _| ended.iter().any(|ended| ended.as_str() == mark));
                }
                None => return,
            }
            let dead: Arc<str> = dead.into();
            let taken = futures_util::stream::iter(processes.into_values());
            taken
                .for_each_concurrent(AT_ONCE, |process| {
                    let (host, dead) = (self.clone(), Arc::clone(&dead));
                    // A task each, so that all processors take part.
                    let taken = async move { host.take_process(&dead, process).await };
                    let taken = self.shared.scope.spawn("taking over", taken);
                    async { drop(taken.await) }
                })
                .await;
        })
    }

    /// Takes over one process with its sessions.
    async fn take_process(&self, dead: &str, (address, orphans): (KeeperAddress, Vec<Orphan>)) {
        let Some(name) = orphans.first().map(|orphan| orphan.row.agent.clone()) else { return };
        let taken = match self.shared.agents.take_over(&name, &address).await {
            Ok(taken) => taken,
            Err(AttachError::Gone) => {
                // It may have lost its name, by which it would be found, and not its life.
                self.shared.agents.end_unattached(&name, &address).await;
                return;
            }
            Err(error @ AttachError::Version) => {
                tracing::warn!(agent = name, mark = address.mark, error = chain(&error), "an agent is ended");
                self.shared.agents.end_unattached(&name, &address).await;
                for orphan in orphans {
                    self.shared.recovery.record_upgrade(dead, &orphan.row).await;
                }
                return;
            }
            Err(error) => {
                tracing::error!(
                    agent = name,
                    mark = address.mark,
                    error = chain(&error),
                    "an agent cannot be taken over"
                );
                return;
            }
        };
        // One that an earlier version gave to sessions of both policies ends in time.
        let policy = orphans.iter().map(|orphan| orphan.meta.partition).max().unwrap_or_default();
        let sessions = orphans.into_iter().map(|orphan| self.try_session(dead, &taken, orphan));
        let sessions = futures_util::stream::iter(sessions).buffer_unordered(AT_ONCE);
        let started: Vec<_> = sessions.filter_map(std::future::ready).collect().await;
        metrics::agent_taken_over(&name, taken.gap);
        let agent = taken.begin();
        self.shared.agents.share(&agent, policy);
        let is_over = self.shared.agents.takes_over() == Some(&TakesOver::Ended);
        let mut sessions = Vec::new();
        for (session, scope, task) in started {
            sessions.push(session.clone());
            // A host that closes has ended it.
            let _closing = self.start(session.clone(), &scope, task).await;
            self.go_on_ending(session);
        }
        // What is done with such a session next is done with one that has ended.
        for session in sessions.iter().filter(|_| is_over) {
            session.ended().await;
        }
    }

    /// Goes on with an end that a client has asked the host before for.
    fn go_on_ending(&self, session: SessionHandle) {
        let Some(ending) = session.look().and_then(|look| look.meta.ending) else { return };
        let Some(request) = EndRequest::of_client(ending.cause) else { return };
        let ended = async move { drop(session.end(request, ending.by.into()).await) };
        self.shared.scope.spawn("an end that was asked for", ended);
    }

    /// The same of a session, unless it fails, which is logged.
    async fn try_session(&self, dead: &str, taken: &TakenAgent, orphan: Orphan) -> Option<Assembled> {
        let id = orphan.id.clone();
        let session = self.take_session(dead, taken, orphan).await;
        session
            .inspect_err(|error| {
                tracing::error!(session = %id, error = chain(error), "a session cannot be taken over");
            })
            .ok()
    }

    async fn take_session(
        &self,
        dead: &str,
        taken: &TakenAgent,
        orphan: Orphan,
    ) -> Result<Assembled, HostError> {
        // The long part, and so in a task of its own: many sessions may have one process.
        let recall = self.clone().recall(orphan, Arc::clone(&taken.marks));
        let recalled = self.shared.scope.spawn("recall", recall).await.ok().flatten();
        let (orphan, recalled) = recalled.ok_or(HostError::Broken)??;
        let Orphan { id, row, mut meta, native } = orphan;
        let Recalled { mut projection, debts, recorded } = recalled;
        let claim = taken.agent.claim(native.as_json()).ok_or(HostError::Broken)?;

        let waiting = self.shared.store.log.waiting(id.as_str()).await.map_err(|error| unreadable(&error))?;
        let waiting = waiting
            .into_iter()
            .filter_map(|(number, bytes)| Some((ClientRequest(number), StoredPrompt::read(&bytes)?)))
            .collect();
        meta.keeper = taken.agent.keeper();
        let appender = self.adopt(&id, (dead, taken.gap.time), &row, &mut meta, &mut projection).await?;
        let kept = taken.marks.run(native.as_json());
        let setup = kept.as_ref().map_or_else(
            || stored_setup(&native, &row.cwd),
            |kept| Bytes::copy_from_slice(kept.setup.get().as_bytes()),
        );
        let client: Arc<str> = kept.as_ref().map_or("", |kept| &*kept.client).into();
        let after_turn = closes_after_turn(Some(&setup))?;
        let turns = TurnNumber(kept.map_or(0, |kept| kept.turns));
        let after_turn = after_turn.then(|| AfterTurn { client: Arc::clone(&client), turns });
        taken.agent.hide(Secrets::of_session(&setup));

        let unfinished = projection.unfinished_turn().map(|turn| turn.number);
        let turn = taken.marks.turn(native.as_json()).filter(|sent| Some(sent.turn) == unfinished);
        let (inbox, inputs) = Inbox::new();
        let history = History::Taken { position: row.position, turn };
        let route = taken
            .agent
            .bind(claim, inbox, appender.committed(), history)
            .map_err(|_gone| HostError::Broken)?;
        let run = Run {
            created_by: row.created_by.map(Arc::from),
            native,
            position: row.position,
            projection: Box::new(projection),
            transcript: None,
            meta,
            cwd: row.cwd,
            created_ms: row.created_ms,
            setup,
            client,
        };
        let bound = Bound { route, inputs, sifts: false, after_turn };
        let last = appender.next_seq() - 1;
        let (session, scope, task) = self.assemble(&id, &taken.agent, appender, run, bound).await;
        let terminals = self.take_terminals((&id, last), taken, &session).await;
        session.go_on(Inherited { debts, recorded, begun: taken.marks.begun(), waiting, terminals });
        journal::taken_over(&id, &taken.agent, taken.gap.time);
        Ok((session, scope, task))
    }

    /// Makes this host the owner of a session of host `dead`, which was without one for so long.
    async fn adopt(
        &self,
        id: &SessionId,
        (dead, detached): (&str, Duration),
        row: &SessionRow,
        meta: &mut SessionMeta,
        projection: &mut Projection,
    ) -> Result<Appender, HostError> {
        let now = clock::now_ms();
        let gap_ms = u64::try_from(detached.as_millis()).unwrap_or(u64::MAX);
        let reattached = Event::Reattached(Reattached { gap_ms });
        let mut batch = Batch::new();
        recording::push(&mut batch, now, &reattached);
        projection.apply(Position { seq: row.last_seq + 1, at_ms: now }, &reattached);
        meta.tell(projection);
        let info = Some(meta.write());
        batch.update_index(IndexUpdate { updated_ms: now, info, ..IndexUpdate::default() });
        let store = &self.shared.store;
        Ok(store.log.adopt(id.as_str(), dead, store.host_file.id(), batch).await?)
    }

    /// What the log says of a session, and what its agent was not told of that.
    async fn recall(self, orphan: Orphan, marks: Arc<Marks>) -> Result<(Orphan, Recalled), HostError> {
        let Orphan { id, row, meta, native } = &orphan;
        let mut debts = Debts::new(&marks, native.as_json());
        let store = &self.shared.store;
        // A prompt may be behind what the agent was told last, and unsent.
        let told = debts.told().min(row.last_seq);
        let mut projection = store.recall(id, meta, told).await?;
        let mut cursor = store.log.cursor(id.as_str(), told).await?;
        while cursor.position() < row.last_seq {
            let Some(block) = cursor.next().await? else { break };
            for stored in block.events().take_while(|event| event.seq <= row.last_seq) {
                recording::read_beside(&mut projection, &stored, |before, event| {
                    debts.see(before, stored.seq, event);
                });
            }
        }
        let (debts, recorded) = debts.finish(&projection);
        Ok((orphan, Recalled { projection, debts, recorded }))
    }
}

/// The sessions that may be taken over, by the keeper of their process.
fn by_process(rows: Vec<SessionRow>) -> BTreeMap<String, (KeeperAddress, Vec<Orphan>)> {
    let mut processes: BTreeMap<String, (KeeperAddress, Vec<Orphan>)> = BTreeMap::new();
    for row in rows.into_iter().filter(|row| !row.ended) {
        let meta = SessionMeta::read(&row.info);
        let (Some(address), Some(native)) = (meta.keeper.clone(), meta.native_session_id.clone()) else {
            continue;
        };
        let Some(id) = SessionId::parse(&row.id) else { continue };
        let process = processes.entry(address.mark.clone()).or_insert_with(|| (address, Vec::new()));
        process.1.push(Orphan { id, row, meta, native });
    }
    processes
}
